"""Indexes that the server adds because queries scan, and drops when they are no longer used.

Each process counts costly scans by the properties whose index would have spared them; a job decides for all of them.
"""

from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Final

from django.db import connection
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from storage.domain.access.actor import ActorKind
from storage.domain.errors import StorageError
from storage.domain.service import indexes as policy
from storage.domain.service.activity import Verb
from storage.domain.service.indexes import IndexOrigin, IndexState
from storage.domain.values.names import check_property_name
from storage.models import Activity, PropertyIndex, PropertyScans, Table
from storage.operations.accounts.refusals import AccountError
from storage.operations.counting.ledger import Ledger
from storage.operations.tables import indexes
from storage.sql import background
from storage.sql import indexes as sql
from storage.sql.distribution import capabilities_of

_NAMES_LIMIT: Final = 1_000  # properties counted between two writes


class ScanCosts(Ledger[tuple[int, str, date], tuple[int, float]]):
    """What one process has counted until it is written: scans and their seconds, by table, property and day."""

    def add(self, moment: datetime, scans: Collection[tuple[int, frozenset[str], float]]) -> None:
        for table_id, names, seconds in scans:
            for name in filter(_can_be_indexed, names):
                key = (table_id, name, moment.date())
                known, total = self._counted.get(key, (0, 0.0))
                if known or len(self._counted) < _NAMES_LIMIT:
                    self._count(key, (known + 1, total + seconds))

    def _store(self, counted: Mapping[tuple[int, str, date], tuple[int, float]]) -> None:
        keys = {"table_id": "bigint", "name": "text", "day": "date"}
        numbers = {"scans": "bigint", "seconds": "float8"}
        rows = [(*key, *count) for key, count in counted.items()]
        background.add_up("storage_propertyscans", keys, numbers, rows)


def record(table: Table, names: frozenset[str], seconds: float) -> None:
    """Count a costly query at once, unless a transaction would have to hold the count until it ends."""
    if names and not connection.in_atomic_block:
        costs = ScanCosts()
        costs.add(timezone.now(), [(table.pk, names, seconds)])
        costs.write()


def _can_be_indexed(name: str) -> bool:
    """Return whether it is the name of a property, and not of a key; filters may have any."""
    if name in ("PartitionKey", "RowKey"):
        return False
    try:
        check_property_name(name)
    except StorageError:
        return False
    return True


def adapt(now: datetime) -> None:
    """Note which indexes were used, drop the adaptive ones that were not for weeks, and add those that are needed."""
    _note_uses(now)
    adaptive = Table.objects.own().filter(account__adaptive_indexes=True, account__read_only=False)
    _drop_unused(adaptive, now)
    needed = (
        PropertyScans.objects.filter(table__in=adaptive, day__gt=(now - policy.SCAN_PERIOD).date())
        .values("table", "name")
        .annotate(number=Sum("scans"), cost=Sum("seconds"))
        .filter(number__gte=policy.SCANS_NEEDED, cost__gte=policy.SECONDS_NEEDED)
        .order_by("-cost", "name")
    )
    for table_id, name in needed.values_list("table", "name"):
        _add(Table.objects.get(pk=table_id), name, now)


def _note_uses(now: datetime) -> None:
    ready = PropertyIndex.objects.filter(table__deleted_at=None, state=IndexState.READY)
    known = {(table_id, pk): scans for table_id, pk, scans in ready.values_list("table", "pk", "scans")}
    for (table_id, pk), scans in sql.scans(list(known)).items():
        if scans > known[table_id, pk]:
            PropertyIndex.objects.filter(pk=pk).update(scans=scans, last_used_at=now)
        elif scans < known[table_id, pk]:  # PostgreSQL has lost its statistics
            PropertyIndex.objects.filter(pk=pk).update(scans=scans)


def _drop_unused(tables: QuerySet[Table], now: datetime) -> None:
    limit = now - policy.UNUSED_PERIOD
    unused = PropertyIndex.objects.filter(
        Q(last_used_at__lt=limit) | Q(last_used_at=None, created_at__lt=limit),
        table__in=tables,
        state=IndexState.READY,
        origin=IndexOrigin.ADAPTIVE,
    )
    for index in unused.select_related("table"):
        if capabilities_of(index.table).is_measured_here:  # else its uses are not known
            indexes.drop(index.table, index.name)


def _add(table: Table, name: str, now: datetime) -> None:
    """Add an index unless it exists, was dropped by a user lately, or the table's budget is exhausted.

    One at a time: while one is made, or with it, other scans may stop to be costly.
    """
    existing = list(PropertyIndex.objects.filter(table=table))
    if len(existing) >= policy.ADAPTIVE_LIMIT or any(
        index.name == name or index.state in (IndexState.BUILDING, IndexState.DROPPING) for index in existing
    ):
        return
    if _was_dropped(table, name, now) or not _is_affordable(table, existing):
        return
    try:
        indexes.add(table, name, origin=IndexOrigin.ADAPTIVE)
    except AccountError:  # another process or user was faster
        return
    PropertyScans.objects.filter(table=table).delete()  # from now on scans cost less


def _was_dropped(table: Table, name: str, now: datetime) -> bool:
    """Return whether a person dropped the index, or undid its addition, within the last weeks."""
    dropped = Q(verb=Verb.INDEX_DROP) | Q(verb=Verb.UNDO, detail__verb=Verb.INDEX_DROP)
    lately = Activity.objects.filter(
        dropped, table=table, detail__property=name, at__gt=now - policy.UNUSED_PERIOD
    )
    return lately.exclude(actor_kind=ActorKind.SERVER).exists()


def _is_affordable(table: Table, existing: Collection[PropertyIndex]) -> bool:
    """Return whether the table is large enough for an index, and one more does not take too much space."""
    size = background.sizes_of([table.pk]).get(table.pk)
    if size is None or size.rows < policy.INDEXED_FROM:
        return False
    taken = sum(stored.size for stored in sql.stored(table.pk, [index.pk for index in existing]).values())
    return taken + size.rows * policy.ENTRY_BYTES <= policy.DISK_SHARE * (size.capacity - taken)


def tidy(now: datetime) -> None:
    """Delete what is too old."""
    PropertyScans.objects.filter(day__lte=(now - policy.SCAN_PERIOD).date()).delete()
