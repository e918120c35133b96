"""Lists of an account's tables; sizes are read for one page at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Final, Generic, TypeVar

from django.db.models import Q, QuerySet
from django.db.models.expressions import OrderBy
from django.utils import timezone

from storage.domain.errors import TableNotFound
from storage.domain.values.numbers import read_number
from storage.metrics import table_use
from storage.metrics.remembered import MANY_TABLES, Remembered
from storage.models import Account, Table
from storage.sql import background
from storage.sql import django as sql
from storage.sql.failures import Canceled
from storage.sql.statement import Statement
from storage.tables.list_columns import ANNOTATIONS, COLUMNS, NAME, Column, Size, TableRow

T = TypeVar("T")
PAGE: Final = 100
NOTHING: Final = background.Size(0, 0)  # for a table that was just deleted
_COUNTED: Final = 2000  # entities up to which a table is counted; the size of larger ones is estimated
_COUNTED_TOGETHER: Final = 20_000  # entities of all tables that are counted for an overview


_largest: Final = Remembered[list[int]]()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Page of tables; ``sizes`` by name if sorting required them."""

    tables: list[T]
    total: int  # number of matching tables
    # where the next page starts: a folded name, or sorted by another column than the name a number
    next: str | None
    sizes: Mapping[str, Size] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    """Table with estimates for a list; ``size`` is in bytes on disk, ``policies`` is None if not counted."""

    name: str
    created_at: datetime
    entities: int
    is_exact: bool
    size: int
    policies: int | None = None


def page(
    account: Account,
    *,
    containing: str = "",
    tag: str = "",
    start: str = "",
    top: int = PAGE,
    column: Column = NAME,
    descending: bool = False,
) -> Listing[Table]:
    """Return a page of tables that contain a text in name, tags or description, or that have a tag."""
    matching = Table.objects.existing().filter(account=account)
    if containing:
        matching = matching.filter(
            Q(name__icontains=containing)
            | Q(tags__contains=[containing])
            | Q(description__icontains=containing)
        )
    if tag:
        matching = matching.filter(tags__contains=[tag])
    total = matching.count()
    annotated = matching.annotate(**ANNOTATIONS)
    if column is NAME and not descending:
        rows = list(annotated.filter(folded_name__gte=start).order_by("folded_name")[: top + 1])
        return Listing(rows[:top], total, rows[top].folded_name if len(rows) > top else None)
    offset = read_number(start, digits=8) or 0
    window = slice(offset, offset + top)
    following = str(offset + top) if total > offset + top else None
    if column.is_measured and total <= PAGE:
        return _measured_page(annotated, window, following, column, descending=descending)
    assert column.sort_key is not None
    # without a value is like the least: without a write is like one long ago
    nulls = {"nulls_last": True} if descending else {"nulls_first": True}
    ordered = OrderBy(column.sort_key(), descending=descending, **nulls)
    return Listing(list(annotated.order_by(ordered, "folded_name")[window]), total, following)


def largest(account: Account, top: int) -> Listing[Table]:
    """Return the largest tables; up to a minute old for accounts with thousands of tables."""
    known = _largest.get(account.pk)
    if known is None:
        listing = page(account, top=top, column=COLUMNS["size"], descending=True)
        if listing.total > MANY_TABLES:
            _largest.put(account.pk, [table.pk for table in listing.tables])
        return listing
    by_id = Table.objects.existing().in_bulk(known)
    return Listing([by_id[pk] for pk in known if pk in by_id], len(by_id), None)


def _measured_page(
    annotated: QuerySet[Table], window: slice, following: str | None, column: Column, *, descending: bool
) -> Listing[Table]:
    """Sort a page of few tables by their current contents."""
    tables = list(annotated.order_by("folded_name"))
    known = sizes(tables)
    rows = [TableRow(table, known[table.name]) for table in tables]
    # without a value is like the least
    rows.sort(key=lambda row: (column.read(row) is not None, column.read(row)), reverse=descending)
    return Listing([row.table for row in rows[window]], len(rows), following, known)


def read_rows(tables: Sequence[Table], sizes: Mapping[str, Size]) -> list[TableRow]:
    """Return the list rows of tables, with the given sizes."""
    hours = table_use.last_day(tables, timezone.now())
    return [TableRow(table, sizes.get(table.name), hours.get(table.pk, ())) for table in tables]


def with_prefix(
    account: Account, *, prefix: str = "", tag: str = "", after: str = "", top: int = PAGE
) -> list[Table]:
    """Return tables whose name has a prefix in any letter case, sorted, after a folded name."""
    matching = Table.objects.existing().filter(account=account, name__istartswith=prefix)
    if tag:
        matching = matching.filter(tags__contains=[tag])
    return list(matching.filter(folded_name__gt=after).order_by("folded_name")[:top])


def tags(account: Account) -> list[str]:
    """Return up to 100 tags in use, sorted."""
    used = Table.objects.existing().filter(account=account).exclude(tags=[]).values_list("tags", flat=True)
    return sorted({tag for found in used.distinct() for tag in found}, key=str.casefold)[:100]


def sizes(tables: Sequence[Table]) -> dict[str, Size]:
    """Return sizes by table name; small tables are counted, as statistics may not cover them yet."""
    known = background.sizes_of([table.pk for table in tables])
    counts = {
        table_id: counted
        for table_id, counted in _counted(known, background.partitions_up_to).items()
        if counted[0] < _COUNTED
    }
    large = [table_id for table_id in known if table_id not in counts]
    partitions = background.partitions_of(large) if large else {}
    by_name: dict[str, Size] = {}
    for table in tables:
        size = known.get(table.pk, NOTHING)
        entities, its_partitions = counts.get(table.pk, (size.rows, partitions.get(table.pk)))
        by_name[table.name] = Size(entities, table.pk in counts, size.capacity, its_partitions)
    return by_name


def overview(account: Account, *, about: Table | None = None, top: int = PAGE) -> Listing[Overview]:
    """Return the first tables with sizes, by name; ``about`` is the table to count first."""
    matching = Table.objects.existing().filter(account=account).only("name", "folded_name", "created_at")
    annotated = matching.annotate(**COLUMNS["policies"].annotations)
    rows = list(annotated.order_by("folded_name")[: top + 1])
    shown = _overviews(rows[:top], about)
    if len(rows) <= top:
        return Listing(shown, len(rows), None)
    return Listing(shown, matching.count(), rows[top].folded_name)


def describe(table: Table) -> Overview:
    return _overviews([table], table)[0]


def _overviews(tables: Sequence[Table], about: Table | None) -> list[Overview]:
    known = background.sizes_of([table.pk for table in tables])
    counts = _counted(_smallest(known, about.pk if about else None), background.count_up_to)
    overviews = []
    for table in tables:
        size, count = known.get(table.pk, NOTHING), counts.get(table.pk, _COUNTED)
        is_exact = count < _COUNTED
        entities = count if is_exact else size.rows
        policies = getattr(table, "policy_count", None)
        overviews.append(Overview(table.name, table.created_at, entities, is_exact, size.capacity, policies))
    return overviews


def _smallest(known: Mapping[int, background.Size], about: int | None) -> dict[int, background.Size]:
    """Return the smallest tables, as many as each page can afford to count."""
    small = [(table_id, size) for table_id, size in known.items() if size.rows < _COUNTED]
    by_rows = sorted(small, key=lambda it: (it[0] != about, it[1].rows))
    sums = accumulate(size.rows for _, size in by_rows)
    return {
        table_id: size
        for (table_id, size), rows in zip(by_rows, sums, strict=True)
        if rows <= _COUNTED_TOGETHER
    }


def disk_usage(table: Table) -> background.DiskUsage:
    if not table.form.capabilities.is_measured_here:
        return background.DiskUsage(table.bytes_elsewhere)
    return background.disk_usage(table.pk)


def _counted(
    known: Mapping[int, background.Size],
    count: Callable[[Sequence[int], int], Statement[dict[int, T]]],
) -> dict[int, T]:
    """Count apparently small tables whose size this database can measure."""
    table_ids = [it for it, size in known.items() if size.rows < _COUNTED and size.is_measured_here]
    if not table_ids:
        return {}
    try:
        return sql.run_in_lane(count(table_ids, _COUNTED))
    except (TableNotFound, Canceled):  # one was just deleted, or the database is busy
        return {}
