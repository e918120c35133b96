"""Every level keeps its promise, whatever happens to a replica."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from tests.live_server import ROOT, clean_environment, start_server
from tests.replication.faults import FAULTS, LATE, OTHERS, Fault, does_not_replay, hangs
from tests.replication.postgres import Node
from tests.replication.world import (
    BOUND,
    LAG,
    SCRAPER,
    SESSIONS,
    SLACK,
    World,
    staleness,
    violations,
    wait_for_reads,
)
from tests.tools.checker.clients import Client, Load
from tests.tools.checker.history import History, Seen
from tests.tools.checker.levels import check
from tests.waiting import wait_for

pytestmark = pytest.mark.long
ENOUGH = 10  # answers of each kind before a fault, during it, and afterwards; the benchmark asks for more
WEAK = ("ConsistentPrefix", "Eventual", "secondary")


@pytest.mark.parametrize("first", LATE)
def test_levels_keep_their_promises(world: World, first: str) -> None:
    """A replica that is late, and then a third of the other faults while the same clients are at work."""
    place = list(LATE).index(first)
    with world.loads() as loads:
        wait_for_answers(loads)
        for name in (first, *OTHERS[place :: len(LATE)]):
            fault = FAULTS[name]
            # the delay is long enough to show wherever a level permits it
            with is_shown(fault, world, loads[0], *WEAK) if name in LATE else fault(world):
                wait_for_answers(loads)
            wait_for_answers(loads)
            wait_for_reads(loads[0], world.far)

    assert violations(loads) == []


@contextmanager
def is_shown(fault: Fault, world: World, load: Load, *levels: str) -> Iterator[None]:
    """Apply a fault until reads have been late; repeat it if the replica was left out before any were."""
    while True:
        with fault(world):
            until = time.monotonic() + 2 * LAG
            load.wait_for(
                lambda until=until: staleness(load, *levels) > BOUND or time.monotonic() > until, "behind"
            )
            if staleness(load, *levels) > BOUND:
                yield
                return
        wait_for_reads(load, world.far)


def wait_for_answers(loads: list[Load]) -> None:
    for load in loads:
        load.wait_for_answers(ENOUGH)


def test_a_table_that_the_replicas_do_not_have_yet(world: World) -> None:
    name, key = f"t{uuid4().hex}", ("p", "r")
    with are_behind(world.near, world.far), Client(world.endpoint(), name, level="Eventual") as client:
        client.create_table()
        version = client.upsert(key, 1)
        assert client.get(key) == Seen(version, 1)
        assert client.page() == {key: Seen(version, 1)}


@contextmanager
def are_behind(*replicas: Node) -> Iterator[None]:
    """They replay nothing."""
    try:
        for replica in replicas:
            replica.fetch("SELECT pg_wal_replay_pause()")
        yield
    finally:
        for replica in replicas:
            replica.fetch("SELECT pg_wal_replay_resume()")


def test_a_token_is_good_at_another_server(world: World, scratch: Path) -> None:
    table, key = f"t{uuid4().hex}", ("p", "r")
    with start_server(scratch / "world of another", env=world.environment) as second:
        there = world.endpoint(SESSIONS)._replace(port=second.port)
        with (
            Client(world.endpoint(SESSIONS), table) as writer,
            Client(there, table) as reader,
        ):
            writer.create_table()
            writer.upsert(key, 1)
            wait_for(lambda: reader.get(key).value == 1, "the replicas")
            with are_behind(world.near, world.far):
                for value in range(2, 10):
                    writer.upsert(key, value)
                    reader.token = writer.token
                    assert reader.get(key).value == value


def test_the_checker_finds_reads_of_a_replica_that_are_called_strong(world: World) -> None:
    with world.loads() as [load, _]:
        load.wait_for_answers(ENOUGH)
        with is_shown(does_not_replay, world, load, "Eventual"):
            pass
    reads = [replace(read, level="Strong") for read in load.history.of_level("Eventual")]
    result = check(History(load.history.writes, reads), bound=BOUND, lag=LAG + SLACK)
    assert {violation.promise for violation in result} == {"no stale read"}
    assert check(load.history, bound=BOUND, lag=LAG + SLACK) == []


def run(world: World, *arguments: str) -> str:
    """Run a command of manage.py and return its output."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env={**clean_environment(), **world.environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def scrape(world: World) -> str:
    answer = requests.get(
        f"{world.server.url}/ui/metrics", headers={"Authorization": f"Bearer {SCRAPER}"}, timeout=60
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def test_reports_of_a_replica_that_falls_behind_and_one_that_hangs(world: World) -> None:
    run(world, "user", "add", "ada", "--admin")
    token = re.search(r"tbl_\w+", run(world, "token", "add", "ada", "monitoring"))[0]

    def listed() -> list[dict[str, object]]:
        address = f"{world.server.url}/ui/api/v1/replicas"
        answer = requests.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def wait_for_states(*states: str) -> list[dict[str, object]]:
        results: list[dict[str, object]] = []

        def are_reached() -> bool:
            results[:] = listed()
            return [it["state"] for it in results] == list(states)

        wait_for(are_reached, f"replicas that are {states}")
        return results

    near, far = wait_for_states("in use", "in use")
    assert near["name"] == f"127.0.0.1:{world.to_near.port}"
    assert near["lag_seconds"] < LAG and near["problem"] is None
    in_use = f'tablero_replica_in_use{{replica="{far["name"]}"}}'
    wait_for(lambda: f"{in_use} 1.0" in scrape(world), "the metric")

    with are_behind(world.near), hangs(world):
        with Client(world.endpoint(), "behind") as client:
            client.create_table()
        near, far = wait_for_states("behind", "unreachable")
        assert near["lag_seconds"] > LAG and near["lag_bytes"] > 0
        assert (far["lag_bytes"], far["problem"]) == (None, "no answer")
        said = run(world, "doctor")
        assert near["name"] in said and f"{far['name']} is left out" in said
        assert f"{in_use} 0.0" in scrape(world)
        with Client(world.endpoint(), "", secondary=True) as client:
            stats = client.send("GET", "?restype=service&comp=stats").body.decode()
        assert "<Status>unavailable</Status>" in stats
        assert parsedate_to_datetime(re.search("<LastSyncTime>(.+)</", stats)[1].partition("<")[0])

    wait_for_states("in use", "in use")
