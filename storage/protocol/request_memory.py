"""Memory budget of a process for requests and responses in flight, divided into shares.

=========  =====  ==============================================  ==================================================
share      part   what takes it                                   when it is full
=========  =====  ==============================================  ==================================================
service    3/8    bodies of the Table service that are worked on  large ones wait, then ``ServerBusy``
console    1/8    bodies of the console and its API               the same
answers    3/8    answers that clients do not take                the connection that has waited longest is closed
arriving   1/8    heads and small bodies that are incomplete      the connection that has sent longest is refused
=========  =====  ==============================================  ==================================================
"""

import asyncio
import ctypes
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from storage.domain.errors import RequestMemoryFull, ServerBusy
from storage.protocol.uvicorn_parts import HIGH_WATER_LIMIT

DEFAULT: Final = 512 << 20  # bytes, of a process that no options were given to
SMALL: Final = HIGH_WATER_LIMIT  # bytes; a larger body may have to wait for its turn
# Bytes of memory for each byte of a body until its request is answered: its parts, the properties read from it, and the
# parameters of its statement. Measured by `python3 -m tests.faults.pressure --memory 20G`, where nothing waits: 7 to 8
# with texts of ASCII, 9 with other alphabets and binary properties.
FACTOR: Final = 9
PATIENCE: Final = 20.0  # seconds a large body waits before its request gets ServerBusy
SLOWEST: Final = 35_000  # bytes a second; a client that sends more slowly would keep its share for too long
SHORTEST: Final = 30.0  # seconds that any body may take

_SMALL: Final = SMALL * FACTOR
_TRIM: Final = 64 << 20  # bytes of bodies after which freed memory is given back to the system
_QUIET: Final = 1.0  # seconds without a large body before that
_WAITING: Final = 128 * 1024  # bytes that the connection of a waiting body holds


def longest_arrival(size: int) -> float:
    """Return the seconds within which a body of so many bytes must arrive."""
    return max(SHORTEST, size / SLOWEST)


class BodyBudget:
    """Memory budget of bodies being processed."""

    def __init__(self, size: int, count_refusal: Callable[[], None] = lambda: None) -> None:
        self._count_refusal = count_refusal
        self.used = 0
        self._large = 0  # bytes of it that large bodies take
        self._waiting: deque[tuple[int, float, asyncio.Future[int]]] = deque()
        self._released = 0  # by large bodies since memory was given back
        self.resize(size)

    def resize(self, size: int) -> None:
        self.size = size
        self._most = size - size // 8
        self._most_large = size - size // 4
        self._most_small = size // 8
        self._places = max(4, size // 8 // _WAITING)

    def take(self, size: int, held: int = 0) -> int:
        """Reserve memory for a body in place of its present share; return the new share. Raises ServerBusy."""
        weight = size * FACTOR
        used = self.used - held + weight
        if size > SMALL:
            others = self._large - (held if held > _SMALL else 0)
            if not self._has_room(others, weight):
                raise self._busy()
            self._large = others + weight
        elif used > self._most and used - self._large > self._most_small:
            raise self._busy()
        self.used = used
        return weight

    def _has_room(self, others: int, weight: int) -> bool:
        """Return whether a large body fits into the budget beside other large ones."""
        return not others or others + weight <= self._most_large

    def wait(self, size: int) -> "asyncio.Future[int]":
        """Return a future for the memory of a large body.

        It raises ServerBusy on timeout; so does this method if too many bodies wait.
        """
        if len(self._waiting) >= self._places:
            raise self._busy()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[int] = loop.create_future()
        self._waiting.append((size * FACTOR, loop.time(), turn))
        self._admit()
        if not turn.done():
            timer = loop.call_later(PATIENCE, self._give_up, turn)
            turn.add_done_callback(lambda _: timer.cancel())
        return turn

    def release(self, held: int) -> None:
        self.used -= held
        if held > _SMALL:
            self._large -= held
            self._released += held
            if self._released > _TRIM and not self._large:
                self._released = 0
                asyncio.get_running_loop().call_later(_QUIET, self._give_back)
        if self._waiting:
            self._admit()

    def _give_back(self) -> None:
        """Release freed memory of large bodies to the system, as the allocator would keep it."""
        if self._large:
            self._released = _TRIM
        else:
            _trim()

    def _admit(self) -> None:
        while self._waiting:
            weight, _, turn = self._waiting[0]
            if not turn.done():
                if not self._has_room(self._large, weight):
                    return
                self.used += weight
                self._large += weight
                turn.set_result(weight)
            self._waiting.popleft()

    def _give_up(self, turn: "asyncio.Future[int]") -> None:
        if not turn.done():
            turn.set_exception(self._busy())
            self._admit()

    def _busy(self) -> ServerBusy:
        """Return ServerBusy with a Retry-After that grows with the wait of the first in the queue."""
        self._count_refusal()
        error = RequestMemoryFull()
        if self._waiting:
            waited = asyncio.get_running_loop().time() - self._waiting[0][1]
            error.retry_after = max(error.retry_after, round(waited))
        return error


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)


class Holder(Protocol):
    """Connection that holds bytes of a slow client."""

    def drop_answer(self) -> None:
        """Close the connection, whose client does not read the response."""

    def drop_request(self) -> None:
        """Refuse the request that is arriving."""


class HeldBytes:
    """Bytes held by connections; under pressure, the connection that has held bytes longest is dropped."""

    def __init__(self, limit: int, drop: Callable[[Holder], None]) -> None:
        self.limit = limit
        self.used = 0
        self._drop = drop
        self._held: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        self.used += size - self._held.get(holder, 0)
        self._held[holder] = size
        while self.used > self.limit:
            oldest = next(iter(self._held))
            self.release(oldest)
            self._drop(oldest)

    def release(self, holder: Holder) -> None:
        self.used -= self._held.pop(holder, 0)


class RequestMemory:
    """Memory budget of a process in bytes; ``count_refusal`` is called with the name of an exhausted share."""

    def __init__(self) -> None:
        self.count_refusal: Callable[[str], None] = lambda share: None
        self.service = BodyBudget(0, lambda: self.count_refusal("service"))
        self.console = BodyBudget(
            0, lambda: self.count_refusal("console")
        )  # knows a user after reading the body
        self.answers = HeldBytes(0, self._drop_answer)
        self.arriving = HeldBytes(0, self._drop_request)
        self.resize(DEFAULT)

    def _drop_answer(self, holder: Holder) -> None:
        self.count_refusal("answers")
        holder.drop_answer()

    def _drop_request(self, holder: Holder) -> None:
        self.count_refusal("arriving")
        holder.drop_request()

    def resize(self, size: int) -> None:
        part = size // 8
        self.service.resize(3 * part)
        self.console.resize(part)
        self.answers.limit = 3 * part
        self.arriving.limit = part


memory: Final = RequestMemory()
