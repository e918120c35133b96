"""The links do what the other tests count on."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.tools.checker.proxy import Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """Run a server that echoes data, on one connection after the other, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    while data := _receive(connection):
                        connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""


def connect(link: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=60)


def exchange(connection: socket.socket) -> bytes:
    connection.sendall(b"hello")
    return connection.recv(100)


def test_forwards_in_both_directions_with_a_delay(echo: int) -> None:
    with Proxy(echo, delay=0.1) as link, connect(link) as connection:
        began = time.monotonic()
        assert exchange(connection) == b"hello"
        assert time.monotonic() - began >= 0.2
        link.delay = 0.0
        assert exchange(connection) == b"hello"


def test_a_cut_link_resets_what_is_open_and_refuses_what_is_new(echo: int) -> None:
    with Proxy(echo) as link, connect(link) as connection:
        assert exchange(connection) == b"hello"
        link.cut()
        with pytest.raises(ConnectionError):
            exchange(connection)
        with pytest.raises(ConnectionRefusedError):
            connect(link)
        link.mend()
        with connect(link) as again:
            assert exchange(again) == b"hello"


def test_a_link_that_hangs_delivers_later(echo: int) -> None:
    with Proxy(echo) as link, connect(link) as connection:
        assert exchange(connection) == b"hello"
        link.hang()
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            exchange(connection)
        link.mend()
        connection.settimeout(60)
        assert connection.recv(100) == b"hello"
