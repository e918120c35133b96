"""Presence board of a process: one task queries the users at all tables with open streams."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

from storage.domain.access.presence import PresentTab
from storage.domain.errors import ServerBusy
from storage.presence import presence
from storage.presence.presence import HEARTBEAT, Tab
from storage.runtime.threads import in_access_thread

logger = logging.getLogger(__name__)

_TOGETHER: Final = 0.1  # seconds for which news is collected


class PresenceBoard:
    """Tabs of this process, and all known tabs at the same tables."""

    def __init__(self) -> None:
        self._process = secrets.token_hex(8)
        self._tabs: list[Tab] = []  # tabs of each stream; a tab that connects again has two for a while
        self._new: set[Tab] = set()
        self._seen: dict[int, list[PresentTab]] = {}  # by table
        self._task: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()

    async def follow(self, tab: Tab) -> AsyncGenerator[Sequence[PresentTab], None]:
        """Yield the tabs at the same table, this one included, now and on every change."""
        self._enter(tab)
        try:
            known: Sequence[PresentTab] | None = None
            while True:
                news, seen = self._news, self._seen.get(tab.table_id)
                # not before this tab is among them: the browser then says what it shows meanwhile
                if seen is not None and seen != known and tab not in self._new:
                    known = seen
                    yield seen
                else:
                    await news.wait()
        finally:
            self._leave(tab)

    def announce(self, table_id: int) -> None:
        """Query again after a tab of another process has come, gone or moved."""
        if any(it.table_id == table_id for it in self._tabs):
            self._wanted.set()

    async def close(self) -> None:
        """Wait until other processes know that this one's streams have ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _enter(self, tab: Tab) -> None:
        if self._task is None:
            self._wanted, self._news = asyncio.Event(), asyncio.Event()  # events in this event loop
            self._task = asyncio.create_task(self._run())
        self._tabs.append(tab)
        self._new.add(tab)
        self._wanted.set()

    def _leave(self, tab: Tab) -> None:
        self._tabs.remove(tab)
        if not any(it.table_id == tab.table_id for it in self._tabs):
            self._seen.pop(tab.table_id, None)
        if any(it.name == tab.name for it in self._tabs):
            self._wanted.set()
            return  # the tab has connected again
        self._new = {it for it in self._new if it.name != tab.name}
        task = asyncio.create_task(self._forget(tab))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _forget(self, tab: Tab) -> None:
        try:
            await in_access_thread(partial(presence.leave, self._process, [tab]))
        except ServerBusy:
            pass  # it expires
        except Exception:
            logger.exception("Presence could not be ended")
        finally:
            self._wanted.set()

    async def _run(self) -> None:
        """Send heartbeats until no tab is left."""
        try:
            while self._tabs:
                self._wanted.clear()
                try:
                    await self._beat()
                except ServerBusy:
                    pass  # tried again after a while
                except Exception:
                    logger.exception("Presence could not be read")
                await self._wait()
        finally:
            self._task = None

    async def _wait(self) -> None:
        """Wait for a change or the next heartbeat."""
        try:
            async with asyncio.timeout(HEARTBEAT):
                await self._wanted.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_TOGETHER)

    async def _beat(self) -> None:
        tabs, new = {it.name: it for it in self._tabs}.values(), set(self._new)
        present = await in_access_thread(partial(presence.beat, self._process, tabs, new))
        self._new -= new
        seen: dict[int, list[PresentTab]] = {it.table_id: [] for it in tabs if it in self._tabs}
        for it in present:
            if it.table_id in seen:
                seen[it.table_id].append(it)
        self._seen = seen
        news, self._news = self._news, asyncio.Event()
        news.set()


board: Final = PresenceBoard()


def announce(table_id: int) -> None:
    """Query the presence at a table again, on the event loop, after a notification from another process."""
    board.announce(table_id)


async def close() -> None:
    """Remove this process's tabs from the presence."""
    await board.close()
