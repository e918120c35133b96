"""Time for several statements together, after which the rest is left undone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from storage.domain.errors import StorageError
from storage.sql import django as sql
from storage.sql.failures import Canceled
from storage.sql.statement import Statement

T = TypeVar("T")

_SHORTEST: Final = timedelta(milliseconds=5)  # with less time left, no statement is started


@dataclass
class TimeBudget:
    """Runner of statements that share a time limit from now on."""

    limit: timedelta
    clock: Callable[[], float] = time.monotonic
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = self.clock() + self.limit.total_seconds()

    def run(self, statement: Statement[T]) -> T | None:
        """Run a statement in the time that is left; None if that is too short, or the statement fails."""
        left = timedelta(seconds=self._deadline - self.clock())
        if left < _SHORTEST:
            return None
        try:
            return sql.run_in_lane(statement, limit=left)
        except (Canceled, StorageError):
            return None
