"""Malformed HTTP and truncated bodies: they are refused or the connection is closed, and nothing is written.

Clients that stall are in tests/protocol/test_http_connection.py.
"""

import json
import socket
import struct

import pytest

from tests.faults.connection import Answer, Change, Closed, Connection, Request, write_batch
from tests.tools.fuzz.answers import check_answer

SOON = 20.0  # seconds until a malformed request is answered or its connection closed
HEAD_LIMIT = 64 * 1024
JSON_TYPE = (b"Content-Type", b"application/json")
ENTITY = json.dumps({"PartitionKey": "p", "RowKey": "written", "text": "x" * 2000}).encode()

LINES = {
    "binary": b"\x00\x01\x02\xff\xfe" * 200,
    "line end only": b"\r\n" * 50 + b"x\r\n\r\n",
    "no target": b"GET\r\n\r\n",
    "HTTP 9.9": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "no slash": b"GET devstoreaccount1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100f1010000ed0303") + b"\x00" * 250,
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "long target": b"GET /devstoreaccount1/" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "long verb": b"A" * 100_000 + b" / HTTP/1.1\r\n\r\n",
}
HEADERS = {
    "no colon": b"Host: x\r\nnonsense\r\n",
    "empty name": b"Host: x\r\n: value\r\n",
    "space in name": b"Host: x\r\na b: c\r\n",
    "space before colon": b"Host : x\r\n",
    "NUL": b"Host: x\r\nx-ms-a: a\x00b\r\n",
    "two hosts": b"Host: a\r\nHost: b\r\n",
    "one long": b"Host: x\r\nx-ms-a: " + b"a" * (HEAD_LIMIT + 4000) + b"\r\n",
    "many": b"Host: x\r\n" + b"".join(b"x-ms-%d: %d\r\n" % (n, n) for n in range(5000)),
    "very many": b"Host: x\r\n" + b"a:b\r\n" * 400_000,
    "signed length": b"Host: x\r\nContent-Length: +5\r\n",
    "endless length": b"Host: x\r\nContent-Length: " + b"9" * 40 + b"\r\n",
    "coding after chunked": b"Host: x\r\nTransfer-Encoding: chunked, gzip\r\n",
    "nearly chunked": b"Host: x\r\nTransfer-Encoding: xchunked\r\n",
}
UNTRUSTWORTHY = {name for name in HEADERS if "length" in name or "chunked" in name or "coding" in name}
CHUNKS = {
    "negative": b"-1\r\nab\r\n0\r\n\r\n",
    "overflow": b"ffffffffffffffffff\r\nab\r\n0\r\n\r\n",
    "no line end": b"2\r\nabXX0\r\n\r\n",
    "empty line": b"\r\n\r\n",
    "long extension": b"2;" + b"x" * 200_000 + b"\r\nab\r\n0\r\n\r\n",
    "long trailer": b"2\r\n{}\r\n0\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
}


@pytest.fixture
def connection(server):
    with Connection(server, timeout=SOON) as connection:
        yield connection


@pytest.fixture
def control(server):
    """Make a table, and check in the end that it is unchanged and that the server still serves."""
    with Connection(server) as connection:
        connection.create_table("malformed")
        connection.insert("malformed", {"PartitionKey": "p", "RowKey": "r", "n": 1})
        before = connection.request("GET", "malformed()").body
        yield "malformed"
        assert connection.request("GET", "malformed()").body == before


def outcome(connection: Connection) -> Answer | None:
    """Return the answer, or None when the connection was closed without; raises TimeoutError when neither happens."""
    try:
        answer = connection.read()
    except Closed as closed:
        rest = closed.rest
    else:
        assert answer.status >= 400
        check_answer(answer)
        return answer
    assert not rest
    return None


@pytest.mark.parametrize("name", LINES)
def test_malformed_requests_are_refused(name, connection, control):
    connection.send_bytes(LINES[name])
    answer = outcome(connection)
    assert answer is None or name == "no slash" or answer.closes


@pytest.mark.parametrize("name", HEADERS)
def test_refuses_unsound_headers(name, connection, control):
    head = connection.written(post(control, None))
    connection.send_bytes(head.replace(b"Host: 127.0.0.1\r\n", HEADERS[name]) + b"hello")
    answer = outcome(connection)
    assert answer is None or answer.closes or name not in UNTRUSTWORTHY


@pytest.mark.parametrize("name", CHUNKS)
def test_refuses_unsound_chunks(name, connection, control):
    headers = [JSON_TYPE, (b"Transfer-Encoding", b"chunked")]
    connection.send_bytes(connection.written(post(control, CHUNKS[name], headers)))
    outcome(connection)


def post(table: str, body: bytes | None, headers: list[tuple[bytes, bytes]] | None = None) -> Request:
    return Request(b"POST", b"/devstoreaccount1/" + table.encode(), headers or [JSON_TYPE], body)


def test_a_body_longer_than_said_is_the_next_request(connection, control):
    connection.send_bytes(
        connection.written(post(control, b"{}" + b"garbage" * 50, [JSON_TYPE, (b"Content-Length", b"2")]))
    )
    first = outcome(connection)
    assert first is not None and first.code == "PropertiesNeedValue"
    rest = None if first.closes else outcome(connection)
    assert rest is None or (rest.status, rest.closes) == (400, True)


def test_answers_pipelined_requests_in_their_order(connection, control):
    rows = [f"pipelined{number}" for number in range(40)]
    requests = [
        Request(b"GET", f"/devstoreaccount1/{control}(PartitionKey='p',RowKey='{row}')".encode(),
                [(b"x-ms-client-request-id", row.encode())])
        for row in rows
    ]  # fmt: skip
    connection.send_bytes(
        b"".join(connection.written(request) for request in requests) + b"\x00garbage\r\n\r\n"
    )

    answers = [connection.read() for _ in rows]

    assert [answer.headers["x-ms-client-request-id"] for answer in answers] == rows
    assert {answer.code for answer in answers} == {"ResourceNotFound"}
    outcome(connection)


def with_reset(connection: Connection) -> None:
    connection.open().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half_closed(connection: Connection) -> None:
    connection.open().shutdown(socket.SHUT_WR)
    outcome(connection)


@pytest.mark.parametrize("end", [Connection.close, with_reset, half_closed])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_an_aborted_body_writes_nothing(end, share, connection, control):
    boundary, batch = write_batch(
        "devstoreaccount1", [Change("POST", control, ("p", str(n)), {"n": n}) for n in range(5)]
    )
    sized = [JSON_TYPE, (b"Content-Length", b"%d" % len(ENTITY))]
    chunked = [JSON_TYPE, (b"Transfer-Encoding", b"chunked")]
    multipart = [
        (b"Content-Type", b"multipart/mixed; boundary=" + boundary),
        (b"Content-Length", b"%d" % len(batch)),
    ]
    for request in (
        post(control, ENTITY[: int(len(ENTITY) * share)], sized),
        post(control, b"%x\r\n%b\r\n" % (len(ENTITY), ENTITY) if share else b"", chunked),
        Request(b"POST", b"/devstoreaccount1/$batch", multipart, batch[: int(len(batch) * share)]),
    ):
        connection.send_bytes(connection.written(request))
        end(connection)


def test_an_aborted_request_does_not_block_others(server, control):
    """Clients that go away before their answers hold no lane."""
    for _ in range(100):
        with Connection(server) as connection:
            connection.send_bytes(
                connection.written(Request(b"GET", f"/devstoreaccount1/{control}()".encode()))
            )
            with_reset(connection)
    with Connection(server, timeout=SOON) as connection:
        assert connection.request("GET", f"{control}()").status == 200
