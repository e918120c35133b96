"""PostgreSQL's connection limit, and the processes that use it."""

from typing import Final, NamedTuple

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from storage.sql.django import RESERVED_CONNECTIONS, SESSION, fetch
from storage.sql.lanes import COUNTS
from storage.sql.notify import LISTENERS

APPLICATION: Final = "tablero"  # name of those connections that have none of their own


class ConnectionCounts(NamedTuple):
    """Connection counts: ``allowed`` for ordinary roles; ``ours`` of all servers' processes, in any database."""

    allowed: int
    used: int
    ours: int
    processes: int  # processes of all servers of this database


def counts() -> ConnectionCounts:
    [row] = fetch(_COUNTS, f"{APPLICATION}%", LISTENERS)
    return ConnectionCounts(*row)


def servers() -> list[str]:
    """Return the addresses of this database's servers, one per process."""
    return [address for (address,) in fetch(_SERVERS, LISTENERS)]


def count_active() -> int:
    """Return the number of other sessions of this database that are running a statement."""
    [(number,)] = fetch(_ACTIVE)
    return int(number)


def most_per_process() -> int:
    """Return the maximum connections of a process to PostgreSQL, not counting those to a pooler."""
    # one that listens, and beside other databases one that looks at the primary
    own = sum(COUNTS.values()) + (2 if settings.READ_SOURCES else 1)
    if SESSION in connections:
        return own
    pool = settings.DATABASES[DEFAULT_DB_ALIAS]["OPTIONS"].get("pool") or {}
    return own + RESERVED_CONNECTIONS + int(pool.get("max_size", 1))


_COUNTS: Final = """
SELECT
    (
        current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true)::integer, 0)
    ),
    count(usesysid)::integer,
    count(*) FILTER (WHERE application_name LIKE %s)::integer,
    count(*) FILTER (WHERE application_name LIKE %s AND datname = current_database())::integer
FROM pg_stat_activity
"""
_ACTIVE: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE state = 'active' AND backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
"""
_SERVERS: Final = """
SELECT coalesce(host(client_addr), 'this machine') FROM pg_stat_activity
WHERE application_name LIKE %s AND datname = current_database() ORDER BY 1
"""
