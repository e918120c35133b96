"""Adaptive indexes: created by the server for scanning queries, dropped when unused."""

import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from threading import Event
from typing import Final, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet, Sum
from django.utils import timezone

from storage.accounts.refusals import AccountError
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery, Position, Sort
from storage.domain.filters.writer import write
from storage.domain.values.names import check_property_name
from storage.health import disk
from storage.metrics.ledger import Ledger
from storage.models import PropertyIndex, PropertyScans, Table
from storage.sql import background, estimates
from storage.sql import django as sql
from storage.sql import indexes as statements
from storage.sql.attempts import attempting_each
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.statement import Statement
from storage.tables import index_rules as policy
from storage.tables import indexes
from storage.tables.index_rules import IndexOrigin, IndexReason, IndexState

T = TypeVar("T")

_NAMES_LIMIT: Final = 1_000  # properties counted between two writes
_EXAMINED: Final = 5  # slow queries whose plans are looked at for one write
_EXAMINATION: Final = timedelta(milliseconds=200)  # for each statement of it
_PATIENCE: Final = 1.0  # seconds for all of them
_FILTER_LENGTH: Final = 300  # characters
_JOB: Final = "indexes"

_new_scans: Final = Event()  # this process has written counts on which nothing was decided yet


class SlowQuery(NamedTuple):
    """Slow query: its duration, the end of its page, and the properties whose index might have avoided a scan."""

    table_id: int
    names: frozenset[str]
    seconds: float
    query: EntityQuery
    end: Position | None = None
    sort: Sort | None = None


@dataclass(slots=True)
class _Group:
    """Slow queries on the same properties: number, total time, and the slowest as an example."""

    slowest: SlowQuery
    number: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class SlowQueries:
    """Slow queries collected since the last write."""

    groups: dict[tuple[int, frozenset[str]], _Group] = field(default_factory=dict)

    def add(self, query: SlowQuery) -> int:
        """Add a query; return the number of queries on the same properties, 0 beyond the limit of properties."""
        key = (query.table_id, query.names)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= _NAMES_LIMIT:
                return 0
            group = self.groups[key] = _Group(query)
        group.number += 1
        group.seconds += query.seconds
        group.slowest = max(group.slowest, query, key=lambda it: it.seconds)
        return group.number


class _Count(NamedTuple):
    scans: int = 0
    seconds: float = 0.0
    filter: str = ""


class ScanCosts(Ledger[tuple[int, str, date], _Count]):
    """Unwritten counts of costly scans by table, property and day."""

    def __init__(self) -> None:
        super().__init__()
        self._slow: list[tuple[date, _Group]] = []

    def add(self, moment: datetime, slow: SlowQueries) -> None:
        """Add slow queries; ``write`` counts those that were scans."""
        self._slow += [(moment.date(), group) for group in slow.groups.values()]
        # at random, so that no table waits for another whose scans go on
        self._slow = random.sample(self._slow, min(len(self._slow), _EXAMINED))

    def write(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while self._slow and time.monotonic() < deadline:
            day, group = self._slow.pop(0)
            if _rows_read(group.slowest) >= policy.INDEXED_FROM:
                self.add_scans(day, group.slowest, group.number, group.seconds)
        self._slow.clear()
        is_new = bool(self._unwritten)
        super().write()
        if is_new:
            _new_scans.set()

    def give_up(self) -> None:
        self._slow.clear()
        super().give_up()

    def add_scans(self, day: date, query: SlowQuery, number: int, seconds: float) -> None:
        """Add costly scans with the shape of this query to the counts of a day."""
        for name in filter(_can_be_indexed, query.names):
            key = (query.table_id, name, day)
            known = self._counted.get(key, _Count())
            self._count(key, _Count(known.scans + number, known.seconds + seconds, _describe(query)))

    def _store(self, counted: Mapping[tuple[int, str, date], _Count]) -> None:
        keys = {"table_id": "bigint", "name": "text", "day": "date"}
        numbers = {"scans": "bigint", "seconds": "float8"}
        rows = [(*key, *count) for key, count in counted.items()]
        background.add_up("storage_propertyscans", keys, numbers, rows, {"filter": "text"})


def record(query: SlowQuery) -> None:
    """Count a slow query immediately, unless an open transaction would hold the counter's row lock."""
    if query.names and not connection.in_atomic_block:
        slow, costs = SlowQueries(), ScanCosts()
        slow.add(query)
        costs.add(timezone.now(), slow)
        costs.write()


def _rows_read(slow: SlowQuery) -> int:
    """Estimate the rows that a query has read; 0 if the table has no adaptive indexes or the database is busy."""
    table = _adaptive_tables().filter(pk=slow.table_id).first()
    if table is None:
        return 0
    try:
        rows = _rows_of(table, background.estimated_rows(table.pk))
        if rows < policy.INDEXED_FROM:
            return 0
        return sql.walk(estimates.rows_read(relation_of(table), slow.query, slow.end, rows), _run_briefly)
    except (Canceled, StorageError):
        return 0


def _rows_of(table: Table, estimated: int) -> int:
    """Return the estimated rows of a table; counted, as far as an index asks, if they seem too few for one.

    PostgreSQL's statistics do not have the writes of a connection's last ten seconds, nor all of a table that was
    just loaded. Raises Canceled.
    """
    if estimated >= policy.INDEXED_FROM:
        return estimated
    return _run_briefly(background.count_up_to([table.pk], policy.INDEXED_FROM))[table.pk]


def _run_briefly(statement: Statement[T]) -> T:
    return sql.run_in_lane(statement, limit=_EXAMINATION)


def _describe(slow: SlowQuery) -> str:
    """Return the filter and sort order of a query without its values, which may be personal."""
    parts = [] if slow.query.filter is None else [write(slow.query.filter, lambda _: "…")]
    if slow.sort is not None:
        parts.append(f"order by {slow.sort.property}")
    return sql.storable_text(" ".join(parts), _FILTER_LENGTH)


def _can_be_indexed(name: str) -> bool:
    """Return whether a name in a filter is a valid property name other than a key."""
    if name in ("PartitionKey", "RowKey"):
        return False
    try:
        check_property_name(name)
    except StorageError:
        return False
    return True


def adapt(now: datetime) -> None:
    """Maintain adaptive indexes: note their use, drop those unused for weeks, and add the ones needed."""
    with attempting_each("Not every adaptive index could be decided on") as attempt:
        for act in (_note_uses, _drop_unused, _add_needed):
            with attempt():
                act(now)


def has_new_scans() -> bool:
    """Return whether this process has counted scans since the last decision on indexes."""
    return _new_scans.is_set()


def add_for_new_scans(now: datetime) -> None:
    """Add indexes for newly counted scans, unless another process is deciding."""
    if not has_new_scans():
        return
    with background.try_job_lock(_JOB) as is_alone:
        if is_alone:
            _new_scans.clear()
            _add_needed(now)


def _adaptive_tables() -> QuerySet[Table]:
    return Table.objects.existing().filter(account__adaptive_indexes=True, account__read_only=False)


def _add_needed(now: datetime) -> None:
    needed = (
        PropertyScans.objects.filter(table__in=_adaptive_tables(), day__gt=(now - policy.SCAN_PERIOD).date())
        .values("table", "name")
        .annotate(number=Sum("scans"), cost=Sum("seconds"), example=Max("filter"))
        .filter(number__gte=policy.SCANS_NEEDED)
        .order_by("-cost", "name")
    )
    with attempting_each("Not every needed index could be added") as attempt:
        for table_id, name, *counted in needed.values_list("table", "name", "example", "number", "cost"):
            with attempt():
                _add(table_id, name, IndexReason(*counted))


def _note_uses(now: datetime) -> None:
    ready = PropertyIndex.objects.filter(table__deleted_at=None, state=IndexState.READY)
    known = {(table_id, pk): scans for table_id, pk, scans in ready.values_list("table", "pk", "scans")}
    for (table_id, pk), scans in statements.scans(list(known)).items():
        if scans > known[table_id, pk]:
            PropertyIndex.objects.filter(pk=pk).update(scans=scans, last_used_at=now)
        elif scans < known[table_id, pk]:  # PostgreSQL has lost its statistics
            PropertyIndex.objects.filter(pk=pk).update(scans=scans)


def _drop_unused(now: datetime) -> None:
    limit = now - policy.UNUSED_PERIOD
    unused = PropertyIndex.objects.filter(
        Q(last_used_at__lt=limit) | Q(last_used_at=None, created_at__lt=limit),
        table__in=_adaptive_tables(),
        state=IndexState.READY,
        origin=IndexOrigin.ADAPTIVE,
    )
    with attempting_each("Not every unused index could be dropped") as attempt:
        for index in unused.select_related("table"):
            if index.table.form.capabilities.is_measured_here:  # else its uses are not known
                with attempt():
                    indexes.drop(index.table, index.name)


@transaction.atomic
def _add(table_id: int, name: str, reason: IndexReason) -> None:
    """Add an index unless it exists, a user has dropped it, or the budget of the table or account is exhausted.

    A table gets one index at a time, as the new one may make other scans cheap.
    """
    # locked, so that no person drops it meanwhile
    table = Table.objects.select_for_update().filter(pk=table_id, deleted_at=None).first()
    if table is None or name in (table.declined_indexes or ()):
        return
    existing = list(PropertyIndex.objects.filter(table=table))
    if len(existing) >= policy.ADAPTIVE_LIMIT or any(
        index.name == name or index.state in (IndexState.BUILDING, IndexState.DROPPING) for index in existing
    ):
        return
    of_account = PropertyIndex.objects.filter(table__account=table.account_id, origin=IndexOrigin.ADAPTIVE)
    if of_account.count() >= policy.ACCOUNT_LIMIT or not _is_affordable(table, existing):
        return
    if len(existing) >= policy.EAGER_LIMIT and reason.scans < policy.SCANS_NEEDED_BEYOND:
        return
    try:
        indexes.add(table, name, origin=IndexOrigin.ADAPTIVE, reason=reason)
    except (AccountError, StorageError):  # another process or a user was faster
        return
    PropertyScans.objects.filter(table=table).delete()  # from now on scans cost less


def _is_affordable(table: Table, existing: Collection[PropertyIndex]) -> bool:
    """Return whether the table is large enough for an index and has room for one more."""
    size = background.sizes_of([table.pk]).get(table.pk)
    if size is None:
        return False
    rows = _rows_of(table, size.rows)
    if rows < policy.INDEXED_FROM:
        return False
    if not settings.OPTIONS.database_url and disk.space_of(settings.OPTIONS.data).is_low:
        return False
    taken = sum(
        stored.size for stored in statements.stored(table.pk, [index.pk for index in existing]).values()
    )
    return taken + rows * policy.ENTRY_BYTES <= policy.DISK_SHARE * (size.capacity - taken)


def tidy(now: datetime) -> None:
    """Delete expired scan counts."""
    PropertyScans.objects.filter(day__lte=(now - policy.SCAN_PERIOD).date()).delete()
