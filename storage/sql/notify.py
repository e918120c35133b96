"""News between the processes that share a database, and the locks that make the important ones count at once.

Each process keeps a snapshot of what every request needs to know, and holds a lock, shared, for as long as it does.
Who changes something announces it, so that all let go of their snapshots, and takes the lock alone: when that is
granted nobody works with what it replaces, and until it commits nobody keeps anything anew. A second lock, the turn,
keeps the processes from taking up the first again before the change has had it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Final

import psycopg
from django.db import connection, transaction

CHANNEL: Final = "tablero_catalog"
LISTENER: Final = "tablero catalog"  # how its connection is called in pg_stat_activity
TABLES: Final = "tables"
CHANGE: Final = "change"

_SILENCE: Final = 5.0  # seconds
_PATIENCE: Final = "5s"  # for a process that does not let go of its snapshot
_SNAPSHOT: Final = 0x7461626C65726F01  # keys of advisory locks: any numbers that nobody else uses
_TURN: Final = 0x7461626C65726F02


class News(Enum):
    """What a process hears."""

    HELD = auto()  # what is read from now on may be kept
    TABLES = auto()  # a table came or went
    CHANGE = auto()  # nothing may be kept; whoever asks for the next news has let go


def notify(payload: str) -> None:
    """Tells every listener, itself included, when the current transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))


@contextmanager
def turn() -> Iterator[None]:
    """The only change that is announced now; all processes let go of their snapshots until it is over."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
        cursor.execute("SELECT pg_advisory_lock(%s)", (_TURN,))
        notify(CHANGE)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", (_TURN,))


def wait_for_snapshots() -> None:
    """Returns when no process has a snapshot; none is made before the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_SNAPSHOT,))


async def listen(conninfo: str) -> AsyncIterator[News]:
    """Yields HELD first, and again after each CHANGE; raises OSError when the connection, and so the lock, is lost."""
    try:
        connect = psycopg.AsyncConnection.connect(conninfo, autocommit=True, application_name=LISTENER)
        async with await connect as conn:
            await conn.execute(f"LISTEN {CHANNEL}")
            while True:
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (_SNAPSHOT,))
                yield News.HELD
                while CHANGE not in (heard := await _hear(conn)):
                    if heard:
                        yield News.TABLES
                yield News.CHANGE
                await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (_SNAPSHOT,))
                # the change has the turn until it is done
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (_TURN,))
                await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (_TURN,))
    except psycopg.OperationalError as error:
        raise OSError(str(error).strip()) from error


async def _hear(conn: psycopg.AsyncConnection) -> list[str]:
    """All that came together, after a while of silence nothing."""
    heard = [news.payload async for news in conn.notifies(timeout=_SILENCE, stop_after=1)]
    if not heard:
        async with asyncio.timeout(_SILENCE):
            await conn.execute("SELECT 1")  # a connection that ended unnoticed would be silent as well
    return heard
