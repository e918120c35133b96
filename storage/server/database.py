"""Database connections for psycopg and Django: DATABASE_URL, or the embedded database.

With a pooler, Django's connections use it, except those that need a session: see storage.sql.django.
Read-only databases answer while the primary is down, or when a request accepts them.
"""

import re
from typing import Any, Final, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from storage.core.reading import SourceAddress
from storage.server.cluster import NAME
from storage.server.data_folder import DataFolder
from storage.server.options import VARIABLES, Options
from storage.server.refusal import Refusal
from storage.sql.connections import APPLICATION
from storage.sql.django import SESSION
from storage.sql.interruption import InterruptibleConnection

RELAXED = "-c synchronous_commit=off"

# a server that is gone without a word is noticed within seconds: libpq would wait for hours
PROMPT: Final = {
    "connect_timeout": "3",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


def parameters(options: Options) -> dict[str, str]:
    """Return the connection parameters by libpq's names."""
    if not options.database_url:
        socket_folder = str(DataFolder(options.data).socket_folder)
        return {
            "host": socket_folder,
            "port": "5432",
            "user": NAME,
            "dbname": NAME,
            "application_name": APPLICATION,
        }
    # with several hosts, and after a fail-over, only the one that takes writes is the primary
    return {"target_session_attrs": "read-write", **_read("DATABASE_URL", options.database_url)}


def _read(variable: str, url: str) -> dict[str, str]:
    if not url.startswith(("postgresql://", "postgres://")):
        raise Refusal(f"{variable} must look like postgresql://user:password@host:5432/database.")
    # messages of libpq quote the URL, and with it the password
    if _has_unescaped_sign(url):
        raise Refusal(f"{variable} cannot be read: {_ESCAPES}")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise Refusal(f"{variable} cannot be read. Check the names of its parameters; {_ESCAPES}") from None
    given = {name: str(value) for name, value in parts.items() if value is not None}
    if not re.fullmatch("[0-9,]*", given.get("port", "")):
        raise Refusal(f"{variable} has a port that is not a number; {_ESCAPES}")
    # a role may have another encoding, in which texts of other languages cannot be sent
    return {"application_name": APPLICATION, **PROMPT, **given, "client_encoding": "UTF8"}


_ESCAPES: Final = (
    "in a user name and a password, write % as %25, @ as %40, / as %2F, : as %3A, ? as %3F and # as %23."
)


def _has_unescaped_sign(url: str) -> bool:
    """Return whether libpq would misread part of the password as host, database or escape."""
    address = url.partition("://")[2].partition("?")[0]
    authority, _, name = address.partition("/")
    has_stray_sign = authority.count("@") > 1 or "@" in name or "#" in address
    return has_stray_sign or re.search("%(?!0[1-9a-f]|[1-9a-f][0-9a-f])", url, re.IGNORECASE) is not None


def conninfo(options: Options) -> str:
    """Return the connection string for the server's own connections, with the configured durability."""
    parts = parameters(options)
    if options.relaxed:
        parts["options"] = f"{parts.get('options', '')} {RELAXED}".strip()
    return make_conninfo("", **parts)


def read_sources(options: Options) -> tuple[SourceAddress, ...]:
    """Return the read-only databases by names that contain no secrets."""
    for variable in _SOURCES:
        if options.declared.get(variable.name) and not options.database_url:
            raise Refusal(
                f"{variable.key} are {variable.alias}s of a PostgreSQL in DATABASE_URL, which is not set."
            )
    return tuple(
        SourceAddress(_name(parameters), make_conninfo("", **parameters), alias)
        for alias, parameters in _read_sources(options).items()
    )


_SOURCES: Final = [variable for variable in VARIABLES if variable.alias]


def _read_sources(options: Options) -> dict[str, dict[str, str]]:
    """Return the connection parameters of read-only databases by Django alias."""
    return {
        f"{variable.alias}{number}": _read(variable.key, url)
        for variable in _SOURCES
        for number, url in enumerate(options.declared.get(variable.name, ()), start=1)
    }


def _name(found: dict[str, str]) -> str:
    host = found.get("host") or found.get("hostaddr") or "localhost"
    return host if host.startswith("/") else f"{host}:{found.get('port', '5432')}"


# an attempt to connect that fails is given up at once: the pool's own waits grow up to minutes, and while one lasts
# no request gets a connection, although the database is back
POOL: Final = {
    "min_size": 0,
    "max_size": 10,
    "timeout": 5,
    "max_idle": 60,  # seconds; a connection is 3 to 5 MB of PostgreSQL, and opened in as many milliseconds
    "reconnect_timeout": 0.5,
    "connection_class": InterruptibleConnection,
}


def close_pools() -> None:
    """Close Django's connections and pools, which would delay the interpreter's exit."""
    for connection in connections.all(initialized_only=True):
        connection.close()
    pools: dict[str, Any] = cast("Any", DatabaseWrapper)._connection_pools  # also of threads' own aliases
    for alias in list(pools):
        pools.pop(alias).close()


def databases(options: Options) -> dict[str, dict[str, Any]]:
    """Return Django's databases: the primary, the session database beside a pooler, and read sources.

    Models are read from the read sources while the primary is down.
    """
    sources = {alias: _for_django(source) for alias, source in _read_sources(options).items()}
    direct = _pooled(parameters(options))
    if not options.pooler_url:
        return {DEFAULT_DB_ALIAS: direct, **sources}
    if not options.database_url:
        raise Refusal("--pooler-url needs DATABASE_URL: the same database without the pooler.")
    through_pooler = _pooled(_read("TABLERO_POOLER_URL", options.pooler_url))
    # a cursor of the server would have to outlive its transaction
    through_pooler["DISABLE_SERVER_SIDE_CURSORS"] = True
    return {DEFAULT_DB_ALIAS: through_pooler, SESSION: direct, **sources}


def _pooled(found: dict[str, str]) -> dict[str, Any]:
    # a synchronous view has a new thread per request under ASGI: without a pool each would open a connection
    return {**_for_django(found, pool=POOL), "CONN_HEALTH_CHECKS": True}


def _for_django(parameters: dict[str, str], **others: object) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname", parameters.get("user", NAME)),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": {**parameters, **others},
    }
