"""Throughput limit of a table in a Cosmos account, in request units per second."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from storage.domain.errors import TooManyRequests
from storage.sql.lanes import Lanes
from storage.sql.throughput import take

READ: Final = 1.0
WRITE: Final = 5.0
QUERY: Final = 3.0
ENTITY: Final = 0.1  # for each entity of an answer to a query
_PORTION: Final = 0.1  # seconds
_KEPT_FOR: Final = 1.0  # seconds in which a portion must be used
_KEPT: Final = 10_000  # tables


@dataclass(slots=True)
class _Share:
    """Share of a table's units granted to a process; times are on its clock."""

    units: float = 0.0  # negative: owed
    expires_at: float = 0.0
    refused_until: float = 0.0
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Throughput:
    """Request units granted to one process."""

    def __init__(self, lanes: Lanes, clock: Callable[[], float] = monotonic) -> None:
        self._lanes = lanes
        self._clock = clock
        self._shares: dict[tuple[int, int], _Share] = {}  # by table and limit

    async def admit(self, table: int, limit: int) -> None:
        """Admit a request, or raise TooManyRequests if the units are used up."""
        share = self._share(table, limit)
        if self._has_units(share):
            return
        async with share.taking:
            # others may have taken or been refused meanwhile
            if self._has_units(share):
                return
            wait = share.refused_until - self._clock()
            if wait <= 0:
                wait = await self._take(share, table, limit)
        if wait > 0:
            raise TooManyRequests(**{"x-ms-retry-after-ms": str(math.ceil(wait * 1000))})

    def charge(self, table: int, limit: int, units: float) -> None:
        self._share(table, limit).units -= units

    def _share(self, table: int, limit: int) -> _Share:
        share = self._shares.get((table, limit))
        if share is None:
            if len(self._shares) >= _KEPT:
                self._shares.clear()
            share = self._shares[table, limit] = _Share()
        return share

    def _has_units(self, share: _Share) -> bool:
        return share.units > 0 and self._clock() < share.expires_at

    async def _take(self, share: _Share, table: int, limit: int) -> float:
        """Request a portion of units; return 0, or the seconds until some are available."""
        share.units = min(share.units, 0.0)
        owed, portion = -share.units, limit * _PORTION
        now = self._clock()
        taken = await self._lanes.run(take(table, limit, owed, portion))
        share.units += owed
        if taken.is_granted:
            share.units += portion
            share.expires_at = now + _KEPT_FOR
            return 0.0
        wait = max(0.001, -taken.left / limit)
        share.refused_until = now + wait
        return wait
