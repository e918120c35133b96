"""Clients that open a connection and then hardly send anything."""

import select
import socket
import threading
import time
from typing import Any

from tests.faults.connection import Connection, Request

BOUND = 90.0  # seconds after which the server must have given up
HEAD = b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n"


class Stalled:
    def __init__(self, server: Any) -> None:
        connection = Connection(server)
        headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"1000")]
        body = connection.written(
            Request(b"POST", b"/devstoreaccount1/stalled", headers, b'{"PartitionKey":')
        )
        chunked = [headers[0], (b"Transfer-Encoding", b"chunked")]
        chunks = connection.written(Request(b"POST", b"/devstoreaccount1/stalled", chunked, b"5\r\n{"))
        starts = {"nothing": b"", "line": b"GET /dev", "headers": HEAD, "body": body, "chunks": chunks}
        self._address = ("127.0.0.1", server.port)
        self._sockets = {name: self._open(start) for name, start in starts.items()}
        self._sockets["slow line"] = self._open(b"")
        self._sockets["slow headers"] = self._open(HEAD)
        self._crowd = [self._open(b"") for _ in range(200)]  # nobody else may notice them
        self._opened_at = time.monotonic()
        self._ended = threading.Event()
        self._drip = threading.Thread(target=self._send_slowly)
        self._drip.start()

    def _open(self, start: bytes) -> socket.socket:
        opened = socket.create_connection(self._address)
        opened.sendall(start)
        return opened

    def _send_slowly(self) -> None:
        while not self._ended.wait(0.5):
            for name in ("slow line", "slow headers"):
                try:
                    self._sockets[name].send(b"a")
                except OSError:
                    pass

    def still_open(self) -> list[str]:
        """Names of the connections that the server has not closed in time; waits for that time to come."""
        left = dict(self._sockets)
        while left:
            patience = max(self._opened_at + BOUND - time.monotonic(), 0)
            readable, _, _ = select.select(list(left.values()), [], [], patience)
            if not readable:
                break
            left = {name: each for name, each in left.items() if each not in readable or not is_closed(each)}
        return sorted(left)

    def end(self) -> None:
        self._ended.set()
        self._drip.join()
        for each in (*self._sockets.values(), *self._crowd):
            each.close()


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1 << 16) == b""
    except ConnectionError:
        return True
