"""Distribution of tables over the nodes of a Citus cluster, and the reverse, while they are in use."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, InterfaceError, transaction

from storage.accounts import accounts
from storage.accounts.refusals import AccountError
from storage.activity import activity
from storage.cluster import ddl, nodes, relations, statements
from storage.cluster.relations import run_all
from storage.cluster.subject import FORM, ClusterReason, ClusterVerb
from storage.domain import errors
from storage.domain.access.actor import SERVER, Actor
from storage.domain.refusals import AnyReason, Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_ticks
from storage.history.retention import SEGMENTS
from storage.models import Account, Activity, HistorySegment, SnapshotTable, Table
from storage.relations import history, snapshot_copies
from storage.sql import background, moments
from storage.sql import django as sql
from storage.sql.attempts import attempting_each
from storage.sql.background import Size
from storage.sql.forms import history_of
from storage.sql.notify import notify_table
from storage.sql.relations import INDEXING, relation_of

logger = logging.getLogger(__name__)

_EMPTY: Final = Size(0, 0, is_measured_here=False)
_PATIENCE: Final = "2s"  # for statements that are running; others wait behind


class DistributionError(AccountError):
    """A table cannot be distributed or gathered."""


def distribute(table: Table, *, by: Actor = SERVER) -> Activity:
    """Distribute a table over the nodes; it stays readable, but writes wait."""
    _check_coordinator()
    with _no_new_index(table):
        return _distribute(table, by)


def _distribute(table: Table, by: Actor) -> Activity:
    account = _account(table)
    relation = FORM.relation(table.pk)
    if table.distributed and ddl.is_spread(relation):
        raise DistributionError(ClusterReason.DISTRIBUTED_ALREADY, table=table.name)
    with _explaining(ClusterReason.DISTRIBUTION_FAILED, table):
        relations.spread_helpers()
        if not table.distributed:
            _copy_snapshots(table)
            _take_form(table)
        try:
            done = _spread(table, account, by)
        except Exception:
            _leave_form(table)
            raise
    try:
        free_local_rows(table)
        measure(table, statements.distributed_sizes())
    except Exception:  # the table is distributed anyway, and a job of the server does the rest
        logger.warning("The space of %s on the coordinator is not free yet", table.name, exc_info=True)
    return done


@sql.repeatable_on_nodes
def _spread(table: Table, account: Account, by: Actor) -> Activity:
    _lock(table)
    relations.spread(table)
    notify_table(table.account_id, table.folded_name)
    return activity.record(ClusterVerb.DISTRIBUTE, by, account=account, table=table)


def undistribute(table: Table, *, by: Actor = SERVER) -> Activity:
    """Move a distributed table back to the coordinator; it stays readable until the end, but writes wait."""
    account = _account(table)
    if not table.distributed:
        raise DistributionError(ClusterReason.NOT_DISTRIBUTED, table=table.name)
    with _explaining(ClusterReason.GATHERING_FAILED, table), _no_new_index(table):
        return _gather(table, account, by)


@sql.repeatable_on_nodes
def _gather(table: Table, account: Account, by: Actor) -> Activity:
    table.distributed = True  # also if a former attempt was rolled back
    _lock(table)
    if relations.is_spread(table):
        relations.gather(table)
    _give_local_form(table)
    return activity.record(ClusterVerb.UNDISTRIBUTE, by, account=account, table=table)


def _check_coordinator() -> None:
    if not ddl.is_coordinator():
        raise DistributionError(ClusterReason.NO_COORDINATOR_YET)


def _account(table: Table) -> Account:
    return accounts.writable(table.account)


@contextmanager
def _explaining(reason: AnyReason, table: Table) -> Iterator[None]:
    """Convert a database error to DistributionError with the first line of its message."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        raise DistributionError(reason, table=table.name, why=str(error).strip().splitlines()[0]) from error
    except errors.ServerBusy as error:  # a node is busy
        if error.refusal.reason is Reason.OTHER:
            raise
        raise DistributionError(reason, table=table.name, why=error.text) from error


def _lock(table: Table) -> None:
    if not Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).exists():
        raise errors.ResourceNotFound


@contextmanager
def _no_new_index(table: Table) -> Iterator[None]:
    with background.try_lock(INDEXING, table.pk) as is_alone:
        if not is_alone:
            raise DistributionError(ClusterReason.INDEX_IN_THE_MAKING, table=table.name)
        yield


def _copy_snapshots(table: Table) -> None:
    """Copy the snapshots' shares of the table before its history moves to another relation."""
    for found in SnapshotTable.objects.filter(table=table, is_copied=False).select_related("snapshot"):
        with transaction.atomic():
            snapshot_copies.copy(found.snapshot, table)


def _take_form(table: Table) -> None:
    with _explaining(ClusterReason.LOCK_FAILED, table), transaction.atomic():
        sql.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
        # against snapshots that are being taken
        sql.execute("LOCK TABLE storage_snapshottable IN SHARE MODE")
        _lock(table)
        if SnapshotTable.objects.filter(table=table, is_copied=False).exists():
            raise DistributionError(ClusterReason.SNAPSHOT_JUST_TAKEN, table=table.name)
        commands = ddl.take_form(table.pk, AccountKind(table.account.kind))
        rename, *others = commands
        sql.execute(rename)
        if not ddl.keys_are_short([table.pk]):
            raise DistributionError(ClusterReason.LONG_KEYS_NOT_DISTRIBUTED, table=table.name)
        run_all(others)
        since = moments.present_time()  # all other writes have ended, for the relation is locked
        Table.objects.filter(pk=table.pk).update(distributed=True, distributed_since=since)
        notify_table(table.account_id, table.folded_name)
    table.refresh_from_db(fields=("distributed", "distributed_since"))


def _leave_form(table: Table) -> None:
    """Convert a table that could not be distributed back to its local form."""
    with transaction.atomic():
        _lock(table)
        _give_local_form(table)


def _give_local_form(table: Table) -> None:
    account = table.account
    kind, is_recorded = AccountKind(account.kind), history.is_recorded(account)
    run_all(ddl.leave_form(table.pk, table.account_id, kind, is_recorded=is_recorded))
    Table.objects.filter(pk=table.pk).update(distributed=False, distributed_since=None)
    table.distributed = False
    notify_table(table.account_id, table.folded_name)


# work of jobs


def free_local_rows(table: Table) -> None:
    """Truncate the local rows that are on the nodes now."""
    for command in ddl.free_local_rows(table.pk):
        with transaction.atomic():
            sql.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
            sql.execute(command)


def measure(table: Table, sizes: Mapping[str, Size]) -> None:
    """Store the size of a distributed table for lists; keep the last size if its relation is missing from ``sizes``."""
    relation = relation_of(table)
    if relation not in sizes:
        return
    size, changes = (sizes.get(name, _EMPTY) for name in (relation, history_of(relation)))
    table.distributed_rows, table.distributed_bytes = size.rows, size.capacity + changes.capacity
    table.save(update_fields=("distributed_rows", "distributed_bytes"))


def tidy(now: datetime) -> None:
    """Maintain distributed tables: measure them, renew old functions, and delete expired changes."""
    distributed = Table.objects.filter(distributed=True, deleted_at=None).select_related("account")
    if not distributed:
        return
    relations.check_nodes()
    sizes: Mapping[str, Size] = {}
    with (
        nodes.interrupting_if_unanswered(),
        attempting_each("Not every distributed table could be measured") as attempt,
    ):
        with attempt():
            sizes = statements.distributed_sizes() if ddl.is_coordinator() else {}
        for table in distributed:
            for act in (_forget_changes, _renew_function, _free_local_rows):
                with attempt():  # its node may be down
                    act(table, now)
            with attempt():
                measure(table, sizes)


def _renew_function(table: Table, _now: datetime) -> None:
    relations.renew_function(table)


def _free_local_rows(table: Table, _now: datetime) -> None:
    if relations.is_spread(table) and ddl.local_bytes(relation_of(table)):
        free_local_rows(table)


def _forget_changes(table: Table, now: datetime) -> None:
    """Delete changes beyond the retention period of the account."""
    account = table.account
    first = HistorySegment.objects.filter(account=account, dropped_at=None).order_by("number").first()
    since = now - timedelta(days=account.history_days)
    if account.history_days and first is not None:
        since = max(since, first.started_at)
    known, step = table.changes_since, timedelta(days=account.history_days) / SEGMENTS
    if known is not None and since < known + step and account.history_days:
        return  # not yet worth a transaction on all nodes
    with transaction.atomic():
        # first, so that no reader asks for a time whose changes are being deleted
        Table.objects.filter(pk=table.pk).update(changes_since=since)
        sql.execute(ddl.forget_changes_before(relation_of(table)), to_ticks(since))
