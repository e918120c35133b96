"""Ports for programs that cannot be told to take any."""

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def free_port() -> int:
    """Return one below those that the system gives to programs that ask for any, which could take it meanwhile."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def held_port() -> Iterator[int]:
    """Reserve a port that is given to no other process; a program that reuses addresses or ports can listen on it."""
    with socket.socket() as holder:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            holder.setsockopt(socket.SOL_SOCKET, option, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
