"""Timelines of PostgreSQL, to distinguish a former primary from the current one.

A standby that is promoted begins a new timeline. If the former primary hung and was not fenced, it accepts
writes again when it recovers, and they would be lost. So a process that has used a primary rejects servers on
older timelines.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import make_conninfo

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 6  # to connect to another of several hosts, which are then tried in any order
# the timeline of a standby is null
_TIMELINE: Final = """
SELECT (SELECT system_identifier FROM pg_control_system()),
    CASE WHEN NOT pg_is_in_recovery()
        THEN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer END
"""

_latest: dict[int, int] = {}  # the latest timeline of each database cluster, by the cluster's number


class FormerPrimary(psycopg.OperationalError):
    """Another server has become the primary."""


async def connect(conninfo: str, **options: Any) -> AsyncConnection[Any]:
    """Open a connection to a server that is not a former primary; raises psycopg.OperationalError."""
    for attempt in range(_ATTEMPTS):
        opened = await AsyncConnection.connect(_any_host(conninfo, attempt), autocommit=True, **options)
        try:
            cursor = await opened.execute(_TIMELINE)
            row = await cursor.fetchone()
        except psycopg.errors.InsufficientPrivilege:
            return opened
        except BaseException:
            await opened.close()
            raise
        if row is None or _is_current(opened, *row):
            return opened
        await opened.close()
    raise FormerPrimary("Only a former primary accepts writes.")


def connect_in_thread(
    connect: Callable[..., Connection[Any]], conninfo: str, **options: Any
) -> Connection[Any]:
    """Open a connection with psycopg's function, rejecting a former primary."""
    for attempt in range(_ATTEMPTS):
        opened = connect(_any_host(conninfo, attempt), **options)
        try:
            row = opened.execute(_TIMELINE).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            opened.rollback()
            return opened
        except BaseException:
            opened.close()
            raise
        if not opened.autocommit:
            opened.rollback()
        if row is None or _is_current(opened, *row):
            return opened
        opened.close()
    raise FormerPrimary("Only a former primary accepts writes.")


def _any_host(conninfo: str, attempt: int) -> str:
    return conninfo if attempt == 0 else make_conninfo(conninfo, load_balance_hosts="random")


def _is_current(opened: AsyncConnection[Any] | Connection[Any], system: int, timeline: int | None) -> bool:
    if timeline is None:
        return True
    latest = _latest.get(system, 0)
    if timeline < latest:
        logger.error(
            "The server %s:%s is a former primary that still accepts writes: its timeline is %d, that of the present"
            " one %d. It is not used. Stop it, and make it a standby with pg_rewind.",
            opened.info.host,
            opened.info.port,
            timeline,
            latest,
        )
        return False
    _latest[system] = timeline
    return True
