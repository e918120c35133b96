"""Exchange of a request and response on a connection, by the Table service or an ASGI application."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final, Protocol
from urllib.parse import unquote

from storage.protocol.http_request import Headers, RequestBody, RequestHead, announced_size
from storage.protocol.request_memory import SMALL
from storage.protocol.uvicorn_parts import (
    HIGH_WATER_LIMIT,
    STATUS_LINE,
    FlowControl,
    RequestResponseCycle,
    ServerState,
)

logger = logging.getLogger(__name__)

AsgiApplication = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


# takes the head and the body of an answer, and what to call when the connection may end; returns whether the client
# gets nothing
Deliver = Callable[[asyncio.Transport, bytes, bytes, Callable[[], None]], bool]


class Write(Protocol):
    """Function that sends a response."""

    def __call__(
        self,
        status: int,
        headers: Headers,
        body: bytes,
        reusable: bool,
        reason: bytes | None = None,
        deliver: Deliver | None = None,
        /,
    ) -> None:
        """Send a response; ``reusable`` keeps the connection open, ``reason`` replaces the reason phrase.

        With ``deliver``, that function decides what the client gets, and the connection ends.
        """


Serve = Callable[[RequestHead, RequestBody, Write], Coroutine[Any, Any, None]]


class Connection(Protocol):
    """Operations of a connection that an exchange needs."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: FlowControl
    state: ServerState

    def answered(self) -> None:
        """Note that the answer to the current request has been written."""


class Exchange(Protocol):
    """Exchange of a request and its response; ``keep_alive`` tells whether the connection stays open after it."""

    keep_alive: bool

    @property
    def is_started(self) -> bool:
        """Return whether part of the response was written."""

    @property
    def is_complete(self) -> bool:
        """Return whether the response was written completely."""

    @property
    def arriving(self) -> int:
        """Return the received bytes that are not in the memory budget yet."""

    def begin(self) -> None:
        """Start processing, after all earlier requests of the connection are answered."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> None:
        """Note that the request was received completely."""

    def lose(self) -> None:
        """Note that the connection was lost, or that an error was sent instead."""

    def end(self) -> None:
        """Note the shutdown, so that an endless response ends, too."""

    def end_input(self) -> None:
        """Note that the client sends nothing more, and may be gone."""


class ServiceExchange:
    """Exchange of a Table service request."""

    __slots__ = (
        "_body",
        "_connection",
        "_has_input_ended",
        "_head",
        "_is_delivering",
        "_is_ending",
        "_is_lost",
        "_is_silent",
        "_is_turn",
        "_serve",
        "_steps",
        "is_complete",
        "keep_alive",
    )

    def __init__(self, connection: Connection, serve: Serve, head: RequestHead, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.is_complete = False
        self._connection = connection
        self._serve = serve
        self._head = head
        self._body = RequestBody(connection.flow)
        self._steps: Coroutine[Any, Any, None] | None = None
        self._is_turn = False
        self._is_lost = False
        self._is_delivering = False  # takes its time with the answer
        self._is_silent = False  # sends nothing of it
        self._is_ending = False
        self._has_input_ended = False

    @property
    def is_started(self) -> bool:
        return self.is_complete

    @property
    def arriving(self) -> int:
        return self._body.arriving

    def begin(self) -> None:
        self._is_turn = True
        # a large one may be refused before it is read
        if self._body.complete or self._body.is_large or announced_size(self._head.headers) > SMALL:
            self._run()

    def feed(self, chunk: bytes) -> None:
        self._body.feed(chunk)
        if self._is_turn and self._steps is None and self._body.is_large:
            self._run()  # it may be refused before the rest has arrived

    def finish(self) -> None:
        self._body.finish()
        if self._is_turn and self._steps is None:
            self._run()

    def lose(self) -> None:
        self._is_lost = True
        self._body.lose()

    def end(self) -> None:
        self._is_ending = True
        self._give_up_delivery()

    def end_input(self) -> None:
        self._has_input_ended = True
        self._give_up_delivery()

    def _run(self) -> None:
        if not self._is_lost:
            self._steps = self._serve(self._head, self._body, self._write)
            self._step()

    def _step(self, _: "asyncio.Future[Any] | None" = None) -> None:
        """Run the coroutine until its next await, like a task but immediately."""
        assert self._steps is not None
        try:
            future = self._steps.send(None)
        except StopIteration:
            self._body.release()
            return
        except Exception:
            logger.exception("A request failed")
            self._body.release()
            self._connection.transport.abort()
            return
        if future is None:  # asyncio.sleep(0) yields None
            self._connection.loop.call_soon(self._step)
            return
        future._asyncio_future_blocking = False  # as a task does when it begins to wait
        future.add_done_callback(self._step)

    def _write(
        self,
        status: int,
        headers: Headers,
        body: bytes,
        reusable: bool,
        reason: bytes | None = None,
        deliver: Deliver | None = None,
    ) -> None:
        if self._is_lost:
            return
        if not reusable or deliver is not None:
            self.keep_alive = False
        default_headers = self._connection.state.default_headers
        head = write_head(status, default_headers + headers, keep_alive=self.keep_alive, reason=reason)
        if deliver is not None:
            self._is_delivering = True
            self._is_silent = deliver(self._connection.transport, head, body, self._complete)
            self._give_up_delivery()
            return
        self._connection.transport.write(head + body)
        self.is_complete = True
        self._connection.answered()

    def _give_up_delivery(self) -> None:
        """End the connection of a client that is kept waiting, if the server ends, or the client may be gone."""
        is_useless = self._is_ending or (self._is_silent and self._has_input_ended)
        if self._is_delivering and is_useless and not self.is_complete:
            self._connection.transport.abort()

    def _complete(self) -> None:
        if not self._is_lost and not self.is_complete:
            self.is_complete = True
            self._connection.answered()


# characters in a name or a value that would end a line, or are not text
_CONTROL: Final = bytes(set(range(32)) - set(b"\t")) + b"\x7f"


def write_head(status: int, headers: Headers, *, keep_alive: bool, reason: bytes | None = None) -> bytes:
    lines = [STATUS_LINE[status] if reason is None else b"HTTP/1.1 %d %b\r\n" % (status, reason)]
    for name, value in headers:
        lines.append(b"%b: %b\r\n" % (name.lower(), value))
    if not keep_alive:
        lines.append(b"connection: close\r\n")
    lines.append(b"\r\n")
    head = b"".join(lines)
    if len(head) - len(head.translate(None, _CONTROL)) != 2 * len(lines):
        raise ValueError("A header contains a control character.")
    return head


class AsgiExchange:
    """Exchange of an ASGI request, processed by uvicorn."""

    def __init__(
        self,
        connection: Connection,
        application: AsgiApplication,
        scope: MutableMapping[str, Any],
        keep_alive: bool,
    ) -> None:
        self._connection = connection
        self._application: Any = application
        self._is_begun = False
        self._ending: asyncio.Event = scope["state"]["ending"]
        self._cycle = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]
            transport=connection.transport,
            flow=connection.flow,
            logger=logger,
            access_logger=logger,
            access_log=False,
            default_headers=connection.state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,  # the connection has asked for the body
            keep_alive=keep_alive,
            on_response=connection.answered,
        )

    @property
    def keep_alive(self) -> bool:
        return self._cycle.keep_alive

    @keep_alive.setter
    def keep_alive(self, value: bool) -> None:
        self._cycle.keep_alive = value

    @property
    def is_started(self) -> bool:
        return self._cycle.response_started

    @property
    def is_complete(self) -> bool:
        return self._cycle.response_complete

    def begin(self) -> None:
        self._is_begun = True
        tasks = self._connection.state.tasks
        task = self._connection.loop.create_task(self._cycle.run_asgi(self._application))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    @property
    def arriving(self) -> int:
        return 0 if self._is_begun else len(self._cycle.body)  # the application counts them from then on

    def feed(self, chunk: bytes) -> None:
        cycle = self._cycle
        if cycle.response_complete:
            return
        cycle.body += chunk
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self._connection.flow.pause_reading()
        cycle.message_event.set()

    def finish(self) -> None:
        self._cycle.more_body = False
        self._cycle.message_event.set()

    def lose(self) -> None:
        self._cycle.disconnected = True
        self._cycle.message_event.set()

    def end(self) -> None:
        self._ending.set()

    def end_input(self) -> None:
        pass


def asgi_scope(
    head: RequestHead, http_version: str, server: tuple[str, int | None] | None
) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": http_version,
        "server": server,
        "client": (head.client, head.port) if head.client else None,
        "scheme": head.scheme,
        "root_path": "",
        "method": head.method,
        "path": decoded_path(head.path),
        "raw_path": head.path,
        "query_string": head.query,
        "headers": head.fields,
        "state": {"ending": asyncio.Event()},  # set when the server ends
    }


def decoded_path(path: bytes) -> str:
    text = path.decode("ascii")
    return unquote(text) if "%" in text else text
