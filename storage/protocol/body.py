"""The body of a request: its limits, and how an unread one is discarded."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from storage.domain.errors import InvalidMd5, Md5Mismatch, MissingContentLengthHeader, RequestBodyTooLarge

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_LIMIT: Final = 4 * 1024 * 1024  # bytes
# bytes of a refused body that are read and discarded, so that the client receives the error
DRAIN_LIMIT: Final = 64 * 1024 * 1024

_WITH_BODY: Final = frozenset({"POST", "PUT", "MERGE", "PATCH"})


class ClientDisconnected(Exception):
    """The connection was lost before the request was read."""


class RequestBody:
    """The body of a request: read once and whole, or else discarded."""

    def __init__(self, headers: Mapping[bytes, bytes], receive: Receive) -> None:
        self._headers = headers
        self._receive = receive
        self._more = b"content-length" in headers or b"transfer-encoding" in headers
        self.received = 0

    async def read(self, method: str) -> bytes:
        """Raises MissingContentLengthHeader, RequestBodyTooLarge, InvalidMd5, Md5Mismatch."""
        if not self._more:
            if method in _WITH_BODY:
                raise MissingContentLengthHeader
            return b""
        chunks = []
        while self._more:
            chunks.append(await self._chunk())
            if self.received > BODY_LIMIT:
                raise RequestBodyTooLarge
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if b"content-md5" in self._headers:
            _check_md5(self._headers[b"content-md5"], body)
        return body

    async def drain(self) -> bool:
        """Discard the rest; False if it is too long, so that the connection cannot serve another request."""
        while self._more:
            if self.received > DRAIN_LIMIT:
                return False
            await self._chunk()
        return True

    async def _chunk(self) -> bytes:
        message = await self._receive()  # the HTTP server disconnects a client that stalls
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        self._more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        self.received += len(chunk)
        return chunk


def _check_md5(value: bytes, body: bytes) -> None:
    try:
        expected = base64.b64decode(value, validate=True)
    except binascii.Error:
        raise InvalidMd5 from None
    if len(expected) != 16:
        raise InvalidMd5
    if not hmac.compare_digest(expected, hashlib.md5(body, usedforsecurity=False).digest()):
        raise Md5Mismatch
