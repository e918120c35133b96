"""Answers that do not reach their clients as a whole, on real connections, with and without TLS."""

import base64
import json
import socket
import ssl
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import psutil
import pytest

from tests.certificates import make_certificate
from tests.faults.connection import JSON, TIMEOUT, Request
from tests.live_server import start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import find_workers
from tests.waiting import wait_for

ACCOUNT = "rehearsed"


class Client:
    """Connections to an account that may rehearse."""

    def __init__(self, server):
        server.change_accounts("add", ACCOUNT, "--key1", server.key)
        server.change_accounts("rehearsals", ACCOUNT, "on")
        self.server = server
        self._key = base64.b64decode(server.key)
        self._number = 0
        self.request("POST", "Tables", {"TableName": "people"})

    def written(self, method, path, content=None, asked=None):
        headers = [(name.encode(), value.encode()) for name, value in JSON.items()]
        if asked is not None:
            headers.append((b"x-tablero-rehearse", asked.encode()))
        body = None if content is None else json.dumps(content).encode()
        target = f"/{ACCOUNT}/{path}".encode()
        return Request(method.encode(), target, headers, body).written(ACCOUNT, self._key)

    @contextmanager
    def connection(self):
        with socket.create_connection(("127.0.0.1", self.server.port), TIMEOUT) as plain:
            if not self.server.url.startswith("https"):
                yield plain
                return
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(plain, suppress_ragged_eofs=False) as wrapped:
                yield wrapped

    def request(self, *request):
        """Return what comes of an answer, on a connection of its own, until it is closed."""
        with self.connection() as connection:
            connection.sendall(self.written(*request))
            return read_answer(connection)

    def new(self):
        """Return the path of an entity that does not exist."""
        self._number += 1
        return f"people(PartitionKey='p',RowKey='{self._number}')"

    def exists(self, path):
        return self.request("GET", path).status == 200


def read_answer(connection):
    """Read one answer, or its beginning; `rest` is what is missing of the body, None without a whole head."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (data := connection.recv(65536)):
            return SimpleNamespace(status=0, received=received, rest=None)
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(lines[b"content-length"]) and (data := connection.recv(65536)):
        body += data
    return SimpleNamespace(
        status=int(head.split()[1]), headers=lines, body=body, rest=int(lines[b"content-length"]) - len(body)
    )


@pytest.fixture(scope="module")
def plain(server):
    return Client(server)


@pytest.fixture(scope="module")
def encrypted(scratch):
    """Start a server with TLS, which the last test ends."""
    cert, key = map(str, make_certificate(scratch))
    with start_server(seeded(scratch / "encrypted"), "--tls-cert", cert, "--tls-key", key) as live:
        yield Client(live)


@pytest.fixture(params=["plain", "encrypted"])
def client(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "unapplied"])
def test_an_answer_is_withheld(client, is_applied):
    effect = "ambiguous-applied" if is_applied else "ambiguous-unapplied"
    for answer in ("close", "reset", "silence; seconds=0.1"):
        path, second = client.new(), client.new()
        with client.connection() as connection:
            connection.sendall(client.written("GET", "Tables"))
            assert read_answer(connection).status == 200
            # the second is sent with it, and is not done, as the connection ends
            wish = client.written("PUT", path, {"N": 1}, f"{effect}; answer={answer}")
            connection.sendall(wish + client.written("PUT", second, {"N": 1}))
            if answer == "reset":
                with pytest.raises((ConnectionResetError, ssl.SSLEOFError)):
                    connection.recv(1)
            else:
                assert connection.recv(1) == b""
        assert [client.exists(it) for it in (path, second)] == [is_applied, False]


def test_an_answer_is_cut(client):
    entity = {"PartitionKey": "q", "RowKey": client.new(), "N": 1}
    cut = client.request("POST", "people", entity, "cut-answer")
    assert cut.status == 201
    assert 0 < cut.rest == int(cut.headers[b"content-length"]) - len(cut.body)
    assert cut.headers[b"x-tablero-rehearsed"] == b"cut-answer"
    path = client.new()
    without_body = client.request("PUT", path, {"N": 1}, "cut-answer")
    assert without_body.received.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert b"\r\n\r\n" not in without_body.received
    assert client.exists(path)


def test_an_answer_is_slow(client):
    entity = {"PartitionKey": "q", "RowKey": client.new(), "N": 1}
    began = time.monotonic()
    slow = client.request("POST", "people", entity, "slow-answer; seconds=0.5")
    assert time.monotonic() - began > 0.4
    assert (slow.status, slow.rest, json.loads(slow.body)["N"]) == (201, 0, 1)


def test_clients_that_give_up_leave_nothing_behind(plain):
    family = [psutil.Process(plain.server.pid), *find_workers(plain.server)]
    before = sum(len(it.net_connections("tcp")) for it in family)
    wishes = (
        "ambiguous-applied; answer=silence; seconds=120",
        "slow-answer; seconds=20",
        "delay; p50=300; p99=300",
    )
    with ExitStack() as stack:
        paths = [plain.new() for _ in range(9)]
        for number, path in enumerate(paths):
            connection = stack.enter_context(plain.connection())
            connection.sendall(plain.written("PUT", path, {"N": 1}, wishes[number % 3]))
        for path in paths:
            wait_for(lambda path=path: plain.exists(path), "the write")
    # the clients are gone, and those that wait for nothing are not kept until the end of the silence
    wait_for(
        lambda: sum(len(it.net_connections("tcp")) for it in family) <= before, "the connections", patience=60
    )
    assert plain.request("GET", "Tables").status == 200


def test_a_server_ends_although_clients_are_kept_waiting(encrypted):
    with ExitStack() as stack:
        for asked in ("ambiguous-applied; answer=silence; seconds=100", "slow-answer; seconds=100"):
            connection, path = stack.enter_context(encrypted.connection()), encrypted.new()
            connection.sendall(encrypted.written("PUT", path, {"N": 1}, asked))
            wait_for(lambda path=path: encrypted.exists(path), "the write")
        assert encrypted.server.stop() == 0
    assert not encrypted.server.gave_up_requests
