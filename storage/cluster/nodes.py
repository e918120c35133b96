"""Detection of unresponsive nodes of a Citus cluster, by asking the coordinator on a separate connection.

A statement that waits for a node whose processes or machine have stopped cannot even be cancelled: the coordinator asks
the node to cancel it, and waits for that as well. A connection that waited before would be lost with it, so only a new
one finds out, within a limit that Citus keeps for new connections.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import get_ident
from time import monotonic
from typing import Any, Final, NamedTuple

import psycopg
from django.conf import settings
from psycopg import AsyncConnection

from storage.health.findings import NotExamined
from storage.sql.interruption import interrupt, shut_down
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

logger = logging.getLogger(__name__)

LIMIT: Final = 2.0  # seconds in which a node has to accept a connection
# Seconds for all answers of the coordinator. If the node stops after it has accepted the connection, the coordinator
# waits for it without a limit, and for the answer to a cancellation too.
_PATIENCE: Final = 2 * LIMIT
_INTERVAL: Final = 10.0  # seconds between looks while a thread waits for nodes

# when the connection is given up, its backend may not wait on with its snapshot, which keeps indexes from being made
_PREPARE: Final = (
    f"SET citus.node_connection_timeout = {LIMIT * 1000:.0f}; SET client_connection_check_interval = '1s'"
)
_NODES: Final = """
SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND shouldhaveshards
ORDER BY nodename, nodeport
"""
_IS_COORDINATOR: Final = "SELECT 1 WHERE to_regclass('pg_dist_node') IS NOT NULL"
_CHECK: Final = "SELECT citus_check_connection_to_node(%s, %s)"
# the shard once, and not for each placement
_NODE_OF: Final = """
SELECT nodename, nodeport::text FROM pg_dist_shard_placement
WHERE shardid = (SELECT get_shard_id_for_distribution_column(to_regclass($1), $2::text))
"""


class CoordinatorSilent(NotExamined):
    """The coordinator does not respond."""


class Node(NamedTuple):
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


def node_of(relation: str, partition: str) -> Statement[frozenset[Node]]:
    """Return the statement for the nodes that hold a partition, from the coordinator's metadata."""

    def read(result: Result) -> frozenset[Node]:
        return frozenset(
            Node(text_at(result, row, 0), integer_at(result, row, 1)) for row in range(result.ntuples)
        )

    return Statement(_NODE_OF, (relation, partition), Lane.KEY, read)


def unanswering() -> list[Node]:
    """Return the nodes that do not accept a connection in time; raises CoordinatorSilent."""
    return sorted(asyncio.run(look_for_unanswering(settings.LANES_CONNINFO)))


async def look_for_unanswering(conninfo: str) -> frozenset[Node]:
    """Return the nodes that do not accept a connection in time; raises CoordinatorSilent."""
    try:
        async with _asking(conninfo) as opened:
            if await (await opened.execute(_IS_COORDINATOR)).fetchone() is None:
                return frozenset()
            nodes = [Node(*row) for row in await (await opened.execute(_NODES)).fetchall()]
        return frozenset([it for it in nodes if not await _answers(conninfo, it)])
    except (psycopg.Error, TimeoutError, OSError) as error:
        raise CoordinatorSilent(str(error)) from error


async def _answers(conninfo: str, node: Node) -> bool:
    async with _asking(conninfo) as opened:
        await opened.execute(_PREPARE)
        began = monotonic()
        try:
            return await (await opened.execute(_CHECK, node)).fetchone() == (True,)
        except psycopg.OperationalError:
            if monotonic() - began < LIMIT:
                raise
            return False


@asynccontextmanager
async def _asking(conninfo: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Connect to the coordinator until ``_PATIENCE`` ends."""
    async with asyncio.timeout(_PATIENCE):
        opened = await AsyncConnection.connect(conninfo, autocommit=True)
    # not a timeout: psycopg would ask for a cancellation first
    limit = asyncio.get_running_loop().call_later(_PATIENCE, shut_down, opened)
    try:
        yield opened
    finally:
        limit.cancel()
        await opened.close()


@contextmanager
def interrupting_if_unanswered() -> Iterator[None]:
    """Terminate the connection on which this thread waits if a node stops responding."""
    ended, thread = threading.Event(), get_ident()

    def watch() -> None:
        while not ended.wait(_INTERVAL):
            try:
                lost = unanswering()
            except CoordinatorSilent:
                continue  # code that waits for the coordinator finds that out itself
            if lost and not ended.is_set():
                logger.warning("%s does not answer. A connection that waits for it is closed.", lost[0])
                interrupt(thread)

    watcher = threading.Thread(target=watch, name="nodes", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
