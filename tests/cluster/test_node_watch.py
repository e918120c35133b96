"""A process learns which nodes of a cluster do not answer, and refuses what would wait for them."""

import asyncio

import pytest
from django.conf import settings

from storage.cluster import node_watch, nodes
from storage.cluster.node_watch import NodeSilent, NodeWatch
from storage.cluster.nodes import Node
from storage.domain.errors import ServerBusy
from storage.runtime.threads import in_thread
from storage.sql.django import execute, fetch
from storage.sql.lanes import Lanes
from tests.sql import citus
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

ON_A, ON_B = "a", "z"  # partitions
A, B = Node("a", 5432), Node("b", 5433)


@pytest.fixture
def cluster():
    """Register two nodes; b does not answer."""
    with citus.installed():
        execute("INSERT INTO pg_dist_node VALUES ('a', 5432, 'primary', true, true, true)")
        execute("INSERT INTO pg_dist_node VALUES ('b', 5433, 'primary', true, true, false)")
        execute("INSERT INTO pg_dist_shard_placement VALUES (1, 'a', 5432), (2, 'b', 5433)")
        yield


@pytest.fixture
async def watch(cluster, monkeypatch):
    monkeypatch.setattr(node_watch, "_SUSPICIOUS", 0.01)
    monkeypatch.setattr(node_watch, "_PAUSE", 0.01)
    monkeypatch.setattr(node_watch, "_CALM", 0.0)
    lanes = Lanes(settings.LANES_CONNINFO)
    await lanes.open()
    watch = NodeWatch(settings.LANES_CONNINFO, lanes)
    yield watch
    await watch.close()
    lanes.close()


async def hang():
    await asyncio.Event().wait()


async def answer():
    return "answered"


def run(watch, partition, operation):
    return asyncio.wait_for(watch.run("distributed_1", lambda: partition, operation), 60)


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_requests_of_a_silent_node_are_refused_and_others_go_on(watch, caplog):
    released = asyncio.Event()

    async def answer_later():
        await released.wait()
        return "late"

    other = asyncio.ensure_future(run(watch, ON_A, answer_later))
    with pytest.raises(NodeSilent):  # it waited when the node was found to be silent
        await run(watch, ON_B, hang)
    assert watch.silent == {B}

    asked = []
    for partition in (ON_B, None):
        with pytest.raises(ServerBusy):  # at once: nothing is asked of the node
            await run(watch, partition, lambda: asked.append(1) or answer())
    assert asked == []
    assert await run(watch, ON_A, answer) == "answered"
    assert not other.done()
    released.set()
    assert await other == "late"
    assert caplog.text.count("The node b:5433 of the cluster does not answer") == 1


async def test_a_recovered_node_is_used_again(watch, caplog):
    with pytest.raises(NodeSilent):
        await run(watch, ON_B, hang)
    await in_thread(execute, "UPDATE pg_dist_node SET is_up = true")
    await until(lambda: not watch.silent)
    assert await run(watch, ON_B, answer) == "answered"
    assert "The node b:5433 of the cluster answers again" in caplog.text


async def test_slow_nodes_are_waited_for(watch):
    await in_thread(execute, "UPDATE pg_dist_node SET is_up = true")
    released = asyncio.Event()

    async def answer_later():
        await released.wait()
        return "late"

    slow = asyncio.ensure_future(run(watch, ON_B, answer_later))
    await until(lambda: watch._looking is not None)
    await until(lambda: watch._looking is None)
    assert watch.silent == frozenset() and not slow.done()
    released.set()
    assert await slow == "late"


async def test_a_node_that_falls_silent_after_a_look_is_found(watch, monkeypatch):
    monkeypatch.setattr(node_watch, "_CALM", 0.05)
    await in_thread(execute, "UPDATE pg_dist_node SET is_up = true")
    waiting = asyncio.ensure_future(run(watch, ON_B, hang))
    await until(lambda: watch._looking is not None)
    await until(lambda: watch._looking is None)
    await in_thread(execute, "UPDATE pg_dist_node SET is_up = nodename <> 'b'")
    with pytest.raises(NodeSilent):
        await waiting


async def test_a_request_that_gets_its_turn_when_it_is_abandoned_does_not_go_on(watch, monkeypatch):
    turn = asyncio.get_running_loop().create_future()
    abandon = node_watch._Request.abandon

    async def wait_for_turn_and_node():
        await turn
        await asyncio.sleep(5)  # the node does not answer

    def give_turn_and_abandon(request):
        turn.set_result(None)
        abandon(request)

    monkeypatch.setattr(node_watch._Request, "abandon", give_turn_and_abandon)
    with pytest.raises(NodeSilent):
        await run(watch, ON_B, wait_for_turn_and_node)


async def test_a_failing_operation_raises_its_error(watch):
    async def fail():
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await run(watch, ON_A, fail)


def test_unresponsive_nodes_are_named(cluster):
    assert nodes.unanswering() == [B]


def test_a_node_that_stops_while_it_is_asked_is_not_waited_for(cluster, monkeypatch):
    monkeypatch.setattr(nodes, "LIMIT", 0.0)
    monkeypatch.setattr(nodes, "_PATIENCE", 3.0)
    execute(
        "CREATE OR REPLACE FUNCTION citus_check_connection_to_node(name text, port integer) RETURNS boolean"
        " LANGUAGE sql AS $$ SELECT true FROM pg_sleep(CASE name WHEN 'b' THEN 600 ELSE 0 END) $$"
    )
    assert nodes.unanswering() == [B]
    # the statement that was given up, which would keep indexes from being made
    asks = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT citus_check%' AND state = 'active'"
    wait_for(lambda: not fetch(asks), "the end of the statement")


def test_a_database_other_than_a_coordinator_has_no_nodes(db):
    assert nodes.unanswering() == []
