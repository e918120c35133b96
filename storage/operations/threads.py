"""Control operations, called from the event loop: they run in a few threads of their own."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from storage.domain.errors import ServerBusy

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="control")


async def in_thread(operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The operation's result; its database connection goes back to the pool."""

    def call() -> T:
        try:
            return operation(*args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database does not answer: %s", error)
            raise ServerBusy from None
        finally:
            connection.close()

    return await asyncio.get_running_loop().run_in_executor(_threads, call)
