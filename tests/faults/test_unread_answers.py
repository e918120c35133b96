"""Clients that send requests and do not read the answers: others are served anyway."""

import select
import socket
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest

from tests.faults.connection import Connection

pytestmark = pytest.mark.long

PATIENCE = 60.0  # seconds
CLIENTS = 12  # more than the console has connections to the database
SCHEMA = b"GET /ui/api/v1/schema HTTP/1.1\r\nHost: h\r\nCookie: tablero_session=%b\r\n\r\n" % (b"a" * 32)


def status(server, path):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture
def unread(server):
    """Open connections whose first answer has begun to arrive, with 39 more requests behind it."""
    with ExitStack() as stack:
        opened = []
        for _ in range(CLIENTS):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(SCHEMA * 40)
            opened.append(client)
        for client in opened:
            assert select.select([client], [], [], PATIENCE)[0]
        yield opened


def test_unread_answers_do_not_block_other_clients(server, unread):
    assert status(server, "/ui/readyz") == 200
    # while more and more of the answers cannot be sent
    assert {status(server, "/ui/login/") for _ in range(40)} == {200}
    with Connection(server) as connection:
        assert connection.request("GET", "Tables").status == 200
