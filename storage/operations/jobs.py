"""What a server does beside answering: each process of each server tries, locks keep them from doing it twice."""

import asyncio
import logging
import random
from typing import Final

from storage.domain.errors import StorageError
from storage.operations import tables
from storage.operations.threads import in_thread

logger = logging.getLogger(__name__)

_INTERVAL: Final = 10.0  # seconds


async def run() -> None:
    """Runs until it is cancelled."""
    while True:
        # not all processes at the same moment
        await asyncio.sleep(_INTERVAL * random.uniform(0.5, 1.5))  # noqa: S311
        try:
            await in_thread(tables.reap)
        except StorageError:
            continue  # the database is away; it has been logged
        except Exception:
            logger.exception("Deleted tables could not be dropped")
