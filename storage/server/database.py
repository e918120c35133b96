"""Where the database is, for psycopg and for Django: DATABASE_URL, else the one embedded in the data folder."""

from typing import Any, Final, cast

import psycopg
from django.db import connections
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from storage.server.cluster import NAME
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

RELAXED = "-c synchronous_commit=off"


def parameters(options: Options) -> dict[str, str]:
    """The connection parameters, by the names libpq gives them."""
    if not options.database_url:
        socket_folder = str(DataFolder(options.data).socket_folder)
        return {"host": socket_folder, "port": "5432", "user": NAME, "dbname": NAME}
    if not options.database_url.startswith(("postgresql://", "postgres://")):
        raise Refusal("DATABASE_URL must look like postgresql://user:password@host:5432/database.")
    try:
        found = conninfo_to_dict(options.database_url)
    except psycopg.ProgrammingError as error:
        raise Refusal(f"DATABASE_URL cannot be read: {str(error).strip()}.") from None
    return {name: str(value) for name, value in found.items() if value is not None}


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


def django_settings(options: Options) -> dict[str, Any]:
    found = parameters(options)
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
