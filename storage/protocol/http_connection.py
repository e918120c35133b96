"""HTTP/1.1 connection: parsing, limits and ordering of requests, and errors for malformed ones."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, MutableMapping
from enum import Enum, auto
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple
from uuid import uuid4

import httptools
from uvicorn.config import Config

from storage.domain.access.addresses import read_client
from storage.domain.errors import (
    HostInformationNotPresent,
    HttpVersionNotSupported,
    InvalidHeaderValue,
    InvalidHttpVerb,
    InvalidInput,
    RequestUrlFailedToParse,
    ServerBusy,
    StorageError,
)
from storage.domain.requests.routes import is_host
from storage.protocol.errors import ErrorOrigin, write_error
from storage.protocol.http_exchange import (
    AsgiApplication,
    AsgiExchange,
    Exchange,
    Serve,
    ServiceExchange,
    asgi_scope,
    write_head,
)
from storage.protocol.http_request import Headers, RequestHead, join_repeated
from storage.protocol.request_memory import memory
from storage.protocol.uvicorn_parts import (
    FlowControl,
    ProxyHeadersMiddleware,
    ServerState,
    get_local_addr,
    get_remote_addr,
    is_ssl,
)

logger = logging.getLogger(__name__)

SERVER: Final = b"Windows-Azure-Table/1.0 Tablero"  # clients look for the first part
MAX_HEAD: Final = 64 * 1024  # bytes of the request line and the headers together, as received
MAX_STALL: Final = (
    30.0  # seconds a head may take, a body may pause, and a client may read nothing of its answers
)
LINGER: Final = 2.0  # seconds a refused client has to read the answer
FAREWELL: Final = 1.0  # seconds an idle TLS client has to close its side

PIECE: Final = 16 * 1024  # bytes that are parsed at once
PIPELINED: Final = 100  # requests of a connection that wait; what follows is parsed when they are answered

_END_OF_HEAD: Final = b"\r\n\r\n"
_VERSIONS: Final = ("1.1", "1.0")
_URL_ERRORS: Final = (httptools.HttpParserCallbackError, httptools.HttpParserInvalidURLError)
_NO_VERSION: Final = "Expected HTTP/"  # how the parser calls what follows a space in a URL
_TOO_LONG: Final = "The request line and the headers are longer than 65536 bytes."


class Applications(NamedTuple):
    """Applications behind a connection: ``serve`` for the Table service, ``asgi`` for requests with ``is_asgi``."""

    serve: Serve
    asgi: AsgiApplication
    is_asgi: Callable[[RequestHead], bool]
    proxies: tuple[str, ...] = ()


class _Flow(FlowControl):
    """Flow control that pauses reading while unparsed requests wait."""

    is_full = False

    def resume_reading(self) -> None:
        if not self.is_full:
            super().resume_reading()


class _Stage(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()


class _Begun(Enum):
    """Position where the current head began: in an earlier piece, first in this piece, or later in it."""

    EARLIER = auto()
    NOT_YET = auto()
    FIRST = auto()
    WITHIN = auto()


_IDLE, _HEAD, _BODY = _Stage.IDLE, _Stage.HEAD, _Stage.BODY
_EARLIER, _NOT_YET, _FIRST, _WITHIN = _Begun.EARLIER, _Begun.NOT_YET, _Begun.FIRST, _Begun.WITHIN


class HttpConnection(asyncio.Protocol):
    """HTTP/1.1 connection; a single timer checks all deadlines and is seldom restarted."""

    transport: asyncio.Transport
    flow: FlowControl

    def __init__(
        self,
        applications: Applications,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        most_connections: float = inf,
    ) -> None:
        """Create a connection; beyond ``most_connections`` of the process it is refused."""
        self.loop = _loop or asyncio.get_running_loop()
        self.state = server_state
        self._applications = applications
        self._most_connections = most_connections
        self._idle_limit = config.timeout_keep_alive
        self._parser: Any = self._new_parser()
        # requests in the order of their arrival: the first is being answered, the last may still be arriving
        self._exchanges: deque[Exchange] = deque()
        self._arriving: Exchange | None = None
        self._is_advancing = False
        self._unparsed = b""
        self._has_ended = False
        self._expects_continue = False  # the last request, before it sends its body
        self._stage = _IDLE
        self._is_refused = False
        self._is_holding = False  # bytes of a request that is incomplete
        # bytes of a head, with those after it in the piece where it ends; in a body, bytes since the last of it
        self._pending = 0
        self._piece = b""
        self._tail = b""  # the end of the previous piece, in which the head began
        self._begun = _EARLIER
        self._body_size = 0  # bytes in this piece
        self._url = b""
        self._fields: Headers = []
        self._deadline = inf  # in seconds of the loop's clock
        self._head_deadline = inf
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0  # bytes that waited for the client at the last look

    # callbacks of the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.flow = self._limited_flow = _Flow(transport)
        self._client = get_remote_addr(transport) or ("", 0)
        self._server = get_local_addr(transport)
        self._scheme = "https" if is_ssl(transport) else "http"
        self.state.connections.add(self)  # type: ignore[arg-type]
        self._expect(MAX_STALL)
        if len(self.state.connections) > self._most_connections:
            logger.warning("Refused a client: %.0f connections are open.", self._most_connections)
            self._is_refused = True
            self._write_refusal(ServerBusy())

    def connection_lost(self, exc: Exception | None) -> None:
        self.state.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        memory.answers.release(self)
        memory.arriving.release(self)
        self._unparsed = b""
        exchanges, self._exchanges = self._exchanges, deque()
        for exchange in exchanges:
            exchange.lose()
        self.flow.resume_writing()
        self._parser = None

    def eof_received(self) -> bool:
        """Keep the connection open, as a client may half-close it and wait for the response."""
        if self._unparsed:
            self._has_ended = True
            return True
        if self._stage is not _IDLE or not self._is_answering:
            return False
        self._exchanges[-1].keep_alive = False
        self._exchanges[0].end_input()
        return True

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._deadline = inf
        if self._unparsed:
            self._unparsed += data
            self.flow.pause_reading()
        else:
            self._parse(data)

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._expect(MAX_STALL)
        memory.answers.hold(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        memory.answers.release(self)
        self._unsent = 0
        self._advance()

    def drop_answer(self) -> None:
        self.transport.abort()

    def drop_request(self) -> None:
        self._is_holding = False
        self._refuse(ServerBusy())
        self._arriving = None
        self._unparsed = b""

    def shutdown(self) -> None:
        """Close once no response is pending; called by uvicorn on shutdown."""
        if self._is_answering:
            self._exchanges[-1].keep_alive = False
            for exchange in self._exchanges:
                exchange.end()
            return
        self.transport.close()
        if self._scheme == "https":
            # TLS closes when both sides agree; a client that reads only when it sends its next request never does
            self.loop.call_later(FAREWELL, self.transport.abort)

    # callbacks of the parser

    def on_message_begin(self) -> None:
        self._stage = _HEAD
        self._url = b""
        self._fields = []
        self._begun = _FIRST if self._begun is _NOT_YET else _WITHIN
        self._pending = 0
        self._head_deadline = inf

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # the parser drops the blanks before a value only: https://www.rfc-editor.org/rfc/rfc9112#section-5
        self._fields.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        if self._pending > MAX_HEAD and self._head_size() > MAX_HEAD:
            raise InvalidHeaderValue(_TOO_LONG)
        parser = self._parser
        if parser.should_upgrade():
            return  # _feed begins again
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise HttpVersionNotSupported
        head = self._read_head(parser.get_method().decode("ascii"))
        host = head.headers.get(b"host")
        # the header is optional in HTTP/1.0 only, which some load balancers use to check the health of a server
        if not is_host(host) if host is not None else version == "1.1":
            raise HostInformationNotPresent
        # trailers are allowed to be dropped; collected, they would have no limit
        self._fields = _NOWHERE
        self._stage = _BODY
        self._pending = self._body_size = 0
        is_waiting = bool(self._exchanges)
        expect = head.headers.get(b"expect", b"")
        self._expects_continue = expect.lower() == b"100-continue" and version == "1.1"
        if not is_waiting:
            self._ask_for_body()
        exchange = self._exchange(head, version, version != "1.0" and parser.should_keep_alive())
        self._arriving = exchange
        self._exchanges.append(exchange)
        if is_waiting:
            self.flow.pause_reading()
        else:
            exchange.begin()

    def _ask_for_body(self) -> None:
        """Answer an Expect with 100 Continue in the turn of its request.

        Not when the body is read: if the request is answered before, it is unknown whether the client still sends the
        body, and so where its next request begins.
        """
        if self._expects_continue:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._pending = 0
        self._body_size += len(body)
        if self._arriving is not None:
            self._arriving.feed(body)

    def on_message_complete(self) -> None:
        self._stage = _IDLE
        if self._is_holding:
            self._is_holding = False
            memory.arriving.release(self)
        exchange, self._arriving = self._arriving, None
        if exchange is not None:
            exchange.finish()

    # requests

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        return parser

    def _parse(self, data: bytes) -> None:
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(self._reason(error))
            return
        if self._stage is _IDLE:
            if not self._exchanges:
                self._expect(self._idle_limit)
        elif self._pending > MAX_HEAD:
            self._refuse(InvalidHeaderValue(_TOO_LONG))
        elif self._stage is _BODY:
            self._expect(MAX_STALL)
            self._hold()
        else:
            self._head_deadline = min(self._head_deadline, self.loop.time() + MAX_STALL)
            self._expect_at(self._head_deadline)
            self._hold()

    def _hold(self) -> None:
        """Account for the memory of an incomplete request, until it has a share of its own."""
        size = len(self._unparsed)
        if self._stage is _HEAD:
            size += max(self._pending, self._head_length())
        elif self._arriving is not None:
            size += self._arriving.arriving
        if size:
            self._is_holding = True
            memory.arriving.hold(self, size)
        elif self._is_holding:
            self._is_holding = False
            memory.arriving.release(self)

    def _feed(self, data: bytes) -> None:
        """Parse data until too many requests wait, and keep the rest."""
        if len(data) <= PIECE and len(self._exchanges) < PIPELINED:
            self._feed_piece(data)
            return
        for start in range(0, len(data), PIECE):
            if len(self._exchanges) >= PIPELINED:
                self._unparsed = data[start:]
                self._limited_flow.is_full = True
                self.flow.pause_reading()
                self._hold()
                return
            self._feed_piece(data[start : start + PIECE])

    def _parse_rest(self) -> None:
        if not self._unparsed or self._is_refused or self.transport.is_closing():
            return
        data, self._unparsed = self._unparsed, b""
        self._limited_flow.is_full = False
        self._parse(data)
        if self._has_ended and not self.eof_received():
            self._close()
        self._advance()

    def _feed_piece(self, data: bytes) -> None:
        self._piece = data
        self._pending += len(data)
        self._begun = _NOT_YET if self._stage is _IDLE else _EARLIER
        self._body_size = 0
        while data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # some clients offer an upgrade to HTTP/2 with each request; the parser then does not read the body
                if self._parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserInvalidMethodError("CONNECT") from None
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._parser = self._new_parser()
            else:
                break
        if self._stage is _HEAD:
            self._count_part_of_head()

    def _count_part_of_head(self) -> None:
        """Count the bytes of a head that continues in the next piece."""
        piece, most = self._piece, len(_END_OF_HEAD) - 1
        self._tail = (self._tail + piece)[-most:] if self._begun is _EARLIER else piece[-most:]
        if self._begun is _FIRST:
            self._pending = len(piece.lstrip(b"\r\n"))  # blank lines before it are none of it
        elif self._begun is _WITHIN:
            # it follows a head, or the body of that; one that has the end of a head in it makes this too small
            end = piece.rfind(_END_OF_HEAD)
            before = self._body_size if end < 0 else end + len(_END_OF_HEAD) + self._body_size
            self._pending = max(0, len(piece) - before)

    def _head_size(self) -> int:
        """Return the size of a head that began in an earlier piece and ends in this one."""
        piece = self._tail + self._piece
        end = piece.find(_END_OF_HEAD)
        return self._pending if end < 0 else self._pending - (len(piece) - end - len(_END_OF_HEAD))

    def _head_without_upgrade(self) -> bytes:
        lines = [
            b"%b %b HTTP/%b"
            % (self._parser.get_method(), self._url, self._parser.get_http_version().encode())
        ]
        for name, value in self._fields:
            if name == b"connection":
                lines.append(b"connection: close" if b"close" in value.lower() else b"connection: keep-alive")
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _head_length(self) -> int:
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._fields)

    def _read_head(self, method: str) -> RequestHead:
        url = self._url
        if url.startswith(b"/") and b"#" not in url and url.isascii():
            path, _, query = url.partition(b"?")
        else:
            parsed = httptools.parse_url(url)
            if not parsed.path or not parsed.path.isascii():
                raise RequestUrlFailedToParse
            path, query = parsed.path, parsed.query or b""
        fields = self._fields
        scheme, (client, port) = self._scheme, self._client
        if self._applications.proxies:
            scheme, (client, port) = _forwarded(self._applications.proxies, scheme, (client, port), fields)
        return RequestHead(method, path, query, fields, join_repeated(fields), scheme, client, port)

    def _exchange(self, head: RequestHead, version: str, keep_alive: bool) -> Exchange:
        applications = self._applications
        if not applications.is_asgi(head):
            return ServiceExchange(self, applications.serve, head, keep_alive)
        return AsgiExchange(self, applications.asgi, asgi_scope(head, version, self._server), keep_alive)

    # answers

    @property
    def _is_answering(self) -> bool:
        return bool(self._exchanges) and not self._exchanges[-1].is_complete

    def answered(self) -> None:
        if self._exchanges[0].keep_alive:
            self._advance()
        else:
            self._close()

    def _advance(self) -> None:
        """Start the next requests while the client accepts responses."""
        if self._is_advancing:
            return  # in the loop below, which goes on by itself: pipelined requests must not nest
        self._is_advancing = True
        exchanges = self._exchanges
        try:
            while exchanges and exchanges[0].is_complete and not self._is_blocked:
                exchanges.popleft()
                if exchanges:
                    if exchanges[0] is self._arriving:
                        self._ask_for_body()
                    exchanges[0].begin()
        finally:
            self._is_advancing = False
        if len(exchanges) <= 1 and not self._is_blocked:
            self._read_on()

    @property
    def _is_blocked(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing()

    def _read_on(self) -> None:
        if self._unparsed:
            self.loop.call_soon(self._parse_rest)  # not at once: this may be called by the parser
            return
        self.flow.resume_reading()
        if not self._exchanges and self._stage is _IDLE:
            self._expect(self._idle_limit)

    # deadlines

    def _expect(self, seconds: float) -> None:
        """Set a deadline for the client in seconds."""
        self._expect_at(self.loop.time() + seconds)

    def _expect_at(self, deadline: float) -> None:
        self._deadline = deadline
        timer = self._timer
        if timer is None or timer.when() > deadline:
            if timer is not None:
                timer.cancel()
            self._timer = self.loop.call_at(deadline, self._check_progress)

    def _check_progress(self) -> None:
        self._timer = None
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if now < self._deadline < inf:
            self._expect_at(self._deadline)
        elif unsent:
            if unsent == self._unsent:
                self.transport.abort()  # closing would wait for a client that does not read
            else:
                self._unsent = unsent
                self._expect(MAX_STALL)
        elif self._stage is _BODY and self.flow.read_paused:
            self._expect(MAX_STALL)  # it is the service that does not go on
        elif self._deadline < inf and (self._stage is not _IDLE or not self._exchanges):
            self.transport.close()

    def _close(self) -> None:
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._expect(MAX_STALL)

    # refusals

    def _reason(self, error: httptools.HttpParserError) -> StorageError:
        if isinstance(error.__context__, StorageError):
            return error.__context__
        if isinstance(error, httptools.HttpParserInvalidMethodError):
            return InvalidHttpVerb()
        if self._stage is _BODY:
            return InvalidInput()
        # a callback fails only on the URL; until the parser has read a version, it has that of the request before
        is_of_url = isinstance(error, _URL_ERRORS) or str(error).startswith(_NO_VERSION)
        if is_of_url or self._parser.get_http_version() not in _VERSIONS:
            return RequestUrlFailedToParse()
        return InvalidHeaderValue()

    def _refuse(self, error: StorageError) -> None:
        """Respond to a malformed request and close, after earlier responses are sent."""
        self._is_refused = True
        logger.info("Refused a request: %s", error.message)
        if self._stage is not _BODY:
            if self._is_answering:
                self._exchanges[-1].keep_alive = False
            else:
                self._write_refusal(error)
        elif len(self._exchanges) == 1 and not self._exchanges[0].is_started:
            self._exchanges.pop().lose()
            self._write_refusal(error)
        else:
            self.transport.close()

    def _write_refusal(self, error: StorageError) -> None:
        request_id = str(uuid4())
        answer = write_error(error, ErrorOrigin.CONNECTION, request_id)
        headers = [
            (b"server", SERVER),
            *self.state.default_headers,
            (b"content-type", answer.content_type),
            (b"content-length", b"%d" % len(answer.body)),
            (b"x-ms-request-id", request_id.encode()),
            (b"x-ms-error-code", error.code.encode()),
        ]
        if isinstance(error, ServerBusy):
            headers.append((b"retry-after", b"%d" % error.retry_after))
        # after an unknown verb the parser still holds the previous one; it has a URL only after the verb
        body = b"" if self._url and self._parser.get_method() == b"HEAD" else answer.body
        self.transport.write(write_head(answer.status, headers, keep_alive=False) + body)
        self._linger()

    def _linger(self) -> None:
        # closed with bytes unread, the connection would be reset and the answer lost
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._expect(LINGER)
        else:
            self.transport.close()


def _forwarded(
    proxies: tuple[str, ...], scheme: str, client: tuple[str, int], fields: Headers
) -> tuple[str, tuple[str, int]]:
    """Return scheme and client from a trusted proxy's headers, without a malformed address."""
    headers = _with_one_scheme(fields)
    scope: MutableMapping[str, Any] = {"type": "http", "scheme": scheme, "client": client, "headers": headers}
    coroutine: Any = _middleware(proxies)(scope, None, None)  # type: ignore[arg-type]
    try:
        coroutine.send(None)
    except StopIteration:
        pass
    if scope["client"] == client:
        return scope["scheme"], client
    host, port = scope["client"]
    address = read_client(host)
    return scope["scheme"], ("" if address is None else str(address), port)


def _with_one_scheme(fields: Headers) -> Headers:
    """Replace the schemes that several proxies in a row have listed by the one on which they agree, or by none."""
    schemes = [it.strip() for name, value in fields if name == _SCHEME for it in value.split(b",")]
    if len(schemes) < 2:
        return fields
    others = [field for field in fields if field[0] != _SCHEME]
    return [*others, (_SCHEME, schemes[0])] if len(set(schemes)) == 1 else others


@lru_cache
def _middleware(proxies: tuple[str, ...]) -> ProxyHeadersMiddleware:
    async def nothing(*_: Any) -> None:
        pass

    return ProxyHeadersMiddleware(nothing, list(proxies))


_SCHEME: Final = b"x-forwarded-proto"

# discards headers that come after a body
_NOWHERE: Final[Any] = deque(maxlen=0)
