"""In-memory counters of a process, written to the database in the background.

They count requests, uses of credentials, writes and costly scans.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Generic, TypeVar

from django.db import transaction

from storage.sql.background import commit_asynchronously

K = TypeVar("K", bound=tuple[Any, ...])
V = TypeVar("V")

LATE: Final = timedelta(minutes=30)  # after it, what could not be written is dropped


class Ledger(Generic[K, V]):
    """Counts by key that await writing; subclasses define how to add and store them.

    The stored counts are increased by the counts of a ledger. A ledger that is ``whole`` stores the total of
    a key again until its period is over, so that writing twice is harmless.
    """

    is_whole: ClassVar[bool] = False
    settled: ClassVar[timedelta] = timedelta()  # after the start of a period, nothing more is counted in it
    late: ClassVar[timedelta | None] = (
        None  # after the start of a period, its counts are dropped; None: never
    )

    def __init__(self) -> None:
        self._counted: dict[K, V] = {}
        self._unwritten: set[K] = set()

    def write(self) -> None:
        """Store new counts in one transaction, in a fixed key order so that processes cannot deadlock."""
        if self._unwritten:
            with transaction.atomic():
                commit_asynchronously()
                self._store({key: self._counted[key] for key in sorted(self._unwritten, key=self._order)})
        self._clear()

    def give_up(self) -> None:
        """Discard the unwritten counts."""
        self._clear()

    def forget(self, now: datetime) -> None:
        """Drop written counts of past periods and unwritten counts that are too old; keys begin with the period."""
        if self.late is None:
            return
        for key in list(self._counted):
            is_over = key[0] + self.settled < now and key not in self._unwritten
            if is_over or key[0] + self.late < now:
                del self._counted[key]
                self._unwritten.discard(key)

    def _count(self, key: K, value: V) -> None:
        self._counted[key] = value
        self._unwritten.add(key)

    def _clear(self) -> None:
        if not self.is_whole:
            self._counted.clear()
        self._unwritten.clear()

    def _order(self, key: K) -> Any:
        return key

    def _store(self, counted: Mapping[K, V]) -> None:
        raise NotImplementedError
