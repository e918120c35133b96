"""The tables of an account as people list them: what is known at once, and what is looked at a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Q

from storage.domain.errors import TableNotFound
from storage.models import Table
from storage.sql import background
from storage.sql import django as sql
from storage.sql.failures import Canceled

PAGE: Final = 100
_COUNTED: Final = 2000  # entities; a larger table is estimated


@dataclass(frozen=True, slots=True)
class Listing:
    """``tables`` have their number of stored access policies as ``policy_count``; none is opened for this."""

    tables: list[Table]
    total: int  # of those that match
    next: str | None  # the folded name the next page starts with


@dataclass(frozen=True, slots=True)
class Size:
    """Estimates unless exact; ``bytes`` on the disk, with indexes; ``partitions`` None while nobody knows."""

    entities: int
    is_exact: bool
    bytes: int
    partitions: int | None


@dataclass(frozen=True, slots=True)
class Parts:
    """Bytes on the disk of what a table is made of."""

    entities: int
    key_index: int
    property_index: int


def page(
    account_id: int, *, containing: str = "", tag: str = "", start: str = "", top: int = PAGE
) -> Listing:
    """By name: the tables whose name contains a text in any letter case, or that have it for a tag."""
    # tables have ASCII names, so that lower() means the same in every language
    matching = Table.objects.own().filter(
        Q(folded_name__contains=containing.lower()) | Q(tags__contains=[containing]), account_id=account_id
    )
    if tag:
        matching = matching.filter(tags__contains=[tag])
    rows = list(
        matching.filter(folded_name__gte=start)
        .order_by("folded_name")
        .annotate(policy_count=Count("policies"))[: top + 1]
    )
    return Listing(rows[:top], matching.count(), rows[top].folded_name if len(rows) > top else None)


def tags(account_id: int, most: int = 100) -> list[str]:
    """Those in use, by name."""
    used = Table.objects.own().filter(account_id=account_id).exclude(tags=[]).values_list("tags", flat=True)
    return sorted({tag for found in used for tag in found}, key=str.casefold)[:most]


def sizes(tables: Sequence[Table]) -> dict[str, Size]:
    """By name. Small tables are counted: of those the statistics know nothing yet."""
    known = background.sizes_of([table.pk for table in tables])
    counts = _count([pk for pk, size in known.items() if size.rows < _COUNTED])
    large = [pk for pk in known if pk not in counts]
    partitions = background.partitions_of(large) if large else {}
    return {
        table.name: _size(
            known.get(table.pk, background.Size(0, 0)), counts.get(table.pk), partitions.get(table.pk)
        )
        for table in tables
    }


def parts(table: Table) -> Parts:
    return Parts(*background.parts_of(table.pk))


def _count(table_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Entities and partitions of the tables that are as small as they seem."""
    if not table_ids:
        return {}
    try:
        found = sql.run_in_lane(background.partitions_up_to(table_ids, _COUNTED))
    except (TableNotFound, Canceled):  # one was deleted just now, or the database is busy
        return {}
    return {table_id: counts for table_id, counts in found.items() if counts[0] < _COUNTED}


def _size(size: background.Size, counts: tuple[int, int] | None, partitions: int | None) -> Size:
    if counts is not None:
        return Size(counts[0], is_exact=True, bytes=size.capacity, partitions=counts[1])
    return Size(size.rows, is_exact=False, bytes=size.capacity, partitions=partitions)
