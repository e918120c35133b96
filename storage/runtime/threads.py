"""Threads for blocking operations called from the event loop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock, get_ident
from typing import ClassVar, Final, ParamSpec, TypeVar
from weakref import WeakSet

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connection

from storage.accounts import quotas
from storage.core.quotas import DOWNLOADS
from storage.domain.errors import ServerBusy
from storage.domain.requests.spans import carried
from storage.sql.django import RESERVED_CONNECTIONS, is_unavailable, reading_from, reserved_connection
from storage.sql.interruption import interrupt

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE: Final = (
    20.0  # seconds for an operation that a request waits for; a database that hangs never answers
)

_probe = ThreadPoolExecutor(max_workers=1, thread_name_prefix="probe")
_threads = ThreadPoolExecutor(max_workers=RESERVED_CONNECTIONS - 1, thread_name_prefix="control")
# a thread that waits for an unresponsive primary must not delay reads from a standby
_standby = ThreadPoolExecutor(max_workers=4, thread_name_prefix="standby")
# streams ask all at once whether they may go on, which must not delay requests either
_access = ThreadPoolExecutor(max_workers=2, thread_name_prefix="access")
# uploads must not take the connections of pages
_uploads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="upload")
# background jobs may take minutes and must not delay requests
_background = ThreadPoolExecutor(max_workers=2, thread_name_prefix="background")


async def in_thread(operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an operation in a thread with a database connection not shared with the console."""
    return await _run(_threads, partial(_reserved, partial(operation, *args, **kwargs)))


def _reserved(operation: Callable[[], T]) -> T:
    with reserved_connection():
        return operation()


async def on_standby(alias: str, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read-only operation with a standby as Django's database."""

    def call() -> T:
        with reading_from(alias):
            return operation(*args, **kwargs)

    return await _run(_standby, call)


async def in_access_thread(operation: Callable[[], T]) -> T:
    """Run an access check of a stream in a thread."""
    return await _run(_access, operation)


async def in_upload_thread(operation: Callable[[], T]) -> T:
    """Write a piece of an upload in a thread."""
    return await _run(_uploads, operation)


async def in_probe_thread(operation: Callable[[], T]) -> T:
    """Run a readiness check in a thread of its own, independent of busy ones."""
    return await _run(_probe, partial(_reserved, operation))


async def in_background(operation: Callable[[], T]) -> T:
    """Run a background operation in a thread."""
    return await _run(_background, operation, is_awaited=False)


async def _run(executor: ThreadPoolExecutor, operation: Callable[[], T], *, is_awaited: bool = True) -> T:
    """Run an operation in a thread; if a request awaits it, raise ServerBusy after _PATIENCE."""
    threads: list[int] = []

    def call() -> T:
        threads.append(get_ident())
        try:
            return operation()
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database does not answer: %s", error)
            raise ServerBusy from None
        except DatabaseError as error:  # such as a standby, or a disk that is read-only
            if not is_unavailable(error):
                raise
            logger.warning("The database cannot do this now: %s", error)
            raise ServerBusy from None
        finally:
            connection.close()

    running = asyncio.get_running_loop().run_in_executor(executor, carried(call))
    try:
        done, _ = await asyncio.wait([running], timeout=_PATIENCE if is_awaited else None)
    except asyncio.CancelledError:
        running.cancel()
        raise
    if not done:
        logger.warning("The database gave no answer for %.0f seconds. A connection is closed.", _PATIENCE)
        running.cancel()  # if it has not begun
        for thread in threads:
            interrupt(thread)
        raise ServerBusy
    return running.result()


_MOST_DOWNLOADS: Final = 64  # downloads of a process; each has a thread until its client has read it


class TooManyDownloads(Exception):
    """The reader or process has too many unfinished downloads."""


class Download:
    """Streaming response whose pieces are made in a thread as they are sent; counted until it ends or is dropped."""

    _unfinished: ClassVar[WeakSet["Download"]] = WeakSet()
    _lock: ClassVar = Lock()

    def __init__(self, pieces: Generator[bytes, None, object], reader: str) -> None:
        """Create a download counted for ``reader``; raises TooManyDownloads."""
        self._reader = reader
        self._pieces = pieces
        with self._lock:
            readers = [download._reader for download in self._unfinished]
            if len(readers) >= _MOST_DOWNLOADS or readers.count(reader) >= quotas.limit(DOWNLOADS):
                raise TooManyDownloads
            self._unfinished.add(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        following = sync_to_async(_without_connection(lambda: next(self._pieces, None)))
        try:
            while (piece := await following()) is not None:
                yield piece
        finally:
            with self._lock:
                self._unfinished.discard(self)
            # also when the client is gone: a record written at the end must not wait for the garbage collector
            await asyncio.shield(sync_to_async(_without_connection(self._pieces.close))())


def _without_connection(step: Callable[[], T]) -> Callable[[], T]:
    """Close the database connection after each step, as the client may be slow to take the next piece."""

    def run() -> T:
        try:
            return step()
        finally:
            close_old_connections()

    return run
