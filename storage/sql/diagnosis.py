"""Diagnostics of the database: version, size and settings."""

from datetime import datetime
from typing import Final, NamedTuple

from storage.sql.django import fetch


class About(NamedTuple):
    version: str
    size: int  # bytes
    is_standby: bool


def about() -> About:
    [found] = fetch(
        "SELECT current_setting('server_version'), pg_database_size(current_database()), pg_is_in_recovery()"
    )
    return About(*found)


def settings(*names: str) -> dict[str, str]:
    """Return PostgreSQL settings by name, without unknown ones."""
    return dict(
        fetch("SELECT name, setting FROM pg_settings WHERE name = ANY(%s) ORDER BY name", list(names))
    )


def time_limits() -> dict[str, float]:
    """Return the limits in seconds with which sessions of this user begin, by setting, without those that are off."""
    return {
        name: int(milliseconds) / 1000
        for name, milliseconds in fetch(
            "SELECT name, reset_val FROM pg_settings"
            " WHERE name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout') AND reset_val <> '0'"
            " ORDER BY name"
        )
    }


def present() -> datetime:
    """Return the database's current time."""
    [(found,)] = fetch("SELECT clock_timestamp()")
    assert isinstance(found, datetime)
    return found


def prepared_transactions(minutes: int) -> list[tuple[str, int]]:
    """Return the names and ages in minutes of long prepared transactions."""
    return [
        (name, age)
        for name, age in fetch(
            "SELECT gid, (extract(epoch FROM now() - prepared) / 60)::integer FROM pg_prepared_xacts"
            " WHERE database = current_database() AND prepared < now() - make_interval(mins => %s) ORDER BY prepared",
            minutes,
        )
    ]


def has_checksums() -> bool:
    """Return whether PostgreSQL verifies page checksums."""
    return fetch("SHOW data_checksums") == [("on",)]


class DamagedRelation(NamedTuple):
    """Damaged relation: ``table`` has the rows, ``name`` may be one of its indexes."""

    name: str
    table: str
    is_index: bool


def relation_of_file(filenode: int) -> DamagedRelation | None:
    """Return the relation of a database file; TOAST files belong to their relation."""
    found = fetch(_RELATION_OF_FILE, filenode)
    return DamagedRelation(*found[0]) if found else None


_RELATION_OF_FILE: Final = """
SELECT c.relname, coalesce(toasted.relname, indexed.relname, c.relname), i.indexrelid IS NOT NULL
FROM pg_class AS c
LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
LEFT JOIN pg_class AS indexed ON indexed.oid = i.indrelid
LEFT JOIN pg_class AS toasted ON toasted.reltoastrelid = coalesce(i.indrelid, c.oid)
WHERE c.oid = pg_filenode_relation(0, %s)
"""


def database_folder() -> str:
    """Return the database's folder relative to the cluster's."""
    [(name,)] = fetch("SELECT 'base/' || oid FROM pg_database WHERE datname = current_database()")
    return str(name)
