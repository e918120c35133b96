"""Handling of requests on distributed tables while a node of the cluster hangs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from storage.cluster.nodes import CoordinatorSilent, Node, look_for_unanswering, node_of
from storage.core.reading import Partition, RelationWatch
from storage.domain.errors import ServerBusy
from storage.sql.failures import Canceled
from storage.sql.lanes import ABANDONED, Lanes

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SUSPICIOUS: Final = 1.0  # seconds after which a request has waited for long
_PAUSE: Final = 1.0  # seconds between looks at nodes that do not answer
_CALM: Final = 5.0  # seconds after a look that found nothing: requests may just be slow


class NodeSilent(ServerBusy):
    """The node with the entities does not respond."""


class NodeWatch(RelationWatch):
    """Watch over the nodes of the cluster, as known to one process."""

    def __init__(self, conninfo: str, lanes: Lanes) -> None:
        self._conninfo = conninfo
        self._lanes = lanes
        self._silent: frozenset[Node] = frozenset()
        self._news: asyncio.Future[None] | None = None  # done, and replaced, when another node is silent
        self._looking: asyncio.Task[None] | None = None
        self._calm_until = 0.0

    @property
    def silent(self) -> frozenset[Node]:
        return self._silent

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def run(self, relation: str, partition: Partition, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on a distributed relation; raises NodeSilent if its nodes do not respond."""
        if self._silent:
            await self._check(relation, partition)
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(operation())
        timer = loop.call_later(_SUSPICIOUS, self._look)
        try:
            while not running.done():
                if self._news is None:
                    self._news = loop.create_future()
                await asyncio.wait((running, self._news), return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    await self._check(relation, partition)
            return running.result()
        except NodeSilent:
            running.cancel(ABANDONED)
            raise
        except Canceled:
            self._look()
            raise
        finally:
            timer.cancel()
            if not running.done():
                running.cancel()

    async def _check(self, relation: str, partition: Partition) -> None:
        """Raise NodeSilent if one of the partitions is on an unresponsive node."""
        silent = self._silent
        if not silent:
            return
        key = partition()
        if key is None or silent & await self._lanes.run(node_of(relation, key)):
            raise NodeSilent

    def _look(self) -> None:
        """Start checking the nodes, unless they were checked just now."""
        loop = asyncio.get_running_loop()
        if self._looking is None and loop.time() >= self._calm_until:
            self._looking = loop.create_task(self._look_until_all_answer())

    async def _look_until_all_answer(self) -> None:
        try:
            while True:
                with suppress(CoordinatorSilent):
                    self._note(await look_for_unanswering(self._conninfo))
                if not self._silent:
                    return
                await asyncio.sleep(_PAUSE)
        except Exception:
            logger.exception("It is not known which nodes of the cluster answer")
            self._note(frozenset())
        finally:
            self._calm_until = asyncio.get_running_loop().time() + _CALM
            self._looking = None

    def _note(self, silent: frozenset[Node]) -> None:
        before, self._silent = self._silent, silent
        for node in sorted(silent - before):
            logger.warning(
                "The node %s of the cluster does not answer. Requests for its partitions are answered with 503 until it"
                " does.",
                node,
            )
        for node in sorted(before - silent):
            logger.warning("The node %s of the cluster answers again.", node)
        if silent - before and self._news is not None:
            self._news.set_result(None)
            self._news = None
