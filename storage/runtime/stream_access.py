"""Access checks of open streams, repeated when access changes are announced, and regularly."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

from storage.domain.errors import ServerBusy
from storage.runtime.threads import in_access_thread
from storage.sql.notify import notify_access

LIMIT: Final = 4.0  # seconds an answer is used for, so that a stream ends within 5 of the revocation


def announce_change() -> None:
    """Have all streams on all servers recheck their access after the commit."""
    notify_access()


class AccessChanges:
    """Announcements to this process that users or tokens may have lost access."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.number = 0
        self._news = asyncio.Event()

    def announce(self) -> None:
        self.number += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def wait_after(self, number: int) -> None:
        """Wait until the number of announcements differs from ``number``."""
        while self.number == number:
            await self._news.wait()


class StreamAccess:
    """Access of one stream, granted when this is created."""

    def __init__(self, is_allowed: Callable[[], bool], changes: AccessChanges) -> None:
        self._is_allowed = is_allowed
        self._changes = changes
        self._heard = changes.number
        self._valid_until = changes.clock() + LIMIT

    async def check(self) -> bool | None:
        """Return whether access continues; None if the database does not respond, so that nothing may be sent."""
        now, heard = self._changes.clock(), self._changes.number
        if heard == self._heard and now < self._valid_until:
            return True
        try:
            is_allowed = await in_access_thread(self._is_allowed)
        except ServerBusy:
            return None
        # streams that were announced while the question was under way are asked about again
        self._heard, self._valid_until = heard, now + LIMIT
        return is_allowed

    async def wait_until_due(self) -> None:
        """Wait until the access must be checked again."""
        try:
            async with asyncio.timeout(max(0.0, self._valid_until - self._changes.clock())):
                await self._changes.wait_after(self._heard)
        except TimeoutError:
            pass
