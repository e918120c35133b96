"""A replica that is restarted may be behind where it was, until it has replayed its log again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.core.reading import SourceAddress
from storage.domain.errors import ServerBusy
from storage.domain.requests.consistency import Consistency, ReadTerms, Session
from storage.replicas.replicas import Replica, Replicas
from storage.sql.statement import Lane, Statement, integer_at
from tests.replication.postgres import Group, Node, group

pytestmark = pytest.mark.long
BOUNDED = ReadTerms(Consistency.BOUNDED_STALENESS, 60.0)
NUMBER = Statement("SELECT n FROM numbers", (), Lane.KEY, lambda result: integer_at(result, 0, 0))


@pytest.fixture
def nodes(scratch: Path) -> Iterator[Group]:
    with group(scratch / "restarted") as nodes:
        primary = nodes.primary()
        primary.fetch("CREATE TABLE numbers AS SELECT 1 AS n")
        nodes.replica("replica", primary)
        yield nodes


async def test_a_replica_that_is_behind_where_it_was_answers_no_reads(nodes: Group) -> None:
    primary, node = nodes.nodes.values()
    router = Replicas(primary.url(), [SourceAddress("replica", node.url())], 60.0)
    [replica] = router._replicas
    try:
        primary.fetch("UPDATE numbers SET n = 2")
        node.wait_for_position(primary.position())
        await look(router, replica)
        token = ReadTerms(Consistency.SESSION, 60.0, Session(replica.replayed))
        assert await router.choose(BOUNDED) is replica is await router.choose(token)
        assert await replica.lanes.run(NUMBER) == 2

        # before the next look
        restart(node, recovery_min_apply_delay="1h")
        assert node.fetch("SELECT n FROM numbers") == [(1,)]
        for _ in range(3):  # the first finds that its connection is lost
            with pytest.raises(ServerBusy):
                await replica.lanes.run(NUMBER)

        for _ in range(2):
            await look(router, replica)
            assert await router.choose(token) is None

        restart(node, recovery_min_apply_delay="0")
        node.wait_for_position(primary.position())
        for _ in range(2):  # the first finds it restarted once more
            await look(router, replica)
        assert await router.choose(BOUNDED) is replica is await router.choose(token)
        assert await replica.lanes.run(NUMBER) == 2
    finally:
        await router.close()


async def look(router: Replicas, replica: Replica) -> None:
    await router.look_at_primary()
    await router.look_at(replica)


def restart(node: Node, **settings: str) -> None:
    node.kill()
    node.settings |= settings
    node.start()
