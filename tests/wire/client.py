"""Sends what a case says, byte for byte, over a plain socket: HTTP libraries would tidy paths and headers.

Signs by itself, so that the server's own code does not vouch for its signatures:
https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

import base64
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from . import atom, tokens
from .cases import repeat

VERSION = "2019-02-02"
TIMEOUT = 60
REQUEST_KEYS = {
    "line", "query", "headers", "json", "body", "base64", "crlf", "batch", "repeat", "http", "chunk", "abort",
    "same_connection", "sign", "key", "account", "age", "date", "signed_path", "signed_verb", "pause",
    "sas", "tamper", "atom", "old",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    url: str
    account: str
    key: str
    foreign: bool  # a server that is not ours
    distributes: bool = False  # its tables are distributed over the nodes of a cluster

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or 80

    @property
    def root(self) -> str:
        return urlsplit(self.url).path.rstrip("/")


@dataclass(frozen=True, slots=True)
class Outgoing:
    method: str
    target: str
    head: bytes
    body: bytes
    headers: list[tuple[str, str]]
    expects: bool
    abort: bool
    same_connection: bool
    pause: float

    def header(self, name: str) -> str | None:
        return find_header(self.headers, name)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    continued: bool = False  # a 100 Continue came first
    closes: bool = False
    seconds: float = 0  # from the first byte sent to the last one received

    def header(self, name: str) -> str | None:
        return find_header(self.headers, name)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8-sig")

    def json(self) -> Any:
        return json.loads(self.text)

    def __str__(self) -> str:
        lines = [f"{self.status} {self.reason}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\n".join([*lines, "", self.body[:4000].decode("utf-8", "replace")])


def find_header(headers: list[tuple[str, str]], name: str) -> str | None:
    values = [value for key, value in headers if key.lower() == name.lower()]
    return ", ".join(values) if values else None


# writing a request


def write(spec: dict[str, Any], endpoint: Endpoint) -> Outgoing:
    if unknown := spec.keys() - REQUEST_KEYS:
        raise ValueError(f"unknown keys in a request: {unknown}")
    method, _, path = spec["line"].partition(" ")
    # "=" marks a target of the case's own
    target = path[1:] if path.startswith("=") else endpoint.root + path
    target = _with_query(target, {**spec.get("query", {}), **_token(spec, endpoint)})
    body, body_headers = _body_of(spec, endpoint)
    headers = _override({**_defaults(spec, endpoint), **body_headers}, spec.get("headers", {}))
    if (authorization := _authorization(spec, method, target, headers, endpoint)) is not None:
        headers.append(("Authorization", authorization))
    lines = [f"{method} {target} {spec.get('http', 'HTTP/1.1')}", *(f"{k}: {v}" for k, v in headers)]
    return Outgoing(
        method=method,
        target=target,
        head="\r\n".join([*lines, "", ""]).encode("utf-8"),
        body=_chunked(body, spec["chunk"]) if "chunk" in spec else body,
        headers=headers,
        expects=find_header(headers, "Expect") is not None,
        abort=spec.get("abort", False),
        same_connection=spec.get("same_connection", False),
        pause=spec.get("pause", 0),
    )


def _with_query(target: str, query: Mapping[str, str]) -> str:
    if not query:
        return target
    options = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    return f"{target}{'&' if '?' in target else '?'}{options}"


def _token(spec: dict[str, Any], endpoint: Endpoint) -> dict[str, str]:
    if "sas" not in spec:
        return {}
    return tokens.parameters(spec, spec.get("account", endpoint.account), spec.get("key", endpoint.key))


def _defaults(spec: dict[str, Any], endpoint: Endpoint) -> dict[str, str]:
    host, port = endpoint.address
    return {
        "Host": f"{host}:{port}",
        "x-ms-date": spec.get("date", formatdate(time.time() - int(spec.get("age", 0)), usegmt=True)),
        "x-ms-version": VERSION,
        "x-ms-client-request-id": str(uuid4()),
        "Accept": "application/json;odata=minimalmetadata",
        "DataServiceVersion": "3.0",
        **(atom.headers(spec["old"]) if "old" in spec else {}),
    }


def _override(headers: dict[str, str], changes: Mapping[str, Any]) -> list[tuple[str, str]]:
    changed = {name.lower() for name in changes}
    kept = [(name, value) for name, value in headers.items() if name.lower() not in changed]
    for name, value in changes.items():
        values = value if isinstance(value, list) else [] if value is False else [value]
        kept += [(name, each) for each in values]
    return kept


def _body_of(spec: dict[str, Any], endpoint: Endpoint) -> tuple[bytes, dict[str, str]]:
    if "batch" in spec:
        boundary = f"batch_{uuid4()}"
        body = _write_batch(_operations(spec), boundary, endpoint).encode("utf-8")
        return body, _body_headers(body, spec, f"multipart/mixed; boundary={boundary}")
    if (body_ := _plain_body(spec)) is None:
        return b"", {}
    media_type = atom.MEDIA_TYPE if "atom" in spec or "old" in spec else "application/json"
    return body_, _body_headers(body_, spec, media_type)


def _body_headers(body: bytes, spec: dict[str, Any], media_type: str) -> dict[str, str]:
    length = {"Transfer-Encoding": "chunked"} if "chunk" in spec else {"Content-Length": str(len(body))}
    return {"Content-Type": media_type, **length}


def _plain_body(spec: dict[str, Any]) -> bytes | None:
    if "atom" in spec:
        return atom.write_entry(spec["atom"]).encode("utf-8")
    if "base64" in spec:
        return base64.b64decode(spec["base64"])
    text: str | None = write_json(spec["json"]) if "json" in spec else spec.get("body")
    if text is None:
        return None
    return (text.replace("\n", "\r\n") if spec.get("crlf") else text).encode("utf-8")


def write_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _operations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the operations of a batch; `repeat` makes several of the first one, with its number for `#`."""
    operations: list[dict[str, Any]] = spec["batch"]
    if "repeat" not in spec:
        return operations
    return json.loads("[" + repeat(json.dumps(operations[0]) + ",", spec["repeat"])[:-1] + "]")  # type: ignore[no-any-return]


def _write_batch(operations: list[dict[str, Any]], boundary: str, endpoint: Endpoint) -> str:
    """Write one change set with the operations, or, when the first is a GET, that query by itself."""
    parts = [_write_part(operation, endpoint) for operation in operations]
    if operations and operations[0]["line"].startswith("GET"):
        return "".join(f"--{boundary}\r\n{part}" for part in parts) + f"--{boundary}--\r\n"
    changes = f"changeset_{uuid4()}"
    return (
        f"--{boundary}\r\nContent-Type: multipart/mixed; boundary={changes}\r\n\r\n"
        + "".join(f"--{changes}\r\n{part}" for part in parts)
        + f"--{changes}--\r\n--{boundary}--\r\n"
    )


def _write_part(operation: dict[str, Any], endpoint: Endpoint) -> str:
    method, _, path = operation["line"].partition(" ")
    target = path[1:] if path.startswith("=") else endpoint.url.rstrip("/") + path
    body = write_json(operation["json"]) if "json" in operation else ""
    headers = {"Content-Type": "application/json"} if body else {}
    if "atom" in operation:
        body = atom.write_entry(operation["atom"])
        length = str(len(body.encode("utf-8")))
        headers = {"Content-Type": f"{atom.MEDIA_TYPE};type=entry", "Content-Length": length}
    lines = [f"{name}: {value}" for name, value in _override(headers, operation.get("headers", {}))]
    mime = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", *operation.get("mime", [])]
    return "\r\n".join([*mime, "", f"{method} {target} HTTP/1.1", *lines, "", body, ""])


def _chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


# signing


def _authorization(
    spec: dict[str, Any], method: str, target: str, headers: list[tuple[str, str]], endpoint: Endpoint
) -> str | None:
    scheme = spec.get("sign", "none" if "sas" in spec else "SharedKey")
    if scheme == "none" or find_header(headers, "Authorization") is not None:
        return None
    date = find_header(headers, "x-ms-date") or find_header(headers, "Date") or ""
    resource = f"/{endpoint.account}{_canonical_path(spec.get('signed_path', target))}"
    signed = [date, resource]
    if scheme == "SharedKey":
        content = [find_header(headers, name) or "" for name in ("Content-MD5", "Content-Type")]
        signed = [spec.get("signed_verb", method), *content, *signed]
    account, key = spec.get("account", endpoint.account), spec.get("key", endpoint.key)
    digest = hmac.digest(base64.b64decode(key), "\n".join(signed).encode("utf-8"), hashlib.sha256)
    return f"{scheme} {account}:{base64.b64encode(digest).decode()}"


def _canonical_path(target: str) -> str:
    if "://" in target:
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    path, _, query = target.partition("?")
    comp = [pair.partition("=")[2] for pair in query.split("&") if pair.startswith("comp=")]
    return path + (f"?comp={comp[0]}" if comp else "")


# sending


class Connection:
    """A kept-alive connection, opened again when the server has closed it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket: socket.socket | None = None

    def send(self, outgoing: Outgoing) -> Reply | None:
        reused = self._socket is not None
        assert reused or not outgoing.same_connection, "the server closed the connection"
        try:
            return self._exchange(outgoing)
        except ConnectionError:
            self.close()
            if not reused or outgoing.same_connection:
                raise
            return self._exchange(outgoing)  # an idle connection may be closed at any time

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, outgoing: Outgoing) -> Reply | None:
        if self._socket is None:
            self._socket = socket.create_connection(self._endpoint.address, timeout=TIMEOUT)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.perf_counter()
        continued = self._send_all(self._socket, outgoing)
        if outgoing.abort:
            self.close()
            return None
        response = HTTPResponse(self._socket, method=outgoing.method)
        response.begin()
        reply = Reply(
            status=response.status,
            reason=response.reason,
            headers=response.getheaders(),
            body=response.read(),
            continued=continued,
            closes=response.will_close,
            seconds=time.perf_counter() - start,
        )
        if response.will_close:
            self.close()
        return reply

    def _send_all(self, connection: socket.socket, outgoing: Outgoing) -> bool:
        """Send the request and return whether the server asked for the body with 100 Continue."""
        if not outgoing.expects and not outgoing.pause:
            try:
                connection.sendall(outgoing.head + outgoing.body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # an early answer may lie in the buffer
            return False
        connection.sendall(outgoing.head)
        if outgoing.expects:
            first = connection.recv(64, socket.MSG_PEEK)
            if not first.startswith(b"HTTP/1.1 100"):
                return False
        time.sleep(outgoing.pause)
        connection.sendall(outgoing.body)
        return outgoing.expects
