"""Notifications between processes, and the locks by which a change invalidates all catalogs before it commits.

A process holds a shared lock, the snapshot lock, while it has a catalog. A change sends a notification, so that all
processes drop their catalogs, and takes the snapshot lock exclusively: once it is granted, no process uses old data,
and none caches new data before the commit. A second lock, the turn, keeps processes from taking the shared lock again
before the change has got it.

A process that hangs, or whose machine is lost, does not drop its catalog. It must not use the catalog when it
has not heard from the database for LEASE; a change that has waited longer terminates its connection, and with
that its lock.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from time import monotonic
from typing import Final, NamedTuple

import psycopg
from django.db import OperationalError, transaction
from psycopg.pq.abc import PGconn

from storage.sql import timelines
from storage.sql.django import execute, fetch, in_session, losing_locks

CHANNEL: Final = "tablero_catalog"
LISTENER: Final = "tablero catalogs"  # application name of its connection
_OLDER_LISTENER: Final = "tablero catalog"  # servers before 1.1 expect each table to have a relation
LISTENERS: Final = f"{_OLDER_LISTENER}%"
CHANGE: Final = "change"
_PRESENCE_CHANNEL: Final = "tablero_presence"  # older servers do not listen to it
_PRESENCE: Final = "presence"
_JOBS_CHANNEL: Final = "tablero_jobs"  # older servers do not listen to it: they look for jobs every second
_JOBS: Final = "jobs"
_ACCESS: Final = "access"
TABLE: Final = "table"

LEASE: Final = 5.0  # seconds
_CHECK_INTERVAL: Final = 1.0  # seconds between checks of the connection
_CHECK_TIMEOUT: Final = 5.0
_LOCK_TIMEOUT: Final = "6s"  # longer than LEASE
_IDLE_TIMEOUT: Final = "30s"  # for a process that hangs in the middle of a change
_SNAPSHOT: Final = 0x7461626C65726F01  # keys of advisory locks, arbitrary numbers
_TURN: Final = 0x7461626C65726F02


class News(Enum):
    """Kind of event for a catalog."""

    HELD = auto()  # data that is read from now on may be cached
    STILL_HELD = auto()
    TABLE = auto()  # one was deleted, or its settings or indexes have changed
    TABLES = auto()  # any may have changed, as servers before 0.6 say it
    PRESENCE = auto()  # a tab that shows a table has come or gone
    ACCESS = auto()  # a user or token may have lost access
    JOBS = auto()  # there may be a job to run
    CHANGE = auto()  # drop the cache before asking for the next event


class Event(NamedTuple):
    """Event from the database, and the monotonic time at which it was certainly true."""

    news: News
    at: float
    # account and folded name of a table that has changed; for PRESENCE, its id and no name
    table: tuple[int, str] = (0, "")
    # for HELD and STILL_HELD: the lowest version that may write, as in storage.health.database_version, and whether
    # a server runs that knows of no pending relations
    writer: int = 0
    has_older: bool = False


def notify_table(account_id: int, folded_name: str) -> None:
    """Notify all processes on commit that a table has changed."""
    _notify(f"{TABLE} {account_id} {folded_name}")


def notify_access() -> None:
    """Notify all processes on commit that a user or token may have lost access."""
    _notify(_ACCESS)


def notify_presence(table_id: int) -> None:
    """Notify all processes on commit that the presence of users on a table has changed."""
    execute("SELECT pg_notify(%s, %s)", _PRESENCE_CHANNEL, f"{_PRESENCE} {table_id}")


def notify_jobs() -> None:
    """Notify all processes on commit that a job is available."""
    execute("SELECT pg_notify(%s, %s)", _JOBS_CHANNEL, _JOBS)


def _notify(payload: str) -> None:
    execute("SELECT pg_notify(%s, %s)", CHANNEL, payload)


@contextmanager
def turn() -> Iterator[None]:
    """Serialize catalog changes; all processes drop their catalogs until the block ends."""
    with in_session(), losing_locks():
        with transaction.atomic():
            execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            execute("SELECT pg_advisory_lock(%s)", _TURN)
            _notify(CHANGE)
        try:
            yield
        finally:
            execute("SELECT pg_advisory_unlock(%s)", _TURN)


def wait_for_snapshots() -> None:
    """Wait until no process has a catalog; none is cached before the current transaction ends."""
    execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_TIMEOUT}'")
    try:
        with transaction.atomic():
            execute("SELECT pg_advisory_xact_lock(%s)", _SNAPSHOT)
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
            raise
        # the catalogs of the holders have expired meanwhile
        fetch(_DISCONNECT_HOLDERS, _SNAPSHOT)
        execute("SELECT pg_advisory_xact_lock(%s)", _SNAPSHOT)


async def listen(conninfo: str) -> AsyncIterator[Event]:
    """Yield HELD initially and after each CHANGE; raises OSError when the connection, and so the lock, is lost."""
    try:
        async with await timelines.connect(conninfo, application_name=LISTENER) as conn:
            await conn.execute(f"LISTEN {CHANNEL}; LISTEN {_PRESENCE_CHANNEL}; LISTEN {_JOBS_CHANNEL}")
            arrived: list[str] = []
            # notifications that come with the answer of a command
            conn.add_notify_handler(lambda notification: arrived.append(notification.payload))
            while True:
                checked_at = monotonic()
                await conn.execute("SELECT pg_advisory_lock_shared(%s)", (_SNAPSHOT,))
                yield Event(News.HELD, checked_at, (0, ""), *await _read_versions(conn))
                payloads: list[str] = []
                while CHANGE not in payloads:
                    for payload in payloads:
                        yield _read_event(payload, checked_at)
                    if monotonic() - checked_at >= _CHECK_INTERVAL:
                        checked_at = monotonic()
                        async with asyncio.timeout(_CHECK_TIMEOUT):
                            versions = await _read_versions(conn)
                        yield Event(News.STILL_HELD, checked_at, (0, ""), *versions)
                    payloads = await _receive(conn, arrived)
                for payload in payloads:  # that came with it
                    if payload != CHANGE:
                        yield _read_event(payload, checked_at)
                yield Event(News.CHANGE, checked_at)
                await conn.execute("SELECT pg_advisory_unlock_shared(%s)", (_SNAPSHOT,))
                # wait for the change, which has the turn until it is done
                await conn.execute("SELECT pg_advisory_xact_lock_shared(%s)", (_TURN,))
    except TimeoutError:
        raise OSError(f"the database gave no answer for {_CHECK_TIMEOUT:g} seconds") from None
    except psycopg.OperationalError as error:
        raise OSError(str(error).strip()) from error


async def _read_versions(conn: psycopg.AsyncConnection) -> tuple[int, bool]:
    cursor = await conn.execute(_VERSIONS)
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


def _read_event(payload: str, at: float) -> Event:
    if payload == _ACCESS:
        return Event(News.ACCESS, at)
    if payload == _JOBS:
        return Event(News.JOBS, at)
    kind, _, rest = payload.partition(" ")
    if kind == _PRESENCE:
        return Event(News.PRESENCE, at, (int(rest), ""))
    if kind != TABLE:
        return Event(News.TABLES, at)
    account_id, _, folded_name = rest.partition(" ")  # some names have spaces
    return Event(News.TABLE, at, (int(account_id), folded_name))


async def _receive(conn: psycopg.AsyncConnection, arrived: list[str]) -> list[str]:
    """Return received payloads; none after a timeout."""
    pgconn = conn.pgconn
    _take_notifications(pgconn, arrived)
    if not arrived and await _is_readable(pgconn.socket, _CHECK_INTERVAL):
        pgconn.consume_input()
        _take_notifications(pgconn, arrived)
    payloads = arrived.copy()
    arrived.clear()
    return payloads


def _take_notifications(pgconn: PGconn, arrived: list[str]) -> None:
    while (notification := pgconn.notifies()) is not None:
        arrived.append(notification.extra.decode())


async def _is_readable(descriptor: int, seconds: float) -> bool:
    """Wait until a socket is readable; return False after a timeout in seconds."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[bool] = loop.create_future()

    def note(is_readable: bool) -> None:
        if not readable.done():
            readable.set_result(is_readable)

    timer = loop.call_later(seconds, note, False)
    loop.add_reader(descriptor, note, True)
    try:
        return await readable
    finally:
        loop.remove_reader(descriptor)
        timer.cancel()


_VERSIONS: Final = f"""
SELECT coalesce(max(writer), 0), EXISTS (
    SELECT FROM pg_stat_activity WHERE application_name = '{_OLDER_LISTENER}' AND datname = current_database()
) FROM storage_databaseversion
"""
_DISCONNECT_HOLDERS: Final = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND objsubid = 1 AND (classid::bigint << 32) + objid::bigint = %s
"""
