"""Find out what a table is to be read from as of a moment of the past: as far back as its account keeps changes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.db.models import Q
from django.utils import timezone

from storage.domain.entities.moments import Moment
from storage.domain.errors import OutOfRangeInput, TableNotFound
from storage.domain.requests.analytics import find_metrics_table
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_datetime
from storage.models import HistorySegment, Table
from storage.operations import accounts
from storage.sql import django as sql
from storage.sql.history import segment_name
from storage.sql.past import Past as Past
from storage.sql.past import as_of
from storage.sql.relations import source_name
from storage.sql.statement import Statement

T = TypeVar("T")

_CLOCKS: Final = timedelta(minutes=1)  # by which clocks may differ


def kept_since(account_id: int) -> datetime | None:
    """Return since when all changes of an account are kept; None if none are."""
    segments = kept_segments(account_id)
    return segments[0].started_at if segments else None


def find(table: Table, moment: Moment) -> Past:
    """Raises TableNotFound if there was no such table then, OutOfRangeInput if its entities of then are not known."""
    at = to_datetime(moment.ticks)
    if at > timezone.now() + _CLOCKS:
        raise OutOfRangeInput(f"{moment} is in the future.")
    if find_metrics_table(table.folded_name) is not None:
        raise OutOfRangeInput("System tables have no history.")
    segments = kept_segments(table.account_id)
    if not segments:
        raise OutOfRangeInput("The account keeps no history.")
    if at < segments[0].started_at:
        raise OutOfRangeInput(f"Changes are kept since {_write(segments[0].started_at)}.")
    if at < table.created_at or (table.deleted_at is not None and at >= table.deleted_at):
        raise TableNotFound
    if table.distributed:
        raise OutOfRangeInput(
            f"{table.name} is distributed over several nodes, which have no past in common."
        )
    if table.changes_since is not None and at < table.changes_since:
        raise OutOfRangeInput(f"Changes of {table.name} are kept since {_write(table.changes_since)}.")
    return Past(
        table.pk,
        source_of(table),
        tuple(
            segment_name(table.account_id, it.number)
            for it in segments
            if it.ended_at is None or it.ended_at > at - _CLOCKS
        ),
        moment,
    )


def find_by_id(table_id: int, moment: Moment) -> Past:
    """Like find; raises TableNotFound also if the table is gone."""
    table = Table.objects.filter(pk=table_id).first()
    if table is None:
        raise TableNotFound
    return find(table, moment)


def run_as_of(statement: Statement[T], past: Past | None, *, limit: timedelta | None = None) -> T:
    """Run a statement that reads entities, of now or of a moment of the past."""
    return sql.run_in_lane(statement if past is None else as_of(statement, past), limit=limit)


def source_of(table: Table) -> str:
    """Return the relation with the entities of a table, which has another name if the table is deleted."""
    return source_name(table.pk, is_deleted=table.deleted_at is not None, is_distributed=table.distributed)


def find_table(account_id: int, name: str, moment: Moment) -> Table:
    """Return the table that had a name at a moment, which may have been deleted since; raises TableNotFound."""
    at = to_datetime(moment.ticks)
    table = Table.objects.filter(
        Q(deleted_at=None) | Q(deleted_at__gt=at),
        account_id=account_id,
        folded_name=fold_table_name(name, accounts.kind_of(account_id)),
        created_at__lte=at,
    ).first()
    if table is None:
        raise TableNotFound
    return table


def kept_segments(account_id: int) -> Sequence[HistorySegment]:
    """Return the segments since the last change that is not kept, the oldest first."""
    segments: list[HistorySegment] = []
    is_open = False
    for segment in HistorySegment.objects.filter(account_id=account_id).order_by("number"):
        segments.append(segment)
        is_open = segment.ended_at is None
        if segment.dropped_at is not None or (segment.ended_at is not None and segment.last_xid is None):
            segments.clear()
    return segments if is_open else []


def _write(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
