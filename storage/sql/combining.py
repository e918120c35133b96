"""Writes that wait go to the database together, as one statement: as a group commit does it for the log.

A write that finds fewer than IN_FLIGHT statements of its kind on its table in flight goes at once and alone. Others
wait until one of those returns, and then go together; the first of them runs the statement for all. Each has its own
result and its own error: if the statement fails, nothing of it was done, and each write runs again alone.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from storage.domain.errors import ServerBusy, StorageError
from storage.sql.statement import Statement

IN_FLIGHT: Final = 2  # one is being written to disk while the other is computed
GROUP_LIMIT: Final = 64  # writes in one statement
SIZE_LIMIT: Final = 1024 * 1024  # characters of their parameters; larger writes gain nothing

Run = Callable[[Statement[Any]], Awaitable[Any]]


@dataclass(slots=True)
class _Write:
    """A waiting write. Its turn is a group to run for all, or None when its ``outcome`` is known or it runs alone."""

    statement: Statement[Any]
    turn: "asyncio.Future[list[_Write] | None]"
    outcome: Any = None
    has_outcome: bool = False
    error: Exception | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return self.statement.parameters[:2]

    def settle(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


@dataclass(slots=True)
class _Queue:
    """The writes of one kind on one table."""

    in_flight: int = 0
    waiting: deque[_Write] = field(default_factory=deque)


class Combiner:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._queues: dict[str, _Queue] = {}

    async def run(self, statement: Statement[Any]) -> Any:
        """Run a statement that has a combination, alone or with others."""
        queue = self._queues.get(statement.text)
        if queue is None:
            queue = self._queues[statement.text] = _Queue()
        if queue.in_flight < IN_FLIGHT:
            queue.in_flight += 1
            try:
                return await self._run(statement)
            finally:
                self._go_on(statement.text, queue)
        write = _Write(statement, asyncio.get_running_loop().create_future())
        queue.waiting.append(write)
        try:
            group = await write.turn
        except asyncio.CancelledError:
            if write.turn.done() and not write.turn.cancelled() and write.turn.result():
                self._go_on(statement.text, queue, write.turn.result())
            raise
        if group is not None:
            try:
                await self._run_group(group)
            finally:
                self._go_on(statement.text, queue)
        if write.error is not None:
            raise write.error
        if write.has_outcome:
            return write.outcome
        return await self._run(statement)

    def _go_on(self, text: str, queue: _Queue, left: "list[_Write] | None" = None) -> None:
        """Hand the place of a statement that has returned to the writes that wait, or to those ``left`` of a group."""
        group = [write for write in left or () if not write.turn.done()] or _take(queue.waiting)
        if group:
            group[0].turn.set_result(group)
            return
        queue.in_flight -= 1
        if not queue.in_flight:
            del self._queues[text]

    async def _run_group(self, group: list[_Write]) -> None:
        if len(group) == 1:
            group[0].outcome = await self._run(group[0].statement)
            group[0].has_outcome = True
            return
        # in the order of keys, so that statements on the same entities wait for each other instead of deadlocking
        group = sorted(group, key=lambda write: write.key)
        combination = group[0].statement.combination
        assert combination is not None
        try:
            found = await self._run(combination.statement([write.statement.parameters for write in group]))
        except ServerBusy as error:  # it is unknown whether anything was done
            for write in group:
                write.error = error
        except Exception:
            return  # each has an error of its own, or none
        else:
            for write in group:
                write.has_outcome = True
                try:
                    write.outcome = combination.outcome(found.get(write.key))
                except StorageError as error:
                    write.error = error
        finally:
            for write in group:
                write.settle()


def _take(waiting: deque[_Write]) -> list[_Write]:
    """Take writes on different entities that go together; at least one if any waits."""
    group: list[_Write] = []
    keys: set[tuple[Any, ...]] = set()
    size = 0
    while waiting and len(group) < GROUP_LIMIT:
        write = waiting[0]
        size += sum(len(parameter or "") for parameter in write.statement.parameters)
        if group and (size > SIZE_LIMIT or write.key in keys):
            break
        waiting.popleft()
        if not write.turn.done():  # whoever wanted it is still there
            group.append(write)
            keys.add(write.key)
    return group
