"""Compatibility of Tablero versions with the database: its migrations, and the lowest version that may write.

A version with an incompatible write path has a greater WRITER. Its first server stores that number in the
database before it migrates, while no process has a catalog in memory. Servers read the number with their
catalogs, at least once a second, and stop writing when it exceeds theirs.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from storage.activity.catalog_change import invalidating_catalogs
from storage.health.release import version
from storage.models import DatabaseVersion
from storage.sql import connections

logger = logging.getLogger(__name__)

# the number of this version; increase it with a migration after which servers without it must not write
WRITER: Final = 1

_OURS: Final = frozenset({"storage", "console"})  # packages that Tablero uses may have been newer
_FLOOR: Final = ("storage", "0033_database_version")
_noted = 0  # the number in the database, as the catalog of this process read it last

Migrations = frozenset[tuple[str, str]]


def note(writer: int) -> None:
    """Store the WRITER number that this process's catalog has read."""
    global _noted
    if writer > WRITER >= _noted:
        logger.error("%s This server stops writing.", _newer())
    _noted = writer


def is_outdated() -> bool:
    """Return whether this process must no longer write."""
    return _noted > WRITER


def explain_outdated() -> str:
    return f"{_newer()} This server only answers reads until it is replaced."


def read_writer() -> int:
    """Return the number of the lowest version that may write."""
    return DatabaseVersion.objects.values_list("writer", flat=True).first() or 0


def explain_newer() -> str:
    """Return a sentence if a newer version has upgraded the database; empty otherwise."""
    applied = applied_migrations()
    unknown = {(label, name) for label, name in applied - known_migrations() if label in _OURS}
    has_floor = _FLOOR in applied
    if not unknown and not (has_floor and read_writer() > WRITER):
        return ""
    upgraded_by = DatabaseVersion.objects.values_list("release", flat=True).first() if has_floor else None
    return f"{_newer(upgraded_by)} Install that version or a later one, or restore a backup from before the upgrade."


def _newer(release: str | None = None) -> str:
    by = f" ({release})" if release and release != version() else ""
    return f"A newer version of Tablero{by} has upgraded the database; this one is {version()}."


def is_older() -> bool:
    """Return whether the database lacks migrations of this version."""
    return not known_migrations() <= applied_migrations()


def applied_migrations() -> Migrations:
    return frozenset(MigrationRecorder(connection).applied_migrations())


@cache
def known_migrations() -> Migrations:
    """Return this version's migrations by application and name, including those replaced by squashed ones."""
    return _migrations_of_files() | frozenset(chain.from_iterable(_replaced()))


def explain_unreleased() -> str:
    """Return a sentence if a version between two releases has left the database halfway; empty otherwise."""
    applied = applied_migrations()
    if all(replaced <= applied or replaced.isdisjoint(applied) for replaced in _replaced()):
        return ""
    return (
        "A version of Tablero that was never released has upgraded the database halfway to this one. Start the last"
        " version before the migrations were squashed once, then this one."
    )


@cache
def _migrations_of_files() -> Migrations:
    """List migrations by their files, as loading them takes long."""
    return frozenset(
        (application.label, module.name)
        for application in apps.get_app_configs()
        for module in iter_modules([str(Path(application.path) / "migrations")])
        if not module.ispkg and module.name[0] not in "_~"
    )


@cache
def _replaced() -> list[Migrations]:
    """Return the migrations that each of our squashed migrations replaces."""
    modules = (
        import_module(f"{label}.migrations.{name}")
        for label, name in sorted(_migrations_of_files())
        if label in _OURS and "_squashed_" in name
    )
    return [frozenset(module.Migration.replaces) for module in modules]


@contextmanager
def stopping_older_servers() -> Iterator[None]:
    """Stop servers with a lower WRITER from writing, before the migrations in the block begin."""
    before = applied_migrations()
    former = read_writer() if _FLOOR in before else None
    if former is not None:
        _require(WRITER)
    try:
        yield
    except BaseException:
        if former is not None and applied_migrations() == before:
            _set(former)
        raise
    _require(WRITER)


def servers_that_cannot_be_stopped() -> list[str]:
    """Return the addresses of running servers of versions without WRITER."""
    return [] if _FLOOR in applied_migrations() else connections.servers()


def _require(writer: int) -> None:
    if read_writer() < writer:
        _set(writer)


def _set(writer: int) -> None:
    with invalidating_catalogs():
        DatabaseVersion.objects.update_or_create(pk=1, defaults={"writer": writer, "release": version()})
