"""Entities of snapshots: in the history, or copied to separate relations before it is dropped."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from storage.domain.entities.moments import Moment
from storage.models import Account, Snapshot, SnapshotTable, Table
from storage.relations.record import SLACK, recorded_changes
from storage.sql import copying, relations
from storage.sql import django as sql
from storage.sql import snapshots as statements
from storage.sql.past import Past, as_of
from storage.sql.record import Record


def moment_of(snapshot: Snapshot) -> Moment:
    return Moment(snapshot.ticks, snapshot.visible)


def past_of(snapshot_table: SnapshotTable) -> Past:
    """Return the past of a table as of its snapshot, for storage.sql.past."""
    snapshot = snapshot_table.snapshot
    if snapshot_table.is_copied:
        relation = statements.relation_name(snapshot.pk, snapshot_table.table_id)
        return Past(snapshot_table.table_id, relation, Record(), Moment(snapshot.ticks))
    is_deleted = Table.objects.filter(pk=snapshot_table.table_id).exclude(deleted_at=None).exists()
    source = relations.source_name(relations.relation_name(snapshot_table.table_id), is_deleted=is_deleted)
    return Past(
        snapshot_table.table_id,
        source,
        recorded_changes(snapshot.account_id, since=snapshot.taken_at),
        moment_of(snapshot),
    )


def copy(snapshot: Snapshot, only: Table | None = None) -> int:
    """Copy a snapshot's entities to separate relations, in the caller's transaction; return their number."""
    total = 0
    tables = snapshot.tables.select_for_update().filter(is_copied=False).order_by("pk")
    for snapshot_table in tables if only is None else tables.filter(table=only):
        relation = statements.relation_name(snapshot.pk, snapshot_table.table_id)
        past = past_of(snapshot_table)
        sql.execute(statements.create(relation))
        number = sql.run(
            as_of(copying.copy_all(relations.relation_name(snapshot_table.table_id), relation), past)
        )
        sql.execute(statements.index(relation))
        snapshot_table.entities, snapshot_table.is_copied = number, True
        snapshot_table.save(update_fields=("entities", "is_copied"))
        total += number
    return total


def copy_those_before(account: Account, moment: datetime) -> None:
    """Copy the snapshots that need a segment, given its end, before it is dropped."""
    needing = Snapshot.objects.filter(account=account, tables__is_copied=False, taken_at__lt=moment + SLACK)
    for snapshot in needing.distinct():
        with transaction.atomic():
            copy(snapshot)


def copy_outstanding(account: Account) -> None:
    """Copy all snapshots of an account before its history is disabled."""
    copy_those_before(account, timezone.now() + SLACK)


def drop_relations(snapshot: Snapshot) -> None:
    """Drop the relations copied for a snapshot that is being deleted."""
    for table_id in snapshot.tables.filter(is_copied=True).values_list("table_id", flat=True):
        sql.execute(statements.drop(statements.relation_name(snapshot.pk, table_id)))
