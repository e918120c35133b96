"""HTTP request on a connection: its head, and its body while it arrives."""

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain.errors import (
    InvalidMd5,
    Md5Mismatch,
    MissingContentLengthHeader,
    OperationTimedOut,
    RequestBodyTooLarge,
)
from storage.protocol.request_memory import SMALL, longest_arrival, memory
from storage.protocol.uvicorn_parts import FlowControl

BODY_LIMIT: Final = 4 * 1024 * 1024  # bytes
# bytes of a refused body that are read and discarded, so that the client receives the error
DRAIN_LIMIT: Final = 64 * 1024 * 1024

Headers = list[tuple[bytes, bytes]]

_WITH_BODY: Final = frozenset({"POST", "PUT", "MERGE", "PATCH"})


class RequestHead(NamedTuple):
    """Head of a request; ``path`` and ``query`` as on the wire, ``fields`` as sent with lower-case names."""

    method: str
    path: bytes
    query: bytes
    fields: Headers
    headers: Mapping[bytes, bytes]
    scheme: str
    client: str
    port: int


def join_repeated(fields: Headers) -> dict[bytes, bytes]:
    """Return headers by name, joining repeated ones with commas as in HTTP."""
    headers = dict(fields)
    if len(headers) == len(fields):
        return headers
    values: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(several) for name, several in values.items()}


class ClientDisconnected(Exception):
    """The connection was lost before the request was read."""


class RequestBody:
    """Body of a request, fed by the connection; it is read once as a whole, or discarded.

    The connection stops reading when more than SMALL unread bytes wait here. From the call of ``read`` to
    ``release`` a body takes memory of the budget; a large body waits for that before it is read.
    """

    __slots__ = (
        "_chunks",
        "_flow",
        "_held",
        "_is_late",
        "_lost",
        "_taken",
        "_timer",
        "_turn",
        "_waiter",
        "complete",
        "received",
    )

    def __init__(self, flow: FlowControl) -> None:
        self._flow = flow
        self._chunks: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._lost = False
        self._is_late = False
        self._held = 0  # bytes of the budget
        self._turn: asyncio.Future[int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._taken = 0
        self.received = 0
        self.complete = False

    # for the connection

    @property
    def is_large(self) -> bool:
        """Return whether so many bytes are unread that the connection stops reading."""
        return self.received - self._taken > SMALL

    @property
    def arriving(self) -> int:
        """Return the bytes that wait here outside the memory budget."""
        return self.received - self._taken if self._turn is None and not self._held else 0

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.received += len(chunk)
        if self._waiter is not None:
            self._wake()
        elif self.is_large:
            self._flow.pause_reading()

    def finish(self) -> None:
        self.complete = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def release(self) -> None:
        """Release the memory to the budget, once the request is answered or the body is not needed."""
        held, self._held = self._held, 0
        if self._timer is not None:
            self._timer.cancel()
        if held:
            memory.service.release(held)

    def lose(self) -> None:
        self._lost = True
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(ClientDisconnected())
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # for the service

    @property
    def is_lost(self) -> bool:
        """Return whether the client has disconnected."""
        return self._lost

    async def read(self, head: RequestHead) -> bytes:
        """Read the whole body of a request."""
        headers = head.headers
        if b"content-length" not in headers and b"transfer-encoding" not in headers:
            if head.method in _WITH_BODY:
                raise MissingContentLengthHeader
            return b""
        size = announced_size(headers)
        if size > BODY_LIMIT:
            raise RequestBodyTooLarge
        if size > SMALL:
            await self._wait_for_memory(size)
        else:
            self._held = memory.service.take(size or self.received)
            if not self.complete:
                self._limit_time(BODY_LIMIT)
        pieces = self._take()
        while not self.complete:
            await self._arrival()
            if self._is_late:
                raise OperationTimedOut
            if self.received > size:  # it comes in chunks, so its size was not known
                self._held = memory.service.take(self.received, self._held)
            pieces += self._take()
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if b"content-md5" in headers:
            _check_md5(headers[b"content-md5"], body)
        return body

    async def _wait_for_memory(self, size: int) -> None:
        self._turn = memory.service.wait(size)
        self._held = await self._turn
        if self._lost:
            raise ClientDisconnected
        if not self.complete:
            self._limit_time(size)

    def _limit_time(self, size: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(longest_arrival(size), self._be_late)

    def _be_late(self) -> None:
        self._is_late = True
        self._wake()

    def _take(self) -> list[bytes]:
        if self.received > BODY_LIMIT:
            raise RequestBodyTooLarge
        pieces, self._chunks = self._chunks, []
        self._taken = self.received
        return pieces

    async def drain(self) -> bool:
        """Discard the rest of the body; return False if it is too long to reuse the connection."""
        self.release()
        while True:
            self._chunks.clear()
            self._taken = self.received
            if self.complete:
                return True
            if self.received > DRAIN_LIMIT:
                return False
            await self._arrival()

    async def _arrival(self) -> None:
        """Wait for more of the body; stalled clients are disconnected by the connection."""
        if not self._lost:
            self._waiter = asyncio.get_running_loop().create_future()
            self._flow.resume_reading()
            await self._waiter
        if self._lost:
            raise ClientDisconnected


def announced_size(headers: Mapping[bytes, bytes]) -> int:
    """Return the Content-Length; 0 without one, as for chunked or missing bodies."""
    return int(headers.get(b"content-length", b"0"))


def _check_md5(value: bytes, body: bytes) -> None:
    try:
        expected = base64.b64decode(value, validate=True)
    except binascii.Error:
        raise InvalidMd5 from None
    if len(expected) != 16:
        raise InvalidMd5
    if not hmac.compare_digest(expected, hashlib.md5(body, usedforsecurity=False).digest()):
        raise Md5Mismatch
