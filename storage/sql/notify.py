"""Notifications between processes, and the locks with which a change invalidates all catalogs before it commits.

A process holds a shared lock, the snapshot lock, while it has a catalog. A change sends a notification, so that all
processes drop their catalogs, and takes the snapshot lock exclusively: once it is granted, no process uses old data,
and none caches new data before the commit. A second lock, the turn, keeps processes from taking the shared lock again
before the change has got it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Final

import psycopg
from django.db import transaction

from storage.sql.django import execute

CHANNEL: Final = "tablero_catalog"
LISTENER: Final = "tablero catalog"  # application name of its connection
TABLES: Final = "tables"
CHANGE: Final = "change"

_SILENCE: Final = 5.0  # seconds without a notification, after which the connection is checked
_LOCK_TIMEOUT: Final = "5s"  # for a process that does not drop its catalog
_SNAPSHOT: Final = 0x7461626C65726F01  # keys of advisory locks, arbitrary numbers
_TURN: Final = 0x7461626C65726F02


class News(Enum):
    """An event for a catalog."""

    HELD = auto()  # what is read from now on may be cached
    TABLES = auto()  # a table was created or deleted
    CHANGE = auto()  # drop the cache before asking for the next event


def notify(payload: str) -> None:
    """Notify every listener, including this process, when the current transaction commits."""
    execute("SELECT pg_notify(%s, %s)", CHANNEL, payload)


@contextmanager
def turn() -> Iterator[None]:
    """Let one change at a time announce itself; all processes drop their catalogs until the block ends."""
    with transaction.atomic():
        execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        execute("SELECT pg_advisory_lock(%s)", _TURN)
        notify(CHANGE)
    try:
        yield
    finally:
        execute("SELECT pg_advisory_unlock(%s)", _TURN)


def wait_for_snapshots() -> None:
    """Wait until no process has a catalog; none caches anything before the current transaction ends."""
    execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    execute("SELECT pg_advisory_xact_lock(%s)", _SNAPSHOT)


async def listen(conninfo: str) -> AsyncIterator[News]:
    """Yield HELD first and after each CHANGE; raises OSError when the connection, and with it the lock, is lost."""
    try:
        connect = psycopg.AsyncConnection.connect(conninfo, autocommit=True, application_name=LISTENER)
        async with await connect as conn:
            await conn.execute(f"LISTEN {CHANNEL}")
            while True:
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (_SNAPSHOT,))
                yield News.HELD
                while CHANGE not in (payloads := await _receive(conn)):
                    if payloads:
                        yield News.TABLES
                yield News.CHANGE
                await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (_SNAPSHOT,))
                # wait for the change, which has the turn until it is done
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (_TURN,))
                await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (_TURN,))
    except psycopg.OperationalError as error:
        raise OSError(str(error).strip()) from error


async def _receive(conn: psycopg.AsyncConnection) -> list[str]:
    """Return the payloads that arrived together; none after a time without notifications."""
    payloads = [news.payload async for news in conn.notifies(timeout=_SILENCE, stop_after=1)]
    if not payloads:
        async with asyncio.timeout(_SILENCE):
            await conn.execute("SELECT 1")  # a lost connection would be silent too
    return payloads
