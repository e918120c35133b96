"""Requests byte for byte over a plain socket, signed by a signer of its own.

HTTP libraries would tidy up exactly the details under test.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

import base64
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote
from uuid import uuid4

LONGEST_IDLE = 60.0  # seconds; the server keeps a connection a little longer
TIMEOUT = 45.0  # seconds without a byte: the server hangs
JSON = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}


class Closed(ConnectionError):
    """The server closed the connection without a whole answer; `rest` is what came of it."""

    def __init__(self, rest: bytes) -> None:
        super().__init__(f"closed after {rest[:200]!r}")
        self.rest = rest


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return self.headers.get("x-ms-error-code", "")

    @property
    def etag(self) -> str:
        return self.headers["etag"]

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Request:
    """`target` is raw, as are header values; `headers` may name a field twice."""

    method: bytes
    target: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()
    body: bytes | None = None
    signed: bool = True

    def written(self, account: str, key: bytes) -> bytes:
        given = {name.lower() for name, _ in self.headers}
        fields = [*self.headers]
        for name, value in (
            (b"Host", b"127.0.0.1"),
            (b"x-ms-date", _now()),
            (b"x-ms-version", b"2019-02-02"),
        ):
            if name.lower() not in given:
                fields.append((name, value))
        if self.body is not None and not given & {b"content-length", b"transfer-encoding"}:
            fields.append((b"Content-Length", b"%d" % len(self.body)))
        if self.signed:
            fields.append((b"Authorization", self._signature(dict(_lowered(fields)), account, key)))
        lines = [b"%b %b HTTP/1.1" % (self.method, self.target), *(b"%b: %b" % field for field in fields)]
        return b"\r\n".join(lines) + b"\r\n\r\n" + (self.body or b"")

    def _signature(self, headers: Mapping[bytes, bytes], account: str, key: bytes) -> bytes:
        path, _, query = self.target.partition(b"?")
        comp = [pair[5:] for pair in query.split(b"&") if pair.startswith(b"comp=")]
        resource = b"/%b%b" % (account.encode(), path) + (b"?comp=" + comp[0] if comp else b"")
        optional = (headers.get(b"content-md5", b""), headers.get(b"content-type", b""))
        text = b"\n".join([self.method, *optional, headers[b"x-ms-date"], resource])
        digest = base64.b64encode(hmac.digest(key, text, hashlib.sha256))
        return b"SharedKey %b:%b" % (account.encode(), digest)


def _lowered(fields: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in fields:
        yield name.lower(), value.strip()


def _now() -> bytes:
    return formatdate(time.time(), usegmt=True).encode()


class Connection:
    """One kept-alive connection to the account of a server; opened when needed, again after an answer that closes."""

    def __init__(self, server: Any, timeout: float = TIMEOUT) -> None:
        self.account: str = server.account
        self._key = base64.b64decode(server.key)
        self._address = ("127.0.0.1", server.port)
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._sent_at = 0.0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._buffer = b""

    # bytes

    def open(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sent_at = time.monotonic()
            self._buffer = b""
        return self._socket

    def written(self, request: Request) -> bytes:
        return request.written(self.account, self._key)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes.

        A server that refuses may close before it has read everything: its answer is still valid.
        """
        if time.monotonic() - self._sent_at > LONGEST_IDLE:
            self.close()
        self._sent_at = time.monotonic()
        try:
            self.open().sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def read(self, *, head: bool = False) -> Answer:
        """Return the next answer; raises Closed when there is none, TimeoutError when the server hangs."""
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        start, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        status_line, *lines = start.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        status = int(status_line.split(" ", 2)[1])
        if status == 100:
            return self.read(head=head)
        bodiless = head or status == 204
        answer = Answer(status, headers, b"" if bodiless else self._read_body(headers))
        if answer.closes:
            self._expect_end()
        return answer

    def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            return b"".join(self._chunks())
        return self._take(int(headers["content-length"]))

    def _chunks(self) -> Iterator[bytes]:
        while True:
            while b"\r\n" not in self._buffer:
                self._receive()
            size, _, self._buffer = self._buffer.partition(b"\r\n")
            chunk = self._take(int(size, 16) + 2)
            yield chunk[:-2]
            if len(chunk) == 2:
                return

    def _take(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._receive()
        taken, self._buffer = self._buffer[:length], self._buffer[length:]
        return taken

    def _receive(self) -> None:
        if self._socket is None:
            raise Closed(b"")
        try:
            received = self._socket.recv(1 << 18)
        except ConnectionResetError:
            received = b""
        if not received:
            rest = self._buffer
            self.close()
            raise Closed(rest)
        self._buffer += received

    def _expect_end(self) -> None:
        """Check that the connection ends: `Connection: close` must be true, or a client would wait."""
        rest = self._rest()
        assert not rest, rest

    def _rest(self) -> bytes:
        try:
            while True:
                self._receive()
        except Closed as closed:
            return closed.rest

    # requests

    def send(self, request: Request) -> Answer:
        self.send_bytes(self.written(request))
        return self.read(head=request.method == b"HEAD")

    def request(
        self, method: str, path: str, body: object = None, *, query: str = "", if_match: str = ""
    ) -> Answer:
        """`path` below the account, already escaped; `body` is sent as JSON."""
        target = f"/{self.account}/{path}" + (f"?{query}" if query else "")
        headers = [(b"Accept", JSON["Accept"].encode())]
        if body is not None:
            headers.append((b"Content-Type", b"application/json"))
        if if_match:
            headers.append((b"If-Match", if_match.encode()))
        content = None if body is None else json.dumps(body).encode()
        if method == "POST":
            headers.append((b"Prefer", b"return-no-content"))
        return self.send(Request(method.encode(), target.encode(), headers, content))

    def create_table(self, name: str) -> Answer:
        return self.request("POST", "Tables", {"TableName": name})

    def delete_table(self, name: str) -> Answer:
        return self.request("DELETE", f"Tables('{name}')")

    def insert(self, table: str, entity: Mapping[str, object]) -> Answer:
        return self.request("POST", table, entity)

    def get(self, table: str, key: "Key") -> Answer:
        return self.request("GET", entity_path(table, key))

    def write(
        self, method: str, table: str, key: "Key", properties: Mapping[str, object], if_match: str = ""
    ) -> Answer:
        return self.request(method, entity_path(table, key), properties, if_match=if_match)

    def delete(self, table: str, key: "Key", if_match: str = "*") -> Answer:
        return self.request("DELETE", entity_path(table, key), if_match=if_match)

    def pages(self, table: str, query: str = "") -> Iterator[list[dict[str, Any]]]:
        """Yield every page of a query, following its continuation tokens."""
        token = ""
        while True:
            answer = self.request("GET", f"{table}()", query="&".join(filter(None, [query, token])))
            assert answer.status == 200, answer
            yield answer.json()["value"]
            if "x-ms-continuation-nextpartitionkey" not in answer.headers:
                return
            token = "&".join(
                f"{name}={quote(answer.headers[f'x-ms-continuation-{name.lower()}'])}"
                for name in ("NextPartitionKey", "NextRowKey")
            )

    def entities(self, table: str, query: str = "") -> list[dict[str, Any]]:
        return [entity for page in self.pages(table, query) for entity in page]

    def change_set(self, changes: Sequence["Change"]) -> "Outcome":
        boundary, body = write_batch(self.account, changes)
        target = f"/{self.account}/$batch".encode()
        headers = [(b"Content-Type", b"multipart/mixed; boundary=" + boundary)]
        answer = self.send(Request(b"POST", target, headers, body))
        return Outcome.of(answer)


Key = tuple[str, str]


def entity_path(table: str, key: Key) -> str:
    partition, row = (
        quote(part.replace("'", "''").encode("utf-8", "surrogatepass"), safe="") for part in key
    )
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


@dataclass(frozen=True, slots=True)
class Change:
    method: str
    table: str
    key: Key
    properties: Mapping[str, object] | None = None
    if_match: str = ""

    def written(self, account: str) -> bytes:
        insert = self.method == "POST"
        path = self.table if insert else entity_path(self.table, self.key)
        lines = [f"{self.method} http://127.0.0.1/{account}/{path} HTTP/1.1"]
        lines += ["Content-Type: application/json", "Accept: application/json;odata=nometadata"]
        if insert:
            lines.append("Prefer: return-no-content")
        if self.if_match:
            lines.append(f"If-Match: {self.if_match}")
        content = "" if self.properties is None else json.dumps(self.content)
        return "\r\n".join([*lines, "", content]).encode()

    @property
    def content(self) -> Mapping[str, object]:
        """Return the properties as they are sent."""
        keys = {"PartitionKey": self.key[0], "RowKey": self.key[1]} if self.method == "POST" else {}
        return {**keys, **(self.properties or {})}


def write_batch(account: str, changes: Sequence[Change]) -> tuple[bytes, bytes]:
    """Boundary and body of a batch with one change set."""
    outer, inner = b"batch_%b" % uuid4().hex.encode(), b"changeset_%b" % uuid4().hex.encode()
    pieces = [b"--%b\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n" % (outer, inner)]
    for change in changes:
        mime = b"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        pieces.append(b"--%b\r\n%b%b\r\n" % (inner, mime, change.written(account)))
    pieces.append(b"--%b--\r\n--%b--\r\n" % (inner, outer))
    return outer, b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a change set: the statuses of its operations, or the one error with its code."""

    status: int
    statuses: tuple[int, ...]
    code: str

    @classmethod
    def of(cls, answer: Answer) -> "Outcome":
        statuses = tuple(
            int(line.split()[1]) for line in answer.body.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")
        )
        _, _, rest = answer.body.partition(b'"code":"')
        return cls(answer.status, statuses, answer.code or rest.partition(b'"')[0].decode())

    @property
    def done(self) -> bool:
        return self.status == 202 and all(status < 300 for status in self.statuses)
