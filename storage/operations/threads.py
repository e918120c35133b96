"""Control operations, called from the event loop: they run in a few threads of their own."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from storage.domain.errors import ServerBusy

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="control")
# some of it takes minutes, for which no request must wait
_background = ThreadPoolExecutor(max_workers=2, thread_name_prefix="background")


async def in_thread(operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The operation's result; its database connection goes back to the pool."""
    return await _run(_threads, partial(operation, *args, **kwargs))


async def in_background(operation: Callable[[], T]) -> T:
    """As in_thread, but for what no request is waiting for."""
    return await _run(_background, operation)


async def _run(executor: ThreadPoolExecutor, operation: Callable[[], T]) -> T:
    def call() -> T:
        try:
            return operation()
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database does not answer: %s", error)
            raise ServerBusy from None
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(executor, call)
