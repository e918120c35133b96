"""Health checks of `doctor`: database, disk, clock, tables, connections and jobs, and those of subjects.

Each part is a function that returns its findings; an error in a part is a finding itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from time import monotonic
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from storage.accounts import sealed_keys
from storage.accounts.refusals import SealedOtherwise
from storage.core import registry
from storage.domain.values.numbers import counted
from storage.health import connections, disk
from storage.health.findings import (
    Finding,
    NotExamined,
    error,
    fine,
    warning,
)
from storage.models import Account, Table
from storage.relations import history, table_relations
from storage.runtime import periodic, work_failures
from storage.sql import diagnosis as statements
from storage.sql import django as sql
from storage.sql import moments
from storage.sql.interruption import interrupting_after

_CLOCK_TOLERANCE: Final = 5.0  # seconds
_STUCK: Final = 5  # minutes after which a prepared transaction is not a running one
_LIMIT: Final = 10.0  # seconds for each part
_GRACE: Final = 2.0  # for PostgreSQL to end a statement


Part = Callable[[], Iterable[Finding]]


def examine() -> Iterator[tuple[str, Finding]]:
    """Yield the findings of all parts, each with the part's name; parts have a time limit."""
    for name, part in parts().items():
        yield from ((name, finding) for finding in _examine(part))


def _examine(part: Part) -> list[Finding]:
    began = monotonic()
    try:
        # PostgreSQL ends a statement that takes too long, unless it waits for a server that does not answer even then
        with interrupting_after(_LIMIT + _GRACE), transaction.atomic():
            sql.execute(f"SET LOCAL statement_timeout = '{_LIMIT:.0f}s'")
            findings = list(part())
            sql.execute("SET LOCAL statement_timeout TO DEFAULT")
            return findings
    except (DatabaseError, InterfaceError, NotExamined) as failure:
        why = str(failure).strip()
        if sql.is_lost(failure) and not connection.in_atomic_block:
            connection.close()  # the next part has another one
        if monotonic() - began >= _LIMIT:
            why = f"it took longer than {_LIMIT:.0f} seconds"
        return [error(f"This could not be examined: {why}")]


def _database() -> Iterator[Finding]:
    about = statements.about()
    yield fine(
        f"PostgreSQL {about.version} has {counted(Account.objects.count(), 'account')}"
        f" with {counted(Table.objects.existing().count(), 'table')} in {about.size / 2**20:,.0f} MiB."
    )
    if about.is_standby:
        yield error("It is a standby, which accepts no writes. Name the primary in DATABASE_URL.")
    if not history.is_available():
        yield warning(
            "It records no history, which needs PostgreSQL 18 or later: changes made through the Table service cannot"
            " be undone, and there is no change feed."
        )
    try:
        sealed_keys.check_secret()
    except SealedOtherwise as sealed:
        yield error(str(sealed))
    for name, minutes in statements.prepared_transactions(_STUCK):
        yield error(
            f"The transaction {name} has been prepared for {minutes} minutes and holds its locks. On a cluster,"
            " recover_prepared_transactions() settles it when all nodes are up; otherwise ROLLBACK PREPARED does."
        )


def _settings() -> Iterator[Finding]:
    """Check PostgreSQL settings that durability or performance depend on."""
    values = statements.settings(*_SETTINGS, "server_encoding")
    wrong = {name: value for name, value in values.items() if (name, value) in _WRONG}
    if settings.OPTIONS.relaxed:
        wrong.pop("synchronous_commit", None)
    for name, value in wrong.items():
        yield warning(f"{name} is {value}: {_WRONG[name, value]}")
    limits = statements.time_limits()
    for name, seconds in limits.items():
        yield warning(f"{name} is {seconds:g} s: {_LIMITED[name]} Set it to 0 for the user of Tablero.")
    if (encoding := values["server_encoding"]) != "UTF8":
        yield error(
            f"The encoding of the database is {encoding}, which lacks letters. Move to a database with UTF8."
        )
    elif not wrong and not limits:
        yield fine("PostgreSQL has the settings that durability and speed need.")


def _disk() -> Iterator[Finding]:
    if settings.OPTIONS.database_url:
        yield fine("The database is on another machine, whose disk is not examined.")
        return
    yield disk.examine(settings.OPTIONS.data)


def _clock() -> Iterator[Finding]:
    ahead = sql.run(moments.ahead())
    if ahead > _CLOCK_TOLERANCE:
        yield warning(
            f"The clock of the database has been set back: it is {timedelta(seconds=int(ahead))} behind the latest"
            " Timestamps, which stand still until it has caught up. Set the clock if it is wrong."
        )
    difference = abs((timezone.now() - statements.present()).total_seconds())
    if difference > _CLOCK_TOLERANCE:
        yield warning(
            f"The clocks of this machine and of the database differ by {difference:.0f} seconds. Signatures and expiry"
            " times are checked by the one, Timestamps are given by the other. Set them by NTP."
        )
    elif ahead <= _CLOCK_TOLERANCE:
        yield fine("The clocks of this machine and of the database agree.")


def _tables() -> Iterator[Finding]:
    incomplete = table_relations.incomplete()
    if not incomplete:
        yield fine("All tables have what this version needs.")
    for table in incomplete:
        yield error(
            f"{_name(table)} was created or restored by an older version of Tablero and lacks its function for changes."
            " A server of this version adds it at its start, at the first change, or within a minute. Stop the older"
            " servers."
        )


def _connections() -> Iterator[Finding]:
    state = connections.state()
    counts = state.counts
    yield fine(
        f"{counts.processes} processes serve this database. {counts.used} of {counts.allowed} connections that"
        f" PostgreSQL allows are open, {counts.ours} of them by Tablero; the processes may open {state.most}."
    )
    if state.missing:
        yield warning(
            f"If they open all of these, {state.missing} are refused, and requests answer 503. Raise max_connections by"
            " at least as many, or serve with fewer workers."
        )


def _jobs() -> Iterator[Finding]:
    if not connections.state().counts.processes:
        yield fine("No process serves this database, so no job runs.")
        return
    late, failing = periodic.late(), work_failures.failing()
    if not late and not failing:
        yield fine("All jobs ran when they were due.")
    for job in late:
        reason = (
            f"the session {job.holder} of PostgreSQL holds its lock. If that hangs, end it with SELECT"
            f" pg_terminate_backend({job.holder}); another process then takes over."
            if job.holder is not None
            else "no process runs it. The servers say why on their standard error."
        )
        yield warning(f"The job {job.name} last ran at {job.done_at:%Y-%m-%d %H:%M} UTC; {reason}")
    for part in failing:
        yield warning(
            f"The job {part.name} has failed since {part.since:%Y-%m-%d %H:%M} UTC; the others run. It is tried again,"
            " and the servers said why on their standard error when it first failed."
        )


def _name(table: Table) -> str:
    return f"{table.account.name}/{table.name}"


# settings of PostgreSQL, with their meaning and the fix
_WRONG: Final[Mapping[tuple[str, str], str]] = {
    ("fsync", "off"): "a crash of the machine may damage the whole database. Turn it on.",
    ("full_page_writes", "off"): "a crash of the machine may damage pages of the database. Turn it on.",
    ("synchronous_commit", "off"): "a crash may lose changes that were acknowledged. Turn it on.",
    ("autovacuum", "off"): "tables grow, and get slower, with every change. Turn it on.",
    ("track_counts", "off"): "no table is vacuumed, and all grow with every change. Turn it on.",
    ("default_transaction_read_only", "on"): "nothing can be written. Turn it off for the user of Tablero.",
}
_SETTINGS: Final = tuple(name for name, _ in _WRONG)
# time limits, with the work that they end
_LIMITED: Final[Mapping[str, str]] = {
    "lock_timeout": "changes that wait for another fail.",
    "statement_timeout": "indexes, copies and deletions that take longer fail.",
    "transaction_timeout": "restores, exports and copies that take longer fail.",
}

# other parts are those that subjects declare
_PARTS: Final[Mapping[str, Part]] = {
    "database": _database,
    "settings": _settings,
    "disk": _disk,
    "clock": _clock,
    "tables": _tables,
    "connections": _connections,
    "jobs": _jobs,
}


def parts() -> dict[str, Part]:
    """Return all parts in order."""
    examinations = dict(_PARTS)
    for part in registry.examinations():
        examinations = registry.insert_after(part.after, part.name, import_string(part.do), examinations)
    return examinations
