"""ASGI application of the server: Table service, console and API."""

import asyncio
import gc
import os
import re
import sys
import time
from collections.abc import Awaitable, MutableMapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from django import setup
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
setup(set_prefix=False)  # the service's models need it

from console.site import probes, static_files  # noqa: E402
from storage.core import registry  # noqa: E402
from storage.core.subject import Hook  # noqa: E402
from storage.core.tracer import Application, Receive, Scope, Send, Tracer  # noqa: E402
from storage.domain.errors import ServerBusy  # noqa: E402
from storage.jobs import files  # noqa: E402
from storage.protocol.call import ServerSettings  # noqa: E402
from storage.protocol.http_connection import Applications  # noqa: E402
from storage.protocol.http_request import RequestHead, announced_size  # noqa: E402
from storage.protocol.request_memory import SMALL, longest_arrival, memory  # noqa: E402
from storage.protocol.table_service import TableService  # noqa: E402
from storage.rest import middleware as api  # noqa: E402
from storage.rest import problems, streams, uploads  # noqa: E402
from storage.runtime import prometheus  # noqa: E402

tracer: Tracer | None = next((start(os.environ) for start in registry.hooks(Hook.TRACER)), None)


service = TableService(
    ServerSettings(
        conninfo=settings.LANES_CONNINFO,
        host_suffixes=settings.HOST_SUFFIXES,
        bearer=settings.BEARER,
        key_length_limit=settings.TABLERO_KEY_LENGTH_LIMIT,
    ),
    tracer,
)
probing = probes.ProbeHandler()
static = static_files.StaticFiles(development=settings.DEVELOPMENT)
# bytes; Django writes a body to disk before it authenticates the request
BODY_LIMIT: Final = 1024 * 1024
# an entity of 1 MiB in UTF-8, plus compressed copies of its original and, in a conflict, its intended state
ENTITY_LIMIT: Final = 8 * 1024 * 1024
_REST_OPTIONS: Final = (b"restype", b"comp", b"sig")
# an upload of any size is in memory with one piece at a time, and its copies
UPLOAD_SHARE: Final = files.PIECE // 2
ENTITY_PATH = re.compile(r"/ui/a/[^/]+/t/[^/]+/entity/")
HOST_SUFFIXES = tuple(f".{suffix}".encode() for suffix in settings.HOST_SUFFIXES)


def is_console(head: RequestHead) -> bool:
    """Return whether a request is for the console or its API."""
    path = unquote_to_bytes(head.path) if b"%" in head.path else head.path
    if not path.startswith(b"/ui/") and path not in (b"/", b"/ui"):
        return False
    return not _names_an_account(head.fields) and not (path == b"/" and _is_of_rest_client(head))


def _is_of_rest_client(head: RequestHead) -> bool:
    """Return whether a request for / is from a Table service client that omitted the account."""
    return (
        head.method not in ("GET", "HEAD")
        or not head.headers.keys().isdisjoint((b"x-ms-version", b"authorization"))
        or not {option.partition(b"=")[0] for option in head.query.split(b"&")}.isdisjoint(_REST_OPTIONS)
    )


def application(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
    if scope["type"] == "lifespan":
        return _live(receive, send)
    path: str = scope["path"]
    if path.startswith(static_files.PREFIX):
        return static(scope, receive, send)
    if path in probes.PATHS:
        return _console(probing, scope, receive, send)
    return pages(scope, receive, send)


async def _pages(scope: Scope, receive: Receive, send: Send) -> None:
    await _answer(scope, receive, _counting(scope, send))


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a page; the first request imports all pages in a thread, so that the Table service is not blocked."""
    if settings.ROOT_URLCONF not in sys.modules:
        await asyncio.to_thread(import_module, settings.ROOT_URLCONF)
        gc.freeze()  # the server does so too with all objects that exist at its start
    await streams.run(django, service.live_feed, service.access_changes, scope, receive, send)


def _counting(scope: Scope, send: Send) -> Send:
    """Wrap ``send`` to count a request when its response starts."""
    began = time.perf_counter()
    part = "api" if scope["path"].startswith("/ui/api/") else "console"

    async def send_counted(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            prometheus.count_page(part, scope["method"], message["status"], time.perf_counter() - began)
        await send(message)

    return send_counted


class _Django(ASGIHandler):
    """Django handler that sends a response's content as one message, so that it never waits for the client.

    Between messages, a response would keep its thread and database connection for as long as the client
    likes.
    """

    chunk_size = sys.maxsize


django: Any = _Django()
if tracer is not None:
    tracer.trace_routes(django)
serve = service.serve if tracer is None else tracer.trace_requests(service.serve)
applications = Applications(serve, application, is_console, settings.OPTIONS.trusted_proxies)


memory.resize(settings.OPTIONS.request_memory)
memory.count_refusal = prometheus.count_memory_refusal


async def _console(application: Any, scope: Scope, receive: Receive, send: Send) -> None:
    headers = dict(scope["headers"])
    size = announced_size(headers)
    if uploads.takes_upload(scope):
        await _receive_upload(scope, receive, _counting(scope, send), size)
        return
    if not size and b"transfer-encoding" not in headers:
        await application(scope, receive, send)
        return
    limit = ENTITY_LIMIT if ENTITY_PATH.match(scope["path"]) else BODY_LIMIT
    body = _Body(receive, limit, min(size, limit))
    await body.take_memory()
    try:
        if not body.refused:
            await application(scope, body.receive, send)
    finally:
        body.release()
    if body.refused:
        await _refuse_body(body.refused, body.retry_after, scope, send)


pages: Application = partial(_console, _pages)
if tracer is not None:
    pages = tracer.trace_pages(pages)


async def _receive_upload(scope: Scope, receive: Receive, send: Send, size: int) -> None:
    held = 0
    try:
        held = await memory.console.wait(UPLOAD_SHARE)
        patience = longest_arrival(files.PIECE)
        await uploads.run(_answer, scope, receive, send, size=size, patience=patience)
    except uploads.UploadRefused as refused:
        await _refuse_body(refused.status, 0, scope, send)
    except ServerBusy as error:
        await _refuse_body(503, error.retry_after, scope, send)
    finally:
        memory.console.release(held)


class _Body:
    """Request body with a size limit and a time limit by its size; excess content is not received.

    ``size`` is the announced length, 0 for a chunked body.
    """

    def __init__(self, receive: Receive, limit: int, size: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = size
        self._received = 0
        self._held = 0  # bytes of the budget
        self._deadline = asyncio.get_running_loop().time() + longest_arrival(size or limit)
        self._is_complete = False
        self.refused = 0  # the status, if the body is too large or too slow, or there is no memory for it
        self.retry_after = 0  # seconds

    async def take_memory(self) -> None:
        try:
            if self._size > SMALL:
                self._held = await memory.console.wait(self._size)
            else:
                self._held = memory.console.take(self._size)
        except ServerBusy as error:
            self._refuse(503, error.retry_after)

    def release(self) -> None:
        memory.console.release(self._held)

    async def receive(self) -> MutableMapping[str, Any]:
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            return self._refuse(408)
        self._is_complete = not message.get("more_body")
        self._received += len(message.get("body", b""))
        if self._received > self._limit:
            return self._refuse(413)
        if self._received > self._size:
            try:
                self._held = memory.console.take(self._received, self._held)
            except ServerBusy as error:
                return self._refuse(503, error.retry_after)
        return message

    def _refuse(self, status: int, retry_after: int = 0) -> MutableMapping[str, Any]:
        self.refused, self.retry_after = status, retry_after
        return {"type": "http.disconnect"}  # the application then ends without an answer


async def _refuse_body(status: int, retry_after: int, scope: Scope, send: Send) -> None:
    problem = api.refused_body(status, scope["path"])
    headers = [(b"Content-Length", b"%d" % len(problem)), (b"Connection", b"close")]
    if retry_after:
        headers.append((b"Retry-After", b"%d" % retry_after))
    if problem:
        headers.append((b"Content-Type", problems.MEDIA_TYPE.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": problem})


def _names_an_account(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether the host is ACCOUNT.SUFFIX, so that every path belongs to the account."""
    if not HOST_SUFFIXES:
        return False
    host = next((value for name, value in headers if name == b"host"), b"")
    return host.partition(b":")[0].lower().endswith(HOST_SUFFIXES)


async def _live(receive: Receive, send: Send) -> None:
    await receive()
    await service.startup()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await service.shutdown()
    await send({"type": "lifespan.shutdown.complete"})
