"""Query Entities, for whoever asks: how a filter that no index serves is answered within its time."""

import time
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import (
    KeyValueTooLarge,
    OperationTimedOut,
    OutOfRangeInput,
    ResourceNotFound,
    TableNotFound,
)
from storage.domain.filters.query import EntityQuery, Page, Position, Sort, SortedPage, SortedPosition
from storage.domain.values.names import check_key
from storage.models import Table
from storage.sql import counts, pages, previews
from storage.sql import django as sql
from storage.sql.failures import Canceled
from storage.sql.relations import relation_name
from storage.sql.statement import Lane, Statement

T = TypeVar("T")
Steps = Generator[Statement[Any], Any, T]
# what a page of a relation is made of: whole entities, or what a grid shows of them
Read = Callable[[str, EntityQuery], Statement[Page[T]]]

COUNT_LIMIT: Final = timedelta(seconds=10)
SORT_LIMIT: Final = timedelta(seconds=5)
_MOMENT: Final = timedelta(milliseconds=60)
BUDGET: Final = 2.5  # seconds of walking; with the first attempt and the last window still under five
_FIRST_WINDOW: Final = 20_000  # rows
_WINDOW_SECONDS: Final = 0.4
_SMALLEST_WINDOW: Final = 100
_PAGED: Final = 50  # entities that are read at once by their keys


def page(table: Table, wanted: EntityQuery) -> Page[StoredEntity]:
    """A page of entities for whoever waits for it, on Django's own connection."""
    return _page(table, wanted, pages.page)


def preview_page(table: Table, wanted: EntityQuery) -> Page[EntityPreview]:
    """A page as a grid shows it: what is long is cut, and so a page is as long as was asked for."""
    return _page(table, wanted, previews.page)


def sorted_preview_page(
    table: Table, wanted: EntityQuery, sort: Sort, start: SortedPosition | None = None
) -> SortedPage:
    """As preview_page, in the order of a property: all that match are looked at. Raises OperationTimedOut."""
    try:
        return sql.run_in_lane(
            previews.sorted_page(relation_name(table.pk), wanted, sort, start), limit=SORT_LIMIT
        )
    except Canceled:
        raise OperationTimedOut from None


def _page(table: Table, wanted: EntityQuery, read: Read[T]) -> Page[T]:
    try:
        return sql.walk(query(relation_name(table.pk), wanted, time.monotonic, read), sql.run_in_lane)
    except Canceled:
        raise OperationTimedOut from None


def all_pages(table: Table, wanted: EntityQuery) -> Iterator[list[StoredEntity]]:
    """All that a query finds, in pages, however long it takes; each entity as it is when its page is read."""
    while True:
        found = page(table, wanted)
        yield found.entities
        if found.next is None:
            return
        wanted = replace(wanted, start=found.next)


def get_many(table: Table, keys: Collection[EntityKey]) -> list[StoredEntity]:
    """The entities of these keys that exist, by key."""
    found = sql.run_in_lane(pages.get_many(relation_name(table.pk), keys))
    return [found[key] for key in sorted(found)]


def get_many_paged(table: Table, keys: Collection[EntityKey]) -> Iterator[list[StoredEntity]]:
    """As some, in pages: each of the entities may be as large as an entity can be."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _PAGED):
        yield get_many(table, ordered[start : start + _PAGED])


@dataclass(frozen=True, slots=True)
class Total:
    """How many entities a query finds; None when nobody knows."""

    number: int | None
    is_exact: bool = False


def total(table: Table, wanted: EntityQuery) -> Total:
    """Counted when that takes a moment, else what the planner expects."""
    try:
        return Total(count(table, wanted, limit=_MOMENT), is_exact=True)
    except OperationTimedOut:
        return Total(_expected(table, wanted))


def _expected(table: Table, wanted: EntityQuery) -> int | None:
    try:
        return sql.run_in_lane(counts.estimate(relation_name(table.pk), wanted))
    except Canceled:
        return None


def count(table: Table, wanted: EntityQuery, *, limit: timedelta = COUNT_LIMIT) -> int:
    """How many entities a query finds, one by one; raises OperationTimedOut."""
    try:
        return sql.run_in_lane(counts.count(relation_name(table.pk), wanted), limit=limit)
    except Canceled:
        raise OperationTimedOut from None


def get(table: Table, key: EntityKey) -> StoredEntity | None:
    """Query Entity, whole; None also for a key that no entity can have."""
    try:
        check_key("PartitionKey", key.partition_key)
        check_key("RowKey", key.row_key)
        return sql.run_in_lane(pages.point(relation_name(table.pk), key, EntityQuery()))
    except (KeyValueTooLarge, OutOfRangeInput, ResourceNotFound, TableNotFound):
        return None
    except Canceled:
        raise OperationTimedOut from None


def query(
    relation: str,
    wanted: EntityQuery,
    clock: Callable[[], float],
    read: Read[T] = pages.page,  # type: ignore[assignment]
) -> Steps[Page[T]]:
    """A page of entities.

    The planner's own way is tried first. If it runs into the lane's time limit, the keys are walked in windows; what
    was found when the time is up is the page, with a continuation token even if that is nothing. A page that goes on
    where another ended, and that no index helps, is walked at once.
    """
    if wanted.top == 0:
        return Page([], None)
    statement = read(relation, wanted)
    if wanted.start is not None and statement.lane is Lane.FILTER and not pages.is_indexed(wanted):
        return (yield from _walk(relation, wanted, clock, read))
    try:
        page: Page[T] = yield statement
    except Canceled:
        if statement.lane is Lane.KEY:
            raise
        return (yield from _walk(relation, wanted, clock, read))
    return page


def _walk(relation: str, wanted: EntityQuery, clock: Callable[[], float], read: Read[T]) -> Steps[Page[T]]:
    found: Page[T] = Page([], wanted.start)
    deadline = clock() + BUDGET
    window = _FIRST_WINDOW
    start = wanted.start
    while True:
        began = clock()
        try:
            end: Position | None = yield pages.window_end(relation, replace(wanted, start=start), window)
            top = wanted.top - len(found.entities)
            rest = replace(wanted, start=start, end=end or wanted.end, top=top)
            page: Page[T] = yield read(relation, rest)
        except Canceled:
            if window <= _SMALLEST_WINDOW:
                raise
            window = max(window // 8, _SMALLEST_WINDOW)
            continue
        start = page.next or end
        found = Page(found.entities + page.entities, start)
        if start is None or page.next is not None or len(found.entities) >= wanted.top or clock() > deadline:
            return found
        window = _grown(window, clock() - began)


def _grown(window: int, seconds: float) -> int:
    """A window that takes about its share of time; at most four times the one before."""
    return max(_SMALLEST_WINDOW, int(window * min(4.0, _WINDOW_SECONDS / max(seconds, 0.001))))
