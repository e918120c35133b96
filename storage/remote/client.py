"""Client of the Table service protocol, for copies between services."""

import random
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from http.client import HTTPException, InvalidURL
from time import time
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import orjson

from storage.domain.access import signature
from storage.domain.access.policies import SignedIdentifier
from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.access.signature import SignedRequest
from storage.domain.entities.entity import EntityKey, StoredEntity, write_members
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, ServiceProperties
from storage.domain.service_properties.xml import read_properties, write_properties
from storage.remote.addresses import AddressRefused, CheckedConnection, IsAllowed, allow_all
from storage.remote.endpoints import Endpoint

T = TypeVar("T")

VERSION: Final = "2019-02-02"
LARGEST_ANSWER: Final = 64 << 20  # bytes; a page has 4 MiB, or a little more
_MOST_PAGES: Final = 10_000  # pages of names of tables
TIMEOUT: Final = 60.0  # seconds of one exchange without a byte
PATIENCE: Final = 120.0  # seconds for which a request is repeated
TRANSACTION_ENTITIES: Final = 100
TRANSACTION_BYTES: Final = 3 << 20  # less than 4 MiB, so that heads fit too
_FIRST_DELAY: Final = 0.25
_LOOK: Final = 0.5  # seconds between two calls of ``look``
_LONGEST_DELAY: Final = 15.0
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_JSON: Final = "application/json;odata=minimalmetadata"
_STATUS: Final = re.compile(rb"^HTTP/1\.1 ([0-9]{3})", re.MULTILINE)
_CODE: Final = re.compile(
    rb'"code"\s*:\s*"([A-Za-z]{1,80})"|<code>([A-Za-z]{1,80})</code>|<Code>([A-Za-z]{1,80})</Code>'
)

# a member of a row, which has a line for each
_DOUBLE: Final = re.compile(rb'(?m)^,"([^"]+)":(-?[0-9]+(?:\.[0-9]+(?:[Ee][+-]?[0-9]+)?|[Ee][+-]?[0-9]+))$')

Wait = Callable[[float], None]  # some seconds; it may raise to give up
Look = Callable[[], None]  # it may raise to give up


class RemoteRefused(Refused):
    """The other service refused a request, with its status and error code."""

    def __init__(self, service: str, operation: str, status: int, code: str) -> None:
        self.status = status
        self.code = code
        answer = f"{status} {code}".strip()
        if status in (401, 403):
            super().__init__(Reason.REMOTE_FORBIDDEN, service=service, operation=operation, answer=answer)
        else:
            super().__init__(Reason.REMOTE_REFUSED, service=service, operation=operation, answer=answer)


class RemoteUnavailable(Refused):
    """The other service is unreachable, or was busy for too long."""


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def outcome(self) -> int:
        """Return the status; for a failed transaction, the status of the change at fault."""
        if self.status != 202:
            return self.status
        return next((int(it) for it in _STATUS.findall(self.body) if int(it) >= 400), self.status)

    @property
    def code(self) -> str:
        found = _CODE.search(self.body[:4096])
        return next(it for it in found.groups() if it).decode() if found else ""


@dataclass(frozen=True, slots=True)
class RemotePage:
    """Page of entities as JSON objects, with the start of the next page."""

    entities: Sequence[Mapping[str, Any]]
    next: tuple[str, str] | None
    at: float = 0  # the clock of the service, or 0


class FeedEnded(Exception):
    """The change feed no longer has all changes after a token; the table has to be read again."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Changes from another Tablero's feed, with the token after them."""

    changes: Sequence[Mapping[str, Any]]
    token: str
    has_more: bool
    at: float


class TableClient:
    """Client of a table service; ``wait`` is called between retries."""

    def __init__(
        self, endpoint: Endpoint, is_allowed: IsAllowed, wait: Wait, look: Look | None = None
    ) -> None:
        self.endpoint = endpoint
        self._wait = wait
        self._look = look
        self._owner = threading.current_thread()
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="copy")  # for the owner, which looks
        self._is_aborted = False
        self._is_allowed = is_allowed
        self._url = urlsplit(endpoint.url)
        self._here = threading.local()
        self._connections: set[CheckedConnection] = set()
        self._has_answered = False

    # tables

    def tables(self) -> Iterator[str]:
        following, pages = "", 0
        while True:
            query = f"NextTableName={quote(following, safe='')}" if following else ""
            answer = self._expect("Query Tables", 200, "GET", "/Tables", query)
            for it in self._rows("Query Tables", answer, "value"):
                yield str(it.get("TableName"))
            before, following = following, answer.headers.get("x-ms-continuation-nexttablename", "")
            pages += 1
            if not following:
                return
            if following == before or pages == _MOST_PAGES:
                raise RemoteRefused(self.endpoint.url, "Query Tables", answer.status, "with no end")

    def create_table(self, name: str) -> bool:
        """Create a table; return False if it existed."""
        body = orjson.dumps({"TableName": name})
        answer = self._send(
            "POST", "/Tables", "", body, {"Content-Type": "application/json", "Prefer": "return-no-content"}
        )
        if answer.status == 409 and answer.code == "TableAlreadyExists":
            return False
        self._check(answer, "Create Table", 204, 201)
        return True

    # entities

    def page(
        self,
        table: str,
        start: tuple[str, str] | None = None,
        *,
        filter_: str = "",
        select: Sequence[str] = (),
    ) -> RemotePage:
        """Read a page of entities; ``start`` is the opaque continuation of the previous page."""
        options = {"$filter": filter_, "$select": ",".join(select)}
        if start is not None:
            options |= {"NextPartitionKey": start[0], "NextRowKey": start[1]}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items() if value)
        answer = self._expect("Query Entities", 200, "GET", f"/{quote(table, safe='')}()", query)
        headers = answer.headers
        partition = headers.get("x-ms-continuation-nextpartitionkey")
        following = (
            None if partition is None else (partition, headers.get("x-ms-continuation-nextrowkey", ""))
        )
        if following is not None and following == start:
            raise RemoteRefused(self.endpoint.url, "Query Entities", answer.status, "with no end")
        return RemotePage(self._rows("Query Entities", answer, "value"), following, _time_of(answer))

    def changes(self, table: str, token: str = "") -> FeedPage:
        """Read another Tablero's change feed after a token, or just its current token; raises FeedEnded."""
        start = f"after={quote(token, safe='')}" if token else "from=now"
        path = f"/ui/api/v1/accounts/{quote(self.endpoint.account)}/changes"
        headers = {"Authorization": f"Bearer {self.endpoint.feed_token}", "Accept": "application/json"}
        answer = self._send("GET", path, f"table={quote(table, safe='')}&{start}", b"", headers, root="")
        if answer.status in (400, 404, 409, 410):
            raise FeedEnded
        items = self._rows("the change feed", self._check(answer, "the change feed", 200), "items")
        page = orjson.loads(answer.body)
        return FeedPage(items, str(page.get("token", "")), bool(page.get("has_more")), _time_of(answer))

    def write(self, table: str, entities: Sequence[StoredEntity]) -> None:
        """Insert or replace entities of one partition atomically."""
        self._transact(table, [(b"PUT", it.key, _write_entity(it)) for it in entities])

    def delete(self, table: str, keys: Sequence[EntityKey]) -> int:
        """Delete entities of one partition; return the number that existed."""
        try:
            self._transact(table, [(b"DELETE", key, b"") for key in keys])
        except RemoteRefused as error:
            if error.status != 404:
                raise
            return 0 if len(keys) == 1 else sum(self.delete(table, [key]) for key in keys)
        return len(keys)

    def _transact(self, table: str, changes: Sequence[tuple[bytes, EntityKey, bytes]]) -> None:
        """Send an entity group transaction; raises RemoteRefused with the failed change."""
        outer, inner = f"batch_{uuid.uuid4()}", f"changeset_{uuid.uuid4()}"
        parts = [f"--{outer}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()]
        for method, (partition_key, row_key), body in changes:
            address = (
                f"{self.endpoint.url}/{quote(table, safe='')}"
                f"(PartitionKey='{_in_address(partition_key)}',RowKey='{_in_address(row_key)}')"
            )
            head = b"Content-Type: application/json\r\n" if body else b"If-Match: *\r\n"
            parts.append(
                b"--%b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                b"%b %b HTTP/1.1\r\nAccept: %b\r\nDataServiceVersion: 3.0;\r\n%b\r\n%b\r\n"
                % (inner.encode(), method, address.encode(), _JSON.encode(), head, body)
            )
        parts.append(f"--{inner}--\r\n--{outer}--\r\n".encode())
        headers = {"Content-Type": f"multipart/mixed; boundary={outer}"}
        answer = self._send("POST", "/$batch", "", b"".join(parts), headers)
        self._check(answer._replace(status=answer.outcome), "Entity Group Transaction", 202)

    # settings

    def policies(self, table: str) -> list[SignedIdentifier]:
        answer = self._expect("Get Table ACL", 200, "GET", f"/{quote(table, safe='')}", "comp=acl")
        return self._read("Get Table ACL", answer, read_identifiers)

    def replace_policies(self, table: str, identifiers: Sequence[SignedIdentifier]) -> None:
        body = write_identifiers(identifiers)
        headers = {"Content-Type": "application/xml"}
        answer = self._send("PUT", f"/{quote(table, safe='')}", "comp=acl", body, headers)
        self._check(answer, "Set Table ACL", 204)

    def service_properties(self) -> ServiceProperties:
        operation = "Get Table Service Properties"
        answer = self._expect(operation, 200, "GET", "/", "restype=service&comp=properties")
        update = self._read(operation, answer, lambda body: read_properties(body, VERSION))
        return update.apply(DEFAULT_PROPERTIES)

    def replace_service_properties(self, properties: ServiceProperties) -> None:
        body, headers = write_properties(properties, VERSION), {"Content-Type": "application/xml"}
        answer = self._send("PUT", "/", "restype=service&comp=properties", body, headers)
        self._check(answer, "Set Table Service Properties", 202)

    def _rows(self, operation: str, answer: _Answer, name: str) -> list[Mapping[str, Any]]:
        """Return the objects listed in a response; raises RemoteRefused for another document."""
        try:
            rows = orjson.loads(answer.body)[name]
        except (ValueError, KeyError, TypeError):
            rows = None
        if not isinstance(rows, list) or not all(isinstance(it, dict) for it in rows):
            raise RemoteRefused(self.endpoint.url, operation, answer.status, "with another document")
        return rows

    def _read(self, operation: str, answer: _Answer, read: Callable[[bytes], T]) -> T:
        try:
            return read(answer.body)
        except StorageError as error:
            raise self._refused(operation, answer._replace(body=b"")) from error

    # requests

    def _expect(self, operation: str, status: int, method: str, path: str, query: str) -> _Answer:
        return self._check(self._send(method, path, query), operation, status)

    def _check(self, answer: _Answer, operation: str, *expected: int) -> _Answer:
        if answer.status not in expected:
            raise self._refused(operation, answer)
        return answer

    def _refused(self, operation: str, answer: _Answer) -> RemoteRefused:
        return RemoteRefused(self.endpoint.url, operation, answer.status, answer.code)

    def _send(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        root: str | None = None,
    ) -> _Answer:
        """Send a request with retries; raises RemoteUnavailable."""
        whole = f"{self._url.path if root is None else root}{path}"
        delay, waited = _FIRST_DELAY, 0.0
        while True:
            asked = 0.0
            try:
                answer = self._exchange_watched(method, whole, query, body, headers or {})
                if answer.outcome not in _PASSING:
                    return answer
                why, asked = f"it answers {answer.outcome} {answer.code}".strip(), _retry_after(answer)
            except AddressRefused as error:
                service = self.endpoint.url
                if error.has_public:
                    raise RemoteUnavailable(Reason.REMOTE_WITHOUT_TLS, service=service) from None
                raise RemoteUnavailable(Reason.REMOTE_PRIVATE, service=service) from None
            except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: the host cannot be a name
                is_name = isinstance(error, socket.gaierror | UnicodeError)
                if is_name and not self._has_answered and self._is_allowed is not allow_all:
                    # as for a private network: users must not find out which names exist in the server's network
                    raise RemoteUnavailable(Reason.REMOTE_PRIVATE, service=self.endpoint.url) from None
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                if not self._has_answered:  # the address may be wrong
                    waited = max(waited, PATIENCE - 2 * _FIRST_DELAY)
            seconds = max(asked, delay * random.uniform(0.5, 1.0))  # noqa: S311
            if waited + seconds > PATIENCE:
                raise RemoteUnavailable(Reason.REMOTE_UNREACHABLE, service=self.endpoint.url, why=why)
            self._wait(seconds)
            waited += seconds
            delay = min(2 * delay, _LONGEST_DELAY)

    def _exchange_watched(self, *request: Any) -> _Answer:
        if self._look is None or threading.current_thread() is not self._owner:
            return self._exchange(*request)
        return self.await_result(self._sender.submit(self._exchange, *request))

    def await_result(self, future: Future[T]) -> T:
        """Return the result of another thread's exchange, calling ``look`` meanwhile; any exception aborts them all."""
        try:
            while not futures.wait([future], _LOOK).done:
                if self._look is not None:
                    self._look()
        except BaseException:
            self.abort()
            raise
        return future.result()

    def _exchange(self, *request: Any) -> _Answer:
        if self._is_aborted:
            raise ConnectionAbortedError("it was given up")
        try:
            return self._exchange_once(*request)
        except (OSError, HTTPException, UnicodeError):
            self._close()
            raise

    def _exchange_once(
        self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> _Answer:
        sent = {
            "x-ms-date": formatdate(time(), usegmt=True),
            "x-ms-version": VERSION,
            "x-ms-client-request-id": str(uuid.uuid4()),
            "Accept": _JSON if "comp=" not in query else "application/xml",
            "DataServiceVersion": "3.0;",
            "MaxDataServiceVersion": "3.0;NetFx",
            "User-Agent": "Tablero-Copy",
            **headers,
        }
        endpoint = self.endpoint
        if "Authorization" in headers:
            pass
        elif endpoint.bearer:
            sent["Authorization"] = f"Bearer {endpoint.bearer}"
        elif endpoint.key:
            covered = {name.lower().encode(): value.encode() for name, value in sent.items()}
            request = SignedRequest(method, path.encode(), query.encode(), covered, endpoint.account)
            sent["Authorization"] = signature.sign(request, endpoint.key).decode()
        query = "&".join(filter(None, (query, "" if sent.get("Authorization") else endpoint.sas)))
        connection = self._connection()
        try:
            connection.request(method, f"{path}?{query}" if query else path, body or None, sent)
        except (ValueError, InvalidURL):
            # its text quotes the header with the signature, or the address with the SAS
            raise HTTPException("the request cannot be sent") from None
        response = connection.getresponse()
        content = response.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER:
            raise RemoteRefused(self.endpoint.url, method, response.status, "with too much")
        self._has_answered = True
        if response.will_close:
            self._close()
        received_headers = {name.lower(): value for name, value in response.getheaders()}
        return _Answer(response.status, received_headers, content)

    def _connection(self) -> CheckedConnection:
        connection: CheckedConnection | None = getattr(self._here, "connection", None)
        if connection is None:
            url = self._url
            assert url.hostname is not None
            is_tls = url.scheme == "https"
            port = url.port or (443 if is_tls else 80)
            connection = CheckedConnection(
                url.hostname, port, self._is_allowed, is_tls=is_tls, timeout=TIMEOUT
            )
            self._here.connection = connection
            self._connections.add(connection)
        return connection

    def close(self) -> None:
        """Close the connections of all threads, which must be idle."""
        self._sender.shutdown(wait=False)
        while self._connections:
            self._connections.pop().close()

    def abort(self) -> None:
        """Abort the exchanges of other threads and prevent new ones."""
        self._is_aborted = True
        for connection in [*self._connections]:
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        """Close the connection of this thread."""
        connection: CheckedConnection | None = getattr(self._here, "connection", None)
        if connection is not None:
            self._here.connection = None
            self._connections.discard(connection)
            connection.close()


def _time_of(answer: _Answer) -> float:
    """Return the service's Date header in seconds since 1970; 0 without one."""
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    return 0.0


def _retry_after(answer: _Answer) -> float:
    """Return the service's Retry-After in seconds; 0 without one."""
    text = answer.headers.get("retry-after", "")
    if text.isdecimal():
        return min(float(text), PATIENCE)
    milliseconds = answer.headers.get("x-ms-retry-after-ms", "")
    if milliseconds.isdecimal():
        return min(int(milliseconds) / 1000, PATIENCE)
    with suppress(ValueError, TypeError):
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - time()), PATIENCE)
    return 0.0


def _write_entity(stored: StoredEntity) -> bytes:
    # Azurite takes 1.0 for an Int32 unless its type is said
    content = _DOUBLE.sub(rb',"\1@odata.type":"Edm.Double","\1":\2', stored.content)
    return b"{%b%b}" % (stored.keys, write_members(content))


def _in_address(key: str) -> str:
    return quote(key.replace("'", "''"), safe="")
