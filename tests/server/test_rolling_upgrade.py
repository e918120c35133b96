"""Servers of 1.0 and of this version: one data folder after the other, and one database under load at the same time."""

import json
from itertools import pairwise
from uuid import uuid4

import psycopg
import pytest

from tests.live_server import ACCOUNT, KEY, start_server
from tests.ports import free_port
from tests.server.test_releases import has_said, restored
from tests.tools.checker.clients import Endpoint, Load
from tests.tools.checker.levels import Checker, check
from tests.tools.releases import contents
from tests.tools.releases.checkouts import check_out
from tests.tools.releases.doors import Doors

pytestmark = pytest.mark.long
KEPT = {"TABLERO_ACTIVITY_DAYS": "3650"}
ENOUGH = 60  # answers to writes, and to reads, in each phase
TABLES = 20  # beside that of the clients
PAUSE = 60.0  # seconds without an acknowledged write on a busy machine; 5 s are promised


@pytest.fixture(scope="module")
def released(scratch):
    """Return a folder with the code of 1.0.0."""
    folder = scratch / "1.0.0"
    if not check_out("1.0.0", folder):
        pytest.skip("the history of the repository, with the code of 1.0.0, is not here")
    return folder


def test_a_database_of_0_4_is_upgraded_by_1_0_and_then_by_this_version(released, data):
    made = restored("0.4.0", data)
    with start_server(data, env=KEPT, checkout=released) as former:
        assert has_said(former, "Bringing the database up to date")
        assert Doors(former.url, made["token"]).api("accounts")["items"]
        assert former.stop() == 0
    with start_server(data, env=KEPT) as live:
        assert has_said(live, "Bringing the database up to date")
        doors = Doors(live.url, made["token"], made["passwords"])
        answered = json.loads(json.dumps(contents.read(doors, made)))
        assert "\n".join(contents.differences(made["found"], answered)) == ""
        assert contents.use(doors, made) == []


@pytest.fixture
def env(postgres):
    """Return the environment of servers on a database of their own."""
    name = f"rolling{uuid4().hex[:8]}"
    with psycopg.connect(host=postgres["host"], user="tablero", dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        url = f"postgresql:///{name}?host={postgres['host']}&user=tablero"
        yield {"DATABASE_URL": url, "TABLERO_SECRET": "the secret of both servers"}
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_rolling_upgrade_under_load_loses_nothing(released, env, scratch):
    with start_server(scratch / "old", env=env, checkout=released) as old:
        port = free_port()
        load = Load(
            Endpoint(old.port, ACCOUNT, KEY), f"t{uuid4().hex}", others=[Endpoint(port, ACCOUNT, KEY)]
        )
        load.add_writers(4)
        load.add_readers("Strong", 4)
        with load.client("tables") as client:
            for number in range(TABLES):
                client.create_table(f"other{number}")
        with load.running():
            load.wait_for_answers(ENOUGH)
            with start_server(scratch / "new", "--listen", f"127.0.0.1:{port}", env=env) as new:
                assert has_said(new, "Bringing the database up to date")
                load.wait_for_answers(ENOUGH)
                assert old.stop() == 0
                load.wait_for_answers(ENOUGH)
                load.stop()
                final = load.final(Endpoint(new.port, ACCOUNT, KEY))
    history = load.history
    assert check(history, bound=0, lag=0) == []
    assert Checker(history).lost(final) == []
    pauses = {
        name: longest_pause(its) for name, its in (("writes", history.writes), ("reads", history.reads))
    }
    print("longest time without an answer:", ", ".join(f"{name} {it:.1f} s" for name, it in pauses.items()))
    assert max(pauses.values()) < PAUSE


def longest_pause(operations):
    """Return the longest time in seconds in which no operation was answered."""
    ended = sorted(it.ended for it in operations if it.ended is not None)
    return max(later - earlier for earlier, later in pairwise(ended))
