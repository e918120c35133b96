"""Health checks for operators: the database, its disk, backups, clock, tables, cluster, connections, jobs and replicas.

Each part is a function that returns its findings; a part that fails is a finding itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from time import monotonic
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone

from storage.backups import archive, backups
from storage.cluster import distribution_jobs
from storage.domain.values.numbers import counted
from storage.health import connections, disk
from storage.health.findings import (
    Finding,
    Severity,
    error,
    fine,
    warning,
)
from storage.jobs import jobs
from storage.models import Account, Table
from storage.relations import history, table_relations
from storage.runtime import periodic, replicas, work_failures
from storage.runtime.replicas import ReplicaProblem, ReplicaState
from storage.sql import diagnosis as statements
from storage.sql import distributed_relations, moments
from storage.sql import django as sql
from storage.sql.interruption import interrupting_after
from storage.sql.nodes import CoordinatorSilent, unanswering
from storage.sql.relations import source_name

_CLOCK_TOLERANCE: Final = 5.0  # seconds
_STUCK: Final = 5  # minutes after which a prepared transaction is not a running one
_LIMIT: Final = 10.0  # seconds for each part
_GRACE: Final = 2.0  # for PostgreSQL to end a statement


Part = Callable[[], Iterable[Finding]]


def examine() -> Iterator[tuple[str, Finding]]:
    """Yield the findings of all parts with the names of the parts; no part takes longer than its time limit."""
    for name, part in PARTS.items():
        yield from ((name, finding) for finding in _examine(part))


def _examine(part: Part) -> list[Finding]:
    began = monotonic()
    try:
        # PostgreSQL ends a statement that takes too long, unless it waits for what does not answer even then
        with interrupting_after(_LIMIT + _GRACE), transaction.atomic():
            sql.execute(f"SET LOCAL statement_timeout = '{_LIMIT:.0f}s'")
            found = list(part())
            sql.execute("SET LOCAL statement_timeout TO DEFAULT")
            return found
    except (DatabaseError, InterfaceError, CoordinatorSilent) as failure:
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
    for name, minutes in statements.prepared_transactions(_STUCK):
        yield error(
            f"The transaction {name} has been prepared for {minutes} minutes and holds its locks. On a cluster,"
            " recover_prepared_transactions() settles it when all nodes are up; otherwise ROLLBACK PREPARED does."
        )


def _settings() -> Iterator[Finding]:
    """Settings of PostgreSQL on which promises of the server, or its speed, depend."""
    found = statements.settings(*_SETTINGS, "server_encoding")
    wrong = {name: value for name, value in found.items() if (name, value) in _WRONG}
    if settings.OPTIONS.relaxed:
        wrong.pop("synchronous_commit", None)
    for name, value in wrong.items():
        yield warning(f"{name} is {value}: {_WRONG[name, value]}")
    if (encoding := found["server_encoding"]) != "UTF8":
        yield error(
            f"The encoding of the database is {encoding}, which lacks letters. Move to a database with UTF8."
        )
    elif not wrong:
        yield fine("PostgreSQL has the settings that durability and speed need.")


def _disk() -> Iterator[Finding]:
    if settings.OPTIONS.database_url:
        yield fine("The database is on another machine, whose disk is not examined.")
        return
    yield disk.examine(settings.OPTIONS.data)


def _backup() -> Iterator[Finding]:
    found = backups.state()
    if found.last is None:
        yield fine(
            "The command backup has made no backup of this server yet. Make one with the command backup DIR."
        )
    else:
        text = f"The last backup is of {found.last.made_at:%Y-%m-%d %H:%M} UTC, in {found.last.path}."
        if found.is_overdue:
            yield warning(f"{text} That is more than twice the interval of the schedule ago.")
        elif found.next_at is None and timezone.now() - found.last.made_at > backups.OLD:
            yield warning(f"{text} Make one at least every {backups.OLD.days} days.")
        else:
            yield fine(text)
    if found.failure is not None and found.is_failing:
        at = found.failure.failed_at
        yield warning(f"The backup of {at:%Y-%m-%d %H:%M} UTC failed: {found.failure.reason}")


def _archive() -> Iterator[Finding]:
    found = archive.summary()
    if found is None:
        yield fine(
            "The log is not archived; serve --archive DIR does, and the database can be restored to any moment."
        )
        return
    for it in found.problems:
        yield warning(f"{archive.describe(it)} The archive is {found.folder}.")
    if found.periods:
        start, end = found.periods[-1]
        yield fine(
            f"The database can be restored to {start:%Y-%m-%d %H:%M:%S} UTC until {end:%Y-%m-%d %H:%M:%S} UTC."
        )


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


def _cluster() -> Iterator[Finding]:
    every = Table.objects.filter(distributed=True).select_related("account").order_by("pk")
    distributed, deleted = every.filter(deleted_at=None), every.exclude(deleted_at=None)
    if not distributed_relations.is_coordinator():
        yield fine("The database is not part of a Citus cluster; all tables are in it.")
        for table in distributed:
            yield warning(
                f"{_name(table)} has the form of a distributed table. It works; undistribute ends the form."
            )
        return
    nodes = statements.nodes()
    yield fine(
        f"Coordinator of Citus {statements.citus_version()} with {len(nodes)} nodes for rows:"
        f" {', '.join(nodes) or 'none'}. "
        f"Distributed: {counted(len(distributed), 'table')}; all others are here."
        + (f" Deleted and not dropped yet: {counted(len(deleted), 'table')}." if deleted else "")
    )
    if not nodes:
        yield error("No node can take rows. Add workers with citus_add_node before distributing.")
    # those that do not answer first: what asks all nodes would wait for them
    for unreachable in [str(it) for it in unanswering()] or statements.unreachable_nodes():
        yield error(
            f"{unreachable} cannot be reached. Requests for its partitions answer 503, and tables cannot be"
            " distributed until it is back."
        )
    missing = distributed_relations.missing_helpers()
    if missing:
        yield Finding(
            Severity.WARNING if not distributed else Severity.ERROR,
            f"The nodes lack functions that statements call: {', '.join(missing)}. Distributing a table adds them.",
        )
    for name in statements.distributed_by_hand():
        yield error(
            f"The relation {name} was distributed by hand, but the server takes its table for a local one, whose"
            f" history is then not atomic. Run SELECT undistribute_table('{name}'), then manage.py distribute."
        )
    for table in every:
        yield from _table(table)
    for job in distribution_jobs.failed().select_related("table__account"):
        if job.table is not None:
            yield warning(f"Moving {_name(job.table)} has failed: {jobs.error_of(job)}")


def _table(table: Table) -> Iterator[Finding]:
    is_deleted = table.deleted_at is not None
    relation = source_name(table.pk, is_deleted=is_deleted, is_distributed=True)
    if not distributed_relations.is_spread(relation):
        yield warning(
            f"{_name(table)} has the form of a distributed table, but its rows are here. It works;"
            " distribute or undistribute it."
        )
        return
    if not is_deleted and not distributed_relations.is_delegated(relation):
        yield error(
            f"The function of {_name(table)} is not delegated to the nodes, so that writes with history are not"
            " atomic. Delete and restore the table, or undistribute and distribute it."
        )
    left = 0 if is_deleted else distributed_relations.local_bytes(relation)
    if left:
        yield warning(
            f"Former rows of {_name(table)} still take {left / 2**20:,.1f} MiB here; a job of the server frees them."
        )


def _connections() -> Iterator[Finding]:
    found = connections.state()
    counts = found.counts
    yield fine(
        f"{counts.processes} processes serve this database. {counts.used} of {counts.allowed} connections that"
        f" PostgreSQL allows are open, {counts.ours} of them by Tablero; the processes may open {found.most}."
    )
    if found.missing:
        yield warning(
            f"If they open all of these, {found.missing} are refused, and requests answer 503. Raise max_connections by"
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


_PROBLEMS: Final[Mapping[ReplicaProblem, str]] = {
    ReplicaProblem.NO_ANSWER: "It does not answer within half a second.",
    ReplicaProblem.ACCEPTS_WRITES: "It accepts writes, so it is a primary. It is left out until it follows the other.",
    ReplicaProblem.OTHER_DATABASE: "It is a replica of another database. Correct TABLERO_REPLICAS.",
    ReplicaProblem.NOT_RECEIVING: "It receives nothing from the primary. See primary_conninfo and its log.",
    ReplicaProblem.OTHER_TIMELINE: "It follows a former primary. Use pg_rewind or copy the present one.",
}


def _replicas() -> Iterator[Finding]:
    found = replicas.states()
    if not found:
        yield fine("There are no replicas: the primary answers all reads.")
    for replica in found:
        is_used = replica.state is ReplicaState.IN_USE
        lag = "" if replica.lag_seconds is None else f", {replica.lag_seconds:.1f} seconds behind"
        why = "" if replica.problem is None else f" {_PROBLEMS[replica.problem]}"
        severity = Severity.OK if is_used and not why else Severity.WARNING
        yield Finding(severity, f"{replica.name} is {replica.state}{lag}.{why}")


# of PostgreSQL, with what they mean and what to do
_WRONG: Final[Mapping[tuple[str, str], str]] = {
    ("fsync", "off"): "a crash of the machine may damage the whole database. Turn it on.",
    ("full_page_writes", "off"): "a crash of the machine may damage pages of the database. Turn it on.",
    ("synchronous_commit", "off"): "a crash may lose changes that were acknowledged. Turn it on.",
    ("autovacuum", "off"): "tables grow, and get slower, with every change. Turn it on.",
    ("track_counts", "off"): "no table is vacuumed, and all grow with every change. Turn it on.",
    ("default_transaction_read_only", "on"): "nothing can be written. Turn it off for the user of Tablero.",
}
_SETTINGS: Final = tuple(name for name, _ in _WRONG)

# other parts are added here
PARTS: Final[Mapping[str, Part]] = {
    "database": _database,
    "settings": _settings,
    "disk": _disk,
    "backup": _backup,
    "archive": _archive,
    "clock": _clock,
    "tables": _tables,
    "cluster": _cluster,
    "connections": _connections,
    "jobs": _jobs,
    "replicas": _replicas,
}
