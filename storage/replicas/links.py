"""Dedicated connection to a database server, to poll its replication state.

Its queries never wait behind the statements of requests, so that an unresponsive server is noticed soon.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from psycopg import Error

from storage.domain.errors import ServerBusy, StorageError
from storage.replicas import samples
from storage.replicas.samples import Sample
from storage.sql.failures import Canceled, UnexpectedFailure
from storage.sql.feed import flush
from storage.sql.lanes import Lanes
from storage.sql.statement import Lane, Statement

T = TypeVar("T")

PATIENCE: Final = 0.5  # seconds for an answer
# steps of the event loop after which an answer is read that came while this process was busy itself
_STEPS: Final = 3
_CONNECT_PATIENCE: Final = 10.0  # several hosts are tried, and the first may not answer
_READ_PATIENCE: Final = 0.5  # seconds for a connection to a replica, before the primary answers instead


class Link:
    def __init__(self, conninfo: str, *, is_primary: bool) -> None:
        self._lanes = Lanes(
            conninfo,
            counts={Lane.KEY: 1},
            patience=PATIENCE,
            attempts=1,
            reconnects=False,
            is_primary=is_primary,
        )
        self.system: int | None = None  # the number that a primary and its replicas share, once connected

    async def sample(self) -> Sample:
        """Take a sample; raises ServerBusy on timeout. The next call reconnects."""
        try:
            if not self._lanes.is_open:
                await self._connect()
            return await self._run(samples.sample())
        except (Canceled, Error, StorageError, TimeoutError, UnexpectedFailure):
            self.drop()
            raise ServerBusy from None

    async def flush(self) -> None:
        """Flush the WAL to disk, so that replicas receive it; drop the connection on failure."""
        try:
            await self._run(flush())
        except (Canceled, StorageError, TimeoutError, UnexpectedFailure):
            self.drop()
            raise ServerBusy from None

    def drop(self) -> None:
        """Close the connection."""
        self._lanes.suspend()
        self._lanes.resume()

    def close(self) -> None:
        self._lanes.close()

    async def _connect(self) -> None:
        async with asyncio.timeout(_CONNECT_PATIENCE):
            await self._lanes.open()
        self.system = await self._run(samples.system())

    async def _run(self, statement: Statement[T]) -> T:
        asking = asyncio.create_task(self._lanes.run(statement))
        await asyncio.wait([asking], timeout=PATIENCE)
        for _ in range(_STEPS):
            if asking.done():
                return asking.result()
            await asyncio.sleep(0)
        asking.cancel()
        raise TimeoutError


async def open_lanes(lanes: Lanes) -> None:
    """Open one connection per lane in advance; raises ServerBusy."""
    lanes.resume()
    try:
        async with asyncio.timeout(_CONNECT_PATIENCE):
            await lanes.open()
    except (Error, TimeoutError):
        raise ServerBusy from None


def replica_lanes(conninfo: str, replayed: Callable[[], int]) -> Lanes:
    """Return lanes that fail fast, as the primary can serve the read instead.

    They refuse a server that has replayed less of the log than ``replayed``.
    """
    return Lanes(conninfo, patience=_READ_PATIENCE, attempts=1, is_primary=False, replayed=replayed)
