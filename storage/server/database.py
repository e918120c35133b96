"""Where the database is, for psycopg and for Django: DATABASE_URL, else the one embedded in the data folder.

With a pooler, Django's connections go through it, except those of what needs a session: see storage.sql.django.
"""

from typing import Any, Final, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from storage.server.cluster import NAME
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal
from storage.sql.connections import APPLICATION
from storage.sql.django import SESSION

RELAXED = "-c synchronous_commit=off"


def parameters(options: Options) -> dict[str, str]:
    """The connection parameters, by the names libpq gives them."""
    if not options.database_url:
        socket_folder = str(DataFolder(options.data).socket_folder)
        return {
            "host": socket_folder,
            "port": "5432",
            "user": NAME,
            "dbname": NAME,
            "application_name": APPLICATION,
        }
    return _read("DATABASE_URL", options.database_url)


def _read(variable: str, url: str) -> dict[str, str]:
    if not url.startswith(("postgresql://", "postgres://")):
        raise Refusal(f"{variable} must look like postgresql://user:password@host:5432/database.")
    try:
        found = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise Refusal(f"{variable} cannot be read: {str(error).strip()}.") from None
    return {"application_name": APPLICATION} | {
        name: str(value) for name, value in found.items() if value is not None
    }


def conninfo(options: Options) -> str:
    """For connections of our own; carries the durability that was asked for."""
    found = parameters(options)
    if options.relaxed:
        found["options"] = f"{found.get('options', '')} {RELAXED}".strip()
    return make_conninfo("", **found)


# an attempt to connect that fails is given up at once: the pool's own waits grow up to minutes, and while one lasts
# nobody gets a connection, although the database is back
POOL: Final = {"min_size": 0, "max_size": 8, "timeout": 5, "reconnect_timeout": 0.5}


def close_pools() -> None:
    """Django's connections of this process; a pool that is left open delays the end of the interpreter."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        cast("Any", connection).close_pool()


def databases(options: Options) -> dict[str, dict[str, Any]]:
    """Django's databases: the one there is, or one through the pooler and one for what needs a session."""
    direct = _django_settings(parameters(options))
    if not options.pooler_url:
        return {DEFAULT_DB_ALIAS: direct}
    if not options.database_url:
        raise Refusal("--pooler-url needs DATABASE_URL: the same database without the pooler.")
    pooled = _django_settings(_read("TABLERO_POOLER_URL", options.pooler_url))
    # a cursor of the server would have to outlive its transaction
    return {DEFAULT_DB_ALIAS: {**pooled, "DISABLE_SERVER_SIDE_CURSORS": True}, SESSION: direct}


def _django_settings(found: dict[str, str]) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": found.pop("dbname", found.get("user", NAME)),
        "USER": found.pop("user", ""),
        "PASSWORD": found.pop("password", ""),
        "HOST": found.pop("host", ""),
        "PORT": found.pop("port", ""),
        # a synchronous view has a new thread per request under ASGI: without a pool each would connect anew
        "OPTIONS": {**found, "pool": POOL},
        "CONN_HEALTH_CHECKS": True,
    }
