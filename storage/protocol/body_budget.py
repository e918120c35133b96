"""The memory that the large request bodies of a process may take together; more of them wait for their turn."""

import asyncio
from collections import deque
from typing import Final

from storage.domain.errors import ServerBusy

PATIENCE: Final = 20.0  # seconds a body waits before its request gets ServerBusy
SLOWEST: Final = 35_000  # bytes a second; a client that sends more slowly would keep its share for too long
SHORTEST: Final = 30.0  # seconds that any body may take


def longest_arrival(size: int) -> float:
    """Return the seconds that a body of so many bytes may take to arrive."""
    return max(SHORTEST, size / SLOWEST)


class BodyBudget:
    """Bytes that are read and worked on at a time, given in the order of requests.

    A batch takes five times its size until it is answered, most of it while it waits for the database, which works on
    eight statements at a time.
    """

    def __init__(self, size: int) -> None:
        self.free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def reserve(self, size: int) -> "asyncio.Future[None]":
        """Return what is done when the bytes are reserved, with ServerBusy if that takes too long."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((size, turn))
        self._admit()
        if not turn.done():
            timer = loop.call_later(PATIENCE, self._give_up, turn)
            turn.add_done_callback(lambda _: timer.cancel())
        return turn

    def release(self, size: int) -> None:
        self.free += size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self.free):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.free -= size
                turn.set_result(None)

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if not turn.done():
            turn.set_exception(ServerBusy())
            self._admit()
