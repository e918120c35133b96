"""Delivery of answers that do not reach their clients as a whole, for rehearsals of failures."""

import asyncio
import socket
import struct
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Final

from storage.core.rehearsals import Delivery
from storage.protocol.http_exchange import Deliver

_PIECES: Final = 20  # in which a slow answer is sent
_RESETS: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection


def deliver_as(delivery: Delivery, seconds: float) -> Deliver:
    """Return the function that delivers an answer in a way; ``seconds`` are those of a silence or a slow answer."""
    match delivery:
        case Delivery.RESET:
            return _reset
        case Delivery.CUT:
            return _cut
        case Delivery.SLOW:
            return partial(_send_slowly, seconds)
        case Delivery.SILENCE:
            return partial(_keep_silent, seconds)
        case Delivery.CLOSE:
            return _close


def _close(transport: asyncio.Transport, head: bytes, body: bytes, done: Callable[[], None]) -> bool:
    done()
    return True


def _reset(transport: asyncio.Transport, head: bytes, body: bytes, done: Callable[[], None]) -> bool:
    connected = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
    transport.abort()
    done()
    return True


def _keep_silent(
    seconds: float, transport: asyncio.Transport, head: bytes, body: bytes, done: Callable[[], None]
) -> bool:
    asyncio.get_running_loop().call_later(seconds, done)
    return True


def _cut(transport: asyncio.Transport, head: bytes, body: bytes, done: Callable[[], None]) -> bool:
    transport.write(head + body[: len(body) // 2] if body else head[: len(head) // 2])
    done()
    return False


def _send_slowly(
    seconds: float, transport: asyncio.Transport, head: bytes, body: bytes, done: Callable[[], None]
) -> bool:
    loop, answer = asyncio.get_running_loop(), head + body
    size = max(1, ceil(len(answer) / _PIECES))

    def send(start: int) -> None:
        if transport.is_closing():
            return
        transport.write(answer[start : start + size])
        if start + size < len(answer):
            loop.call_later(seconds / _PIECES, send, start + size)
        else:
            done()

    send(0)
    return False
