"""The entities of snapshots: in the history, or copied into relations of their own before it is dropped."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from storage.domain.entities.moments import Moment
from storage.models import Account, HistorySegment, Snapshot, SnapshotTable, Table
from storage.sql import copying, relations
from storage.sql import django as sql
from storage.sql import history as segments
from storage.sql import snapshots as statements
from storage.sql.past import Past, as_of

_ROTATION: Final = timedelta(minutes=1)  # by which the end of a segment may be recorded too early


def moment_of(snapshot: Snapshot) -> Moment:
    return Moment(snapshot.ticks, snapshot.visible)


def past_of(found: SnapshotTable) -> Past:
    """Return a table as of its snapshot, for storage.sql.past."""
    snapshot = found.snapshot
    if found.is_copied:
        relation = statements.relation_name(snapshot.pk, found.table_id)
        return Past(found.table_id, relation, (), Moment(snapshot.ticks))
    is_deleted = Table.objects.filter(pk=found.table_id).exclude(deleted_at=None).exists()
    source = relations.source_name(found.table_id, is_deleted=is_deleted)
    return Past(found.table_id, source, segments_after(snapshot), moment_of(snapshot))


def segments_after(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names of the segments that may have changes after a snapshot, the oldest first."""
    kept = HistorySegment.objects.filter(account=snapshot.account_id, dropped_at=None)
    later = kept.filter(Q(ended_at=None) | Q(ended_at__gt=snapshot.taken_at - _ROTATION))
    numbers = later.order_by("number").values_list("number", flat=True)
    return tuple(segments.segment_name(snapshot.account_id, number) for number in numbers)


def copy(snapshot: Snapshot, only: Table | None = None) -> int:
    """Copy the entities of a snapshot into relations of their own, in the caller's transaction; return their number."""
    total = 0
    tables = snapshot.tables.select_for_update().filter(is_copied=False).order_by("pk")
    for found in tables if only is None else tables.filter(table=only):
        relation = statements.relation_name(snapshot.pk, found.table_id)
        past = past_of(found)
        sql.execute(statements.create(relation))
        number = sql.run(as_of(copying.copy_all(relations.relation_name(found.table_id), relation), past))
        sql.execute(statements.index(relation))
        found.entities, found.is_copied = number, True
        found.save(update_fields=("entities", "is_copied"))
        total += number
    return total


def needs_segments(account: Account) -> datetime | None:
    """Return the earliest end of a segment that a snapshot of an account needs; None if no segment is needed."""
    needing = Snapshot.objects.filter(account=account, tables__is_copied=False)
    first = needing.order_by("taken_at").values_list("taken_at", flat=True).first()
    return None if first is None else first - _ROTATION


def copy_those_before(account: Account, moment: datetime) -> None:
    """Copy the snapshots that need a segment that ended at a moment, before it is dropped."""
    needing = Snapshot.objects.filter(
        account=account, tables__is_copied=False, taken_at__lt=moment + _ROTATION
    )
    for snapshot in needing.distinct():
        with transaction.atomic():
            copy(snapshot)


def copy_outstanding(account: Account) -> None:
    """Copy all snapshots of an account, before it ceases to keep history."""
    copy_those_before(account, timezone.now() + _ROTATION)


def drop_relations(snapshot: Snapshot) -> None:
    """Drop what was copied for a snapshot that is being deleted."""
    for table_id in snapshot.tables.filter(is_copied=True).values_list("table_id", flat=True):
        sql.execute(statements.drop(statements.relation_name(snapshot.pk, table_id)))
