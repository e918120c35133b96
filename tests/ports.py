"""Ports for programs that cannot be told to take any."""

import secrets
import socket
from contextlib import suppress


def free_port():
    """Below those that the system gives to others, which could take it before the program does."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
