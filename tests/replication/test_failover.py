"""Loss of the primary: reads that go on, recovery, and no loss of acknowledged writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest

from tests.live_server import ACCOUNT, KEY, LiveServer, start_server
from tests.replication.postgres import Group, Node
from tests.replication.world import LAG, SLACK, wait_for_reads
from tests.tools.checker.clients import Client, Endpoint, Load, Unavailable
from tests.tools.checker.history import ABSENT, Seen
from tests.tools.checker.levels import Checker, check
from tests.waiting import wait_for

pytestmark = pytest.mark.long
ENOUGH = 50
OUTAGE = 60.0  # seconds without an acknowledged write, on a busy machine


@dataclass
class Pair:
    """A primary and its synchronous standby, which may swap their roles."""

    nodes: Group
    first: Node
    second: Node
    server: LiveServer

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.server.port, ACCOUNT, KEY)

    def load(self) -> Load:
        load = Load(self.endpoint, f"t{uuid4().hex}")
        load.add_writers(2)
        load.add_readers("Strong")
        load.add_readers("Eventual")
        return load

    @contextmanager
    def client(self, table: str = "", **options: object) -> Iterator[Client]:
        with Client(self.endpoint, table, **options) as client:
            yield client

    def join(self, node: Node, primary: Node) -> None:
        """Make a node that was lost the synchronous standby of the other one."""
        self.nodes.copy(node, primary)
        node.start()
        wait_for_standby(primary)


def wait_for_standby(primary: Node) -> None:
    """Wait for its synchronous standby."""
    primary.change(synchronous_standby_names="*")
    wait_for(
        lambda: primary.fetch("SELECT true FROM pg_stat_replication WHERE sync_state = 'sync'"), "the standby"
    )


@pytest.fixture(scope="module")
def pair(scratch: Path) -> Iterator[Pair]:
    nodes = Group(scratch / "pair")
    try:
        first = nodes.primary("first")
        second = nodes.replica("second", first)
        wait_for_standby(first)
        both = first.url().replace(f":{first.port}/", f":{first.port},127.0.0.1:{second.port}/")
        env = {
            "DATABASE_URL": both,
            "TABLERO_REPLICAS": f"{first.url()} {second.url()}",
            "TABLERO_REPLICA_LAG": str(LAG),
            "TABLERO_SECRET": uuid4().hex,
        }
        constants = {"storage.sql.lanes": {"_HUNG_AFTER": 6.0}}  # longer than PostgreSQL lets a statement run
        with start_server(scratch / "pair" / "server", env=env, constants=constants) as server:
            yield Pair(nodes, first, second, server)
            assert not any("Traceback" in line for line in server.output), "\n".join(server.output[-60:])
    finally:
        nodes.stop()


def last_sync(client: Client) -> float:
    """Seconds since 1970."""
    answer = client.send("GET", "?restype=service&comp=stats")
    text = answer.body.decode().partition("<LastSyncTime>")[2].partition("<")[0]
    return parsedate_to_datetime(text).timestamp()


def test_the_secondary_answers_while_the_primary_is_down(pair: Pair) -> None:
    table, key = f"t{uuid4().hex}", ("p", "r")
    with (
        pair.client(table) as primary,
        pair.client(table, secondary=True) as secondary,
    ):
        primary.create_table()
        version = primary.upsert(key, 1)
        wait_for(lambda: look(secondary, key).version == version, "the replica")

        pair.first.kill()
        down = time.time()
        try:
            for _ in range(20):
                # on a busy machine it may take over a second until the replica is known to be fresh enough
                wait_for(lambda: is_read(secondary, key, version), "the replica to answer")
            with pytest.raises(Unavailable):
                primary.upsert(key, 2)
            wait_for(lambda: time.time() > down + 2, "a time without a primary")
            assert last_sync(secondary) <= down + 1
        finally:
            pair.first.start()
            wait_for_standby(pair.first)

        wait_for(lambda: is_written(primary, key, 3), "writes")
        wait_for(lambda: look(secondary, key).value == 3, "the replica")
        wait_for(lambda: last_sync(secondary) > down + 2, "synchronization")


def look(client: Client, key: tuple[str, str]) -> Seen:
    """Read a key as a client; the result is ABSENT while no replica is known to be fresh enough."""
    try:
        return client.get(key)
    except Unavailable:
        return ABSENT


def is_read(client: Client, key: tuple[str, str], version: int) -> bool:
    try:
        assert client.get(key).version == version
        assert client.page() == {key: Seen(version, 1)}
    except Unavailable:
        return False
    return True


def is_written(client: Client, key: tuple[str, str], value: int) -> bool:
    try:
        client.upsert(key, value)
    except (Unavailable, ConnectionError):
        return False
    return True


def test_nothing_acknowledged_is_lost_in_a_fail_over_and_back(pair: Pair) -> None:
    load = pair.load()
    with load.running():
        load.wait_for_answers(ENOUGH)
        for lost, standby, lose in (
            (pair.first, pair.second, Node.kill),
            (pair.second, pair.first, Node.pause),
        ):
            lose(lost)
            standby.promote()
            lost.kill()  # a promotion is safe only after the primary has stopped
            load.wait_for_answers(ENOUGH)
            pair.join(lost, primary=standby)
            wait_for_reads(load, lost)

    assert longest_pause(load) < OUTAGE
    assert check(load.history, bound=0, lag=LAG + SLACK) == []
    assert Checker(load.history).lost(load.final()) == []


def longest_pause(load: Load) -> float:
    """Seconds in which no write was acknowledged."""
    ended = sorted(write.ended for write in load.history.writes if write.ended is not None)
    return max(later - earlier for earlier, later in pairwise(ended))


def test_a_former_primary_that_hung_and_was_not_fenced_is_not_used_again(pair: Pair) -> None:
    """Replicas answer while it hangs; when it is back, it accepts writes, and would lose them."""
    [former] = [
        it for it in (pair.first, pair.second) if it.fetch("SELECT NOT pg_is_in_recovery()") == [(True,)]
    ]
    [standby] = [it for it in (pair.first, pair.second) if it is not former]
    table, key = f"t{uuid4().hex}", ("p", "r")
    with pair.client(table) as client, pair.client(table, secondary=True) as secondary:
        client.create_table()
        version = client.upsert(key, 1)
        wait_for(lambda: look(secondary, key).version == version, "the replica")
        [(relation,)] = former.fetch(
            "SELECT 'entity_' || id FROM storage_table WHERE folded_name = %s", table
        )

        former.change(synchronous_standby_names="")
        former.pause()
        try:
            with pytest.raises(Unavailable):
                client.upsert(key, 2)
            wait_for(lambda: is_read(secondary, key, version), "the replica to answer")
            standby.promote()
            wait_for(lambda: is_written(client, key, 3), "the other to be the primary")
        finally:
            former.resume()
        wait_for(former.is_ready, "the former primary")
        # each connection of the server has to be opened again, and the former primary is the first that may answer
        for number in range(4, 7):
            standby.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            wait_for(lambda number=number: is_written(client, key, number), "a write")
        assert client.get(key).value == 6
        # it may have got what was sent to it before, and was not acknowledged
        [(value,)] = former.fetch(f"SELECT (props->'n')::text FROM {relation}")
        assert value < "3"
    if former is pair.first:
        said = "is a former primary that still accepts writes"
        wait_for(lambda: any(said in line for line in pair.server.output), "the message")
