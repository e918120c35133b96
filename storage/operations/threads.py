"""Threads for control operations that are called from the event loop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import InterfaceError, InternalError, OperationalError, connection

from storage.domain.errors import ServerBusy
from storage.sql.django import reading_from
from storage.sql.failures import READ_ONLY

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="control")
# what waits for a primary that does not answer must not delay what is read from a replica
_standby = ThreadPoolExecutor(max_workers=4, thread_name_prefix="standby")
# streams ask all at once whether they may go on, which must not delay requests either
_access = ThreadPoolExecutor(max_workers=2, thread_name_prefix="access")
# background jobs may take minutes and must not delay requests
_background = ThreadPoolExecutor(max_workers=2, thread_name_prefix="background")


async def in_thread(operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an operation in a thread and return its database connection to the pool."""
    return await _run(_threads, partial(operation, *args, **kwargs))


async def on_replica(alias: str, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an operation that only reads, with a replica as Django's database."""

    def call() -> T:
        with reading_from(alias):
            return operation(*args, **kwargs)

    return await _run(_standby, call)


async def in_access_thread(operation: Callable[[], T]) -> T:
    """Run a question about the access of a stream."""
    return await _run(_access, operation)


async def in_background(operation: Callable[[], T]) -> T:
    """Run an operation for which no request waits."""
    return await _run(_background, operation)


async def _run(executor: ThreadPoolExecutor, operation: Callable[[], T]) -> T:
    def call() -> T:
        try:
            return operation()
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database does not answer: %s", error)
            raise ServerBusy from None
        except InternalError as error:
            if getattr(error.__cause__, "sqlstate", None) != READ_ONLY:
                raise
            logger.warning("The database is a standby: %s", error)
            raise ServerBusy from None
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(executor, call)


async def pieces_in_thread(pieces: Generator[bytes, None, None]) -> AsyncIterator[bytes]:
    """Yield the pieces of a response that a thread makes one by one, as they are sent."""
    following = sync_to_async(lambda: next(pieces, None))
    try:
        while (piece := await following()) is not None:
            yield piece
    finally:
        # also when the client is gone: a record written at the end must not wait for the garbage collector
        await asyncio.shield(sync_to_async(pieces.close)())
