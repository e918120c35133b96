"""Handling of requests on distributed tables while a node of the cluster hangs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

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


class _Request(Generic[T]):
    """Operation that waits for nodes, awaited where it is, because a task of its own would take as long as a get."""

    __slots__ = ("_operation", "_waited_for", "is_abandoned", "partition", "relation", "timer")

    def __init__(self, relation: str, partition: Partition, operation: Awaitable[T]) -> None:
        self.relation = relation
        self.partition = partition
        self.is_abandoned = False
        self.timer: asyncio.TimerHandle  # starts the next look at the nodes
        self._operation = operation
        self._waited_for: asyncio.Future[Any] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        steps = self._operation.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                self._waited_for = steps.send(None) if thrown is None else steps.throw(thrown)
            except StopIteration as ended:
                return cast("T", ended.value)
            thrown = None
            if self.is_abandoned:  # its turn came at the same moment
                self._waited_for.cancel(ABANDONED)
            try:
                yield self._waited_for
            except BaseException as error:
                thrown = error

    def abandon(self) -> None:
        self.is_abandoned = True
        if self._waited_for is not None:
            self._waited_for.cancel(ABANDONED)


class NodeWatch(RelationWatch):
    """Watch over the nodes of the cluster, as known to one process."""

    def __init__(self, conninfo: str, lanes: Lanes) -> None:
        self._conninfo = conninfo
        self._lanes = lanes
        self._silent: frozenset[Node] = frozenset()
        self._running: set[_Request[Any]] = set()
        self._abandoning: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._calm_until = 0.0

    @property
    def silent(self) -> frozenset[Node]:
        return self._silent

    async def close(self) -> None:
        tasks = [*self._abandoning, *([] if self._looking is None else [self._looking])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run(self, relation: str, partition: Partition, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation on a distributed relation; raises NodeSilent if its nodes do not respond."""
        if self._silent:
            await self._check(relation, partition)
        request = _Request(relation, partition, operation())
        self._running.add(request)
        self._suspect_later(request)
        try:
            return await request
        except asyncio.CancelledError:
            if request.is_abandoned:
                raise NodeSilent from None
            raise
        except Canceled:
            self._look()
            raise
        finally:
            request.timer.cancel()
            self._running.discard(request)

    def _suspect_later(self, request: _Request[Any]) -> None:
        request.timer = asyncio.get_running_loop().call_later(_SUSPICIOUS, self._suspect, request)

    def _suspect(self, request: _Request[Any]) -> None:
        """Look at the nodes because of a request that has waited, and again, as the first time may be too soon."""
        self._look()
        self._suspect_later(request)

    async def _abandon(self, request: _Request[Any]) -> None:
        """Cancel a request if the node with its partition does not respond."""
        try:
            await self._check(request.relation, request.partition)
        except ServerBusy:
            if request in self._running:
                request.abandon()

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
        loop = asyncio.get_running_loop()
        try:
            while True:
                with suppress(CoordinatorSilent):
                    self._note(await look_for_unanswering(self._conninfo))
                    self._calm_until = loop.time() + _CALM
                if not self._silent:
                    return
                await asyncio.sleep(_PAUSE)
        except Exception:
            logger.exception("It is not known which nodes of the cluster answer")
            self._note(frozenset())
            self._calm_until = loop.time() + _CALM
        finally:
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
        for request in self._running if silent - before else ():
            task = asyncio.get_running_loop().create_task(self._abandon(request))
            self._abandoning.add(task)
            task.add_done_callback(self._abandoning.discard)
