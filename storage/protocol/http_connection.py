"""An HTTP/1.1 connection: uvicorn's protocol with limits, deadlines, and error answers for malformed requests."""

import asyncio
from collections import deque
from enum import Enum, auto
from typing import Any, Final
from uuid import uuid4

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from storage.domain.errors import (
    InvalidHeaderValue,
    InvalidHttpVerb,
    InvalidInput,
    RequestUrlFailedToParse,
    StorageError,
)
from storage.protocol.errors import ErrorOrigin, write_error

SERVER: Final = b"Windows-Azure-Table/1.0 Tablero"  # clients look for the first part
MAX_HEAD: Final = 64 * 1024  # bytes of the request line and the headers together
MAX_STALL: Final = 30.0  # seconds a head may take, and a body may pause
LINGER: Final = 2.0  # seconds a refused client has to read the answer
FAREWELL: Final = 1.0  # seconds an idle TLS client has to close its side

_TOO_LONG: Final = "The request line and the headers are longer than 65536 bytes."


class _Stage(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()


class HttpConnection(HttpToolsProtocol):
    """Only a request that arrives in pieces needs a timer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stage = _Stage.IDLE
        self._running: RequestResponseCycle | None = None
        self._refused = False
        self._chunk = 0
        self._pending = 0  # bytes since the parser last delivered the start of a message or a piece of a body
        self._deadline = 0.0
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._close_when_idle(MAX_STALL)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pipeline.clear()
        super().connection_lost(exc)
        # of pipelined requests uvicorn notifies only the last one
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self._unset_keepalive_if_required()
        if self._watch is not None:
            self._watch.cancel()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client may close its side after a complete request and still wait for the answer."""
        if self._stage is not _Stage.IDLE or not self._answering():
            return False
        self.cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._chunk = len(data)
        self._pending += self._chunk
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse(self._reason(error))
            return
        if self._stage is _Stage.IDLE:
            if not self._answering() and self.timeout_keep_alive_task is None:
                self._close_when_idle(self.timeout_keep_alive)
        elif self._pending > MAX_HEAD:
            self._refuse(InvalidHeaderValue(_TOO_LONG))
        else:
            self._expect_more()

    def shutdown(self) -> None:
        super().shutdown()
        if self.scheme == "https" and not self._answering():
            # TLS closes when both sides agree; a client that reads only when it sends its next request never does
            self.loop.call_later(FAREWELL, self.transport.abort)

    # callbacks of the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._stage = _Stage.HEAD
        self._pending = 0
        self._deadline = 0.0

    def on_headers_complete(self) -> None:
        if self._pending + self._chunk > MAX_HEAD and self._head_length() > MAX_HEAD:
            raise InvalidHeaderValue(_TOO_LONG)
        if self.parser.should_upgrade():
            return  # _feed begins again
        super().on_headers_complete()
        self._stage = _Stage.BODY
        self._pending = 0
        # trailers are allowed to be dropped; collected, they would have no limit
        self.headers = _NOWHERE
        if self.expect_100_continue and not self.pipeline:
            self._ask_for_body()

    def on_body(self, body: bytes) -> None:
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stage = _Stage.IDLE
        if not self.parser.should_upgrade():
            super().on_message_complete()

    # requests

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # some clients offer an upgrade to HTTP/2 with each request; the parser then does not read the body
                if self.parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserInvalidMethodError("CONNECT") from None
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._set_parser()
            else:
                return

    def _set_parser(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def _head_without_upgrade(self) -> bytes:
        lines = [
            b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        for name, value in self.headers:
            if name == b"connection":
                lines.append(b"connection: close" if b"close" in value.lower() else b"connection: keep-alive")
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _head_length(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _ask_for_body(self) -> None:
        # at once, not when the application reads: if it answered without reading, it would be unknown whether the
        # client still sends the body, and so where its next request begins
        self.cycle.waiting_for_100_continue = False
        if self.scope["http_version"] == "1.1":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.disconnected

    # deadlines

    def _close_when_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _expect_more(self) -> None:
        if self._stage is _Stage.BODY or not self._deadline:
            self._deadline = self.loop.time() + MAX_STALL
        if self._watch is None:
            self._watch = self.loop.call_later(MAX_STALL, self._check_progress)

    def _check_progress(self) -> None:
        self._watch = None
        if self._stage is _Stage.IDLE or self.transport.is_closing():
            return
        now = self.loop.time()
        if self.flow.read_paused:  # the application is not reading
            self._deadline = now + MAX_STALL
        if now >= self._deadline:
            self.transport.close()
        else:
            self._watch = self.loop.call_later(self._deadline - now, self._check_progress)

    # refusals

    def _reason(self, error: httptools.HttpParserError) -> StorageError:
        if isinstance(error.__context__, StorageError):
            return error.__context__
        if isinstance(error, httptools.HttpParserInvalidMethodError):
            return InvalidHttpVerb()
        if self._stage is _Stage.BODY:
            return InvalidInput()
        # a callback fails only on the URL, and the version is known once the request line is read
        version = self.parser.get_http_version()
        if isinstance(error, httptools.HttpParserCallbackError) or version not in ("1.0", "1.1"):
            return RequestUrlFailedToParse()
        return InvalidHeaderValue()

    def _refuse(self, error: StorageError) -> None:
        """Answer a request that cannot be read, and close; the answer to an earlier request goes out first."""
        self._refused = True
        self.logger.info("Refused a request: %s", error.text)
        if self._stage is not _Stage.BODY:
            if self._answering():
                self.cycle.keep_alive = False
            else:
                self._write_refusal(error)
        elif self._answering() and not self.cycle.response_started and not self.pipeline:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._write_refusal(error)
        else:
            self.transport.close()

    def _write_refusal(self, error: StorageError) -> None:
        request_id = str(uuid4())
        answer = write_error(error, ErrorOrigin.CONNECTION, request_id)
        headers = {
            b"server": SERVER,
            **dict(self.server_state.default_headers),
            b"content-type": answer.content_type,
            b"content-length": b"%d" % len(answer.body),
            b"x-ms-request-id": request_id.encode(),
            b"x-ms-error-code": error.code.encode(),
            b"connection": b"close",
        }
        fields = [b"%b: %b\r\n" % header for header in headers.items()]
        # after an unknown verb the parser still holds the previous one; it has a URL only after the verb
        body = b"" if self.url and self.parser.get_method() == b"HEAD" else answer.body
        self.transport.write(b"".join([STATUS_LINE[answer.status], *fields, b"\r\n", body]))
        self._linger()

    def _linger(self) -> None:
        # closed with bytes unread, the connection would be reset and the answer lost
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._close_when_idle(LINGER)
        else:
            self.transport.close()


# discards headers that come after a body
_NOWHERE: Final[Any] = deque(maxlen=0)
