"""The throughput limit of a table in an account of the kind cosmos: request units per second, as there.

A request is admitted while units are left, and is charged afterwards, so that any request can be carried out at all.
What an operation costs is a rule of thumb here: the service charges by size, index and consistency [inferred].
"""

import math
from collections.abc import Callable
from time import monotonic
from typing import Final

from storage.domain.errors import TooManyRequests

READ: Final = 1.0
WRITE: Final = 5.0
QUERY: Final = 3.0
ENTITY: Final = 0.1  # of an answer to a query
_KEPT: Final = 10_000  # tables


class Throughput:
    """The units that are left to each table in this process, of ``share`` of its limit."""

    def __init__(self, share: float = 1.0, clock: Callable[[], float] = monotonic) -> None:
        self._share = share
        self._clock = clock
        self._left: dict[int, tuple[float, float]] = {}  # units, and when that was

    def admit(self, table: int, limit: int) -> None:
        """Raise TooManyRequests when nothing is left of this second's units."""
        units = self._units(table, limit)
        if units <= 0:
            wait = max(1, math.ceil((1 - units) / (limit * self._share) * 1000))
            raise TooManyRequests(**{"x-ms-retry-after-ms": str(wait)})

    def charge(self, table: int, limit: int, units: float) -> None:
        left = self._units(table, limit) - units
        if len(self._left) >= _KEPT:
            self._left.clear()
        self._left[table] = (left, self._clock())

    def _units(self, table: int, limit: int) -> float:
        """The units that are left now; those of one second at most are saved up."""
        limit_here = limit * self._share
        if table not in self._left:
            return limit_here
        left, then = self._left[table]
        return min(limit_here, left + (self._clock() - then) * limit_here)
