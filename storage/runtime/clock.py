"""Detection of clock jumps, by comparing the clock with a monotonic time."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from storage.domain.errors import StorageError
from storage.runtime.idleness import idleness
from storage.sql import moments
from storage.sql.lanes import Lanes

logger = logging.getLogger(__name__)

_ALLOWED: Final = 3600.0  # seconds of a jump that deletes nothing that matters
_HELD: Final = 3600.0  # seconds after a jump in which nothing is deleted
_NOTED_EVERY: Final = 1.0  # seconds
_NOTED_WHILE_IDLE: Final = 5.0


def passed() -> float:
    """Return a monotonic time in seconds that includes suspension where the system supports it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class ClockWatch:
    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = passed) -> None:
        self._wall = wall
        self._passed = passed
        self._known = (wall(), passed())
        self._held_until: float | None = None

    def may_delete(self) -> bool:
        """Return whether expired records can be deleted, which a clock jump postpones."""
        wall, passed = self._wall(), self._passed()
        jump = (wall - self._known[0]) - (passed - self._known[1])
        if jump <= _ALLOWED:
            self._known = wall, passed
            self._held_until = None
            return True
        if self._held_until is None:
            self._held_until = passed + _HELD
            logger.error(
                "The clock has jumped ahead by %.1f hours. For an hour nothing that has expired is deleted. Set the"
                " clock if it is wrong.",
                jump / 3600,
            )
        if passed < self._held_until:
            return False
        self._known, self._held_until = (wall, passed), None
        return True


async def keep_noting(lanes: Lanes) -> None:
    """Let the database record its clock repeatedly until cancelled, starting before the first write."""
    while True:
        try:
            await lanes.run(moments.present())
        except StorageError:
            pass  # the database is not available, which has been logged
        except Exception:
            logger.exception("The clock of the database could not be noted")
        await asyncio.sleep(_NOTED_WHILE_IDLE if idleness.is_idle() else _NOTED_EVERY)
