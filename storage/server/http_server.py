"""HTTP server of one process: uvicorn on a bound socket."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

import uvicorn

from storage.jobs import process_end
from storage.protocol.http_connection import Applications, HttpConnection
from storage.protocol.uvicorn_parts import import_from_string
from storage.server import descriptors, garbage, heap, tls
from storage.server.options import Options
from storage.server.refusal import Refusal

logger = logging.getLogger(__name__)

APPLICATION = "console.asgi:application"
APPLICATIONS = "console.asgi:applications"
BACKLOG = 2048
# for TLS 1.2; by default uvicorn offers only suites that are older than authenticated encryption
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
KEEP_ALIVE = 75  # seconds; longer than load balancers keep theirs, so that they close first
TICK = 1.0  # seconds; in between, answers have the same Date
WATCH = 2  # ticks between two looks at the files of the certificate
DRAIN = 10  # seconds for requests in flight when the server ends
FAREWELL = 3  # part of these seconds, for answers to clients that wait for a job that goes on later


class Server(uvicorn.Server):
    """Uvicorn server that signals when it is ready, and leaves signal handling to its process."""

    def __init__(self, options: Options, started: Callable[[], None]) -> None:
        super().__init__(_config(options))
        self._options = options
        self._started = started
        self._is_reload_wanted = False
        self._wake: Callable[[], object] = lambda: None
        self._certificate = tls.FileWatch(options.tls_cert, options.tls_key)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        garbage.keep()
        if not self._options.small:
            heap.keep_freed()
        if not self.should_exit:
            self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        """Wake up for signals and for the Date header only, where uvicorn polls ten times a second."""
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        ticks = count()
        while not await self.on_tick(next(ticks)):
            timer = loop.call_later(TICK, woken.set)
            await woken.wait()
            timer.cancel()
            woken.clear()

    async def on_tick(self, counter: int) -> bool:
        if self._is_reload_wanted:
            self._is_reload_wanted = False
            self._certificate.accept()
            self._load_certificate()
        elif counter % WATCH == 0 and self._certificate.has_changed():
            self._load_certificate()
        return await super().on_tick(0)  # with a new Date

    def reload(self) -> None:
        """Request a reload of the certificate; safe in signal handlers, as it only sets a flag."""
        self._is_reload_wanted = True
        self._wake()

    def _load_certificate(self) -> None:
        """Load the certificate for new connections; an unusable one changes nothing."""
        if self.config.ssl is None:
            return
        try:
            tls.check(self._options)
            self.config.ssl.load_cert_chain(self._options.tls_cert, self._options.tls_key)
        except (OSError, Refusal) as error:
            logger.error("%s The server goes on with the certificate it has.", error)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the shutdown to threads of requests shortly before the deadline, as they cannot be cancelled."""
        asyncio.get_running_loop().call_later(DRAIN - FAREWELL, process_end.announce)
        await super().shutdown(sockets)
        process_end.announce()

    def drain(self) -> None:
        self.should_exit = True
        self._wake()

    def stop_at_once(self) -> None:
        self.force_exit = True


def bind(options: Options) -> socket.socket:
    """Bind the socket without listening: until the database is ready, clients are refused."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((options.host, options.port))
    except OSError as error:
        bound.close()
        raise Refusal(_why(options, error)) from None
    return bound


def listen(options: Options, bound: socket.socket) -> None:
    """Listen on the socket; raises Refusal if another has begun to since it was bound, which uvloop would not say."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        raise Refusal(_why(options, error)) from None


def _config(options: Options) -> uvicorn.Config:
    return uvicorn.Config(
        APPLICATION,
        interface="asgi3",
        loop="uvloop",
        http=_connect,  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the connection reads them, for both applications
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
        ssl_ciphers=CIPHERS,
    )


def _connect(**arguments: Any) -> HttpConnection:
    """Create a protocol instance for a new connection."""
    return HttpConnection(applications(), **arguments, most_connections=descriptors.most_connections())


@cache
def applications() -> Applications:
    found: Applications = import_from_string(APPLICATIONS)
    return found


def _why(options: Options, error: OSError) -> str:
    where = f"{options.host}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        return f"The port {options.port} on {options.host} is in use; choose another with --listen HOST:PORT."
    if error.errno == errno.EACCES:
        return (
            f"You may not listen on {where}; choose a port above 1023 with --listen HOST:PORT, or give the process the"
            " capability CAP_NET_BIND_SERVICE, as AmbientCapabilities of a systemd unit does."
        )
    return (
        f"It is not possible to listen on {where} ({error.strerror}); choose another with --listen HOST:PORT."
    )
