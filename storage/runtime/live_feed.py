"""Live change feed for all streams of a process: one poller wakes them, and they share reads."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Final

from storage.domain.errors import ServerBusy
from storage.domain.history.feed import FeedPage
from storage.history.feed import Feed, read_steps
from storage.sql import feed as statements
from storage.sql.lanes import Lanes

logger = logging.getLogger(__name__)

INTERVAL: Final = 0.4  # seconds between looks at the database
_PAUSE: Final = 1.0  # seconds after the database did not answer
_TOP: Final = 500

Read = tuple[FeedPage, str]  # a page, and the token of the next one


class LiveFeed:
    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._streams = 0
        self._poller: asyncio.Task[None] | None = None
        # looks are numbered, so that a stream knows which of them were begun after it had read
        self._begun = 0
        self._published = 0
        self._snapshot = ""
        self._news = asyncio.Event()
        self._reading: dict[tuple[Feed, str], asyncio.Task[Read]] = {}

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    async def follow(self, feed: Feed, token: str, page: FeedPage) -> AsyncGenerator[Read, None]:
        """Yield pages after a page and its token, including empty ones with fresher tokens."""
        with self._counted():
            next_look = self._begun + 1
            while True:
                try:
                    if page.position.ticks and not page.has_more:
                        # a change on another server is not seen in the snapshots of this one
                        await asyncio.sleep(2 * INTERVAL)
                    if page.has_more or page.position.ticks:
                        page, token = await self._lanes.walk(read_steps(feed, token, _TOP))
                    else:
                        await self._wait_for_look(next_look)
                        page, token = await self._read_together(feed, token)
                except ServerBusy:
                    await asyncio.sleep(_PAUSE)
                    continue
                next_look = self._begun + 1
                yield page, token

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._streams += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            self._streams -= 1
            if not self._streams and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    async def _wait_for_look(self, number: int) -> None:
        while self._published < number:
            await self._news.wait()

    async def _read_together(self, feed: Feed, token: str) -> Read:
        task = self._reading.get((feed, token))
        if task is None:
            task = asyncio.create_task(self._lanes.walk(read_steps(feed, token, _TOP, target=self._snapshot)))
            self._reading[feed, token] = task
        # the others wait for it too if this stream ends
        return await asyncio.shield(task)

    async def _poll(self) -> None:
        while True:
            try:
                await self._look()
            except ServerBusy:
                await asyncio.sleep(_PAUSE)
            except Exception:
                logger.exception("The change feed could not be read")
                await asyncio.sleep(_PAUSE)
            await asyncio.sleep(INTERVAL)

    async def _look(self) -> None:
        self._begun += 1
        number = self._begun
        snapshot, is_flushed = await self._lanes.run(statements.mark())
        if snapshot == self._snapshot:
            return
        if not is_flushed:
            await self._lanes.run(statements.flush())
        self._snapshot, self._published = snapshot, number
        self._reading.clear()
        news, self._news = self._news, asyncio.Event()
        news.set()
