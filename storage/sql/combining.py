"""Combination of waiting statements into one, like a group commit.

A statement runs at once and alone while fewer than IN_FLIGHT of its kind and table are running. Others wait
until one of those returns, and then run together. Each has its own result: if the combined statement fails,
it has had no effect, and each runs again alone. A statement without a result in the combined one also runs
again alone, and gets its own error.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from storage.domain.errors import ServerBusy
from storage.domain.requests.consistency import Session
from storage.sql.failures import Canceled
from storage.sql.statement import Combination, Parameters, Statement

IN_FLIGHT: Final = 2  # one is being written to disk while the other is computed
FAR_IN_FLIGHT: Final = (
    6  # to a server that is far away: with two, statements would wait half a round trip for a place
)
GROUP_LIMIT: Final = 64  # statements that go together
SIZE_LIMIT: Final = 1024 * 1024  # characters of their parameters; larger ones gain nothing
PATIENCE: Final = 20.0  # seconds after which a waiting statement gets ServerBusy


class Run(Protocol):
    def __call__(self, statement: Statement[Any], session: Session | None = None, /) -> Awaitable[Any]: ...


_ALONE: Final = object()  # instead of a result: the statement is to run alone


@dataclass(slots=True)
class _Waiting:
    statement: Statement[Any]
    session: Session | None
    outcome: "asyncio.Future[Any]"
    since: float

    @property
    def key(self) -> Parameters:
        return self.statement.parameters[:2]


@dataclass(slots=True)
class _Queue:
    """Running and waiting statements of one kind on one table."""

    in_flight: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)


class Combiner:
    def __init__(self, run: Run, is_far: Callable[[], bool] = lambda: False) -> None:
        """Create a combiner of statements, which ``run`` executes."""
        self._run = run
        self._is_far = is_far
        self._queues: dict[Combination[Any], _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, statement: Statement[Any], session: Session | None = None) -> Any:
        """Run a combinable statement, alone or combined; ``session`` is as in lanes."""
        combination = statement.combination
        assert combination is not None
        queue = self._queues.get(combination)
        if queue is None:
            queue = self._queues[combination] = _Queue()
        if queue.in_flight < IN_FLIGHT or (queue.in_flight < FAR_IN_FLIGHT and self._is_far()):
            queue.in_flight += 1
            try:
                return await self._run(statement, session)
            finally:
                self._go_on(combination, queue)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(statement, session, loop.create_future(), loop.time())
        queue.waiting.append(waiting)
        outcome = await waiting.outcome
        return await self._run(statement, session) if outcome is _ALONE else outcome

    def _go_on(self, combination: Combination[Any], queue: _Queue) -> None:
        """Start waiting statements when a running one has returned."""
        loop = asyncio.get_running_loop()
        while queue.waiting and queue.waiting[0].since < loop.time() - PATIENCE:
            late = queue.waiting.popleft().outcome
            if not late.done():
                late.set_exception(ServerBusy())
        group = _take(queue.waiting, combination.is_write)
        if group:
            task = loop.create_task(self._run_group(combination, queue, group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        queue.in_flight -= 1
        if not queue.in_flight:
            del self._queues[combination]

    async def _run_group(self, combination: Combination[Any], queue: _Queue, group: list[_Waiting]) -> None:
        results: Mapping[Any, Any] = {}
        error: Exception | None = None
        try:
            if len(group) == 1:
                results = {group[0].key: await self._run(group[0].statement, group[0].session)}
            else:
                # in the order of keys, so that writes of the same entities wait for each other instead of deadlocking
                several = sorted({waiting.key: waiting.statement.parameters for waiting in group}.values())
                results = await self._run_several(combination.statement(several), group)
        except Exception as failure:
            # after ServerBusy it is unknown whether anything was done; what was too slow is not asked for again
            if len(group) == 1 or isinstance(failure, ServerBusy | Canceled):
                error = failure
        finally:
            self._go_on(combination, queue)
        for waiting in group:
            if waiting.outcome.done():
                continue
            if error is not None:
                waiting.outcome.set_exception(error)
            else:
                waiting.outcome.set_result(results.get(waiting.key, _ALONE))

    async def _run_several(self, statement: Statement[Any], group: list[_Waiting]) -> Any:
        """Run a combined statement and advance the log position of all its sessions."""
        sessions = [waiting.session for waiting in group if waiting.session is not None]
        if not sessions:
            return await self._run(statement)
        common = Session()
        result = await self._run(statement, common)
        if common.position is not None:
            for session in sessions:
                session.note(common.position)
        return result


def _take(waiting: deque[_Waiting], is_write: bool) -> list[_Waiting]:
    """Take compatible statements from the queue, at least one; writes must be of different entities."""
    group: list[_Waiting] = []
    keys: set[Parameters] = set()
    size = 0
    while waiting and len(group) < GROUP_LIMIT:
        first = waiting[0]
        size += sum(len(parameter or "") for parameter in first.statement.parameters)
        if group and (size > SIZE_LIMIT or (is_write and first.key in keys)):
            break
        waiting.popleft()
        if not first.outcome.done():  # skip requests that were canceled
            group.append(first)
            keys.add(first.key)
    return group
