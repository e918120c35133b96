"""Entity queries, including filters without an index, within the time limit of a request."""

import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
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
from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.query import (
    PAGE_BYTES,
    EntityQuery,
    Page,
    Position,
    Sort,
    SortedPage,
    SortedPosition,
)
from storage.domain.values import dialects
from storage.domain.values.names import check_entity_key
from storage.history.past import Past, run_as_of
from storage.models import Table
from storage.sql import counts, pages, previews
from storage.sql import django as sql
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.statement import Lane, Statement
from storage.tables import adaptive_indexes
from storage.tables.adaptive_indexes import SlowQuery
from storage.tables.index_rules import COSTLY_SCAN
from storage.tables.indexes import indexed, using

T = TypeVar("T")
Steps = Generator[Statement[Any], Any, T]
# builds the statement of a page: of whole entities, or of previews for a grid
Read = Callable[[str, EntityQuery], Statement[Page[T]]]

COUNT_LIMIT: Final = timedelta(seconds=10)
SORT_LIMIT: Final = timedelta(seconds=5)
_MOMENT: Final = timedelta(milliseconds=60)
BUDGET: Final = 2.5  # seconds of walking; with the first attempt and the last window still under five
_FIRST_WINDOW: Final = 20_000  # rows
_WINDOW_SECONDS: Final = 0.4
_SMALLEST_WINDOW: Final = 100
_KEYS_AT_ONCE: Final = 50  # entities read together by their keys


def page(table: Table, wanted: EntityQuery, past: Past | None = None) -> Page[StoredEntity]:
    """Return a page of whole entities, read on Django's connection."""
    return _page(table, wanted, pages.page, past)


def preview_page(table: Table, wanted: EntityQuery, past: Past | None = None) -> Page[EntityPreview]:
    """Return a page of previews for a grid; long values are truncated so that the page is complete."""
    return _page(table, wanted, previews.page, past)


def sorted_preview_page(
    table: Table,
    query: EntityQuery,
    sort: Sort,
    start: SortedPosition | None = None,
    past: Past | None = None,
) -> SortedPage:
    """Return a grid page sorted by a property, reading all matches; raises OperationTimedOut."""
    if past is None:
        query = replace(query, indexed=indexed(table.pk))
    statement = previews.sorted_page(_relation(table, past), query, sort, start)
    with _noting_scans(table, query, sort, past):
        return run_as_of(statement, past, limit=SORT_LIMIT)


def _page(table: Table, entity_query: EntityQuery, read: Read[T], past: Past | None) -> Page[T]:
    entity_query = _using(table, entity_query, past)
    with _noting_scans(table, entity_query, past=past) as ends:
        steps = query(_relation(table, past), entity_query, time.monotonic, read)
        result = sql.walk(steps, partial(run_as_of, past=past))
        ends.append(result.next)
        return result


def _relation(table: Table, past: Past | None) -> str:
    """Return the relation that a statement reads."""
    return relation_of(table) if past is None else past.relation


def _using(table: Table, wanted: EntityQuery, past: Past | None) -> EntityQuery:
    """Add the usable indexes to a query, unless it reads the past."""
    return using(table, wanted) if past is None else wanted


@contextmanager
def _noting_scans(
    table: Table, query: EntityQuery, sort: Sort | None = None, past: Past | None = None
) -> Iterator[list[Position | None]]:
    """Count a costly query that an index would speed up; converts Canceled to OperationTimedOut."""
    ends: list[Position | None] = []
    began = time.perf_counter()
    try:
        yield ends
    except Canceled:
        raise OperationTimedOut from None
    finally:
        seconds = time.perf_counter() - began
        if seconds >= COSTLY_SCAN and past is None:
            names = plan_access(query.filter).index_candidates(query.indexed) or frozenset()
            ordering = {sort.property} - query.indexed if sort is not None else frozenset()
            end = ends[0] if ends else None
            adaptive_indexes.record(SlowQuery(table.pk, names | ordering, seconds, query, end, sort))


def all_pages(table: Table, query: EntityQuery, past: Past | None = None) -> Iterator[list[StoredEntity]]:
    """Yield all entities of a query in lazily read pages, without a time limit."""
    while True:
        result = page(table, query, past)
        yield result.entities
        if result.next is None:
            return
        query = replace(query, start=result.next)


def get_many(table: Table, keys: Collection[EntityKey], past: Past | None = None) -> list[StoredEntity]:
    """Return the existing entities among these keys, in key order."""
    steps = pages.get_many(_relation(table, past), keys)
    found = sql.walk(steps, partial(run_as_of, past=past))
    return [found[key] for key in sorted(found)]


def get_many_paged(
    table: Table, keys: Collection[EntityKey], past: Past | None = None
) -> Iterator[list[StoredEntity]]:
    """Yield the entities of these keys in small pages, as each may be as large as 1 MiB."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _KEYS_AT_ONCE):
        yield get_many(table, ordered[start : start + _KEYS_AT_ONCE], past)


@dataclass(frozen=True, slots=True)
class Total:
    """Number of entities that match a query; None if unknown."""

    number: int | None
    is_exact: bool = False


def total(table: Table, query: EntityQuery, past: Past | None = None, *, limit: timedelta = _MOMENT) -> Total:
    """Count the entities of a query, or return the planner's estimate if counting exceeds ``limit``."""
    try:
        return Total(count(table, query, past, limit=limit), is_exact=True)
    except OperationTimedOut:
        pass
    try:
        return Total(run_as_of(counts.estimate(_relation(table, past), _using(table, query, past)), past))
    except Canceled:
        return Total(None)


def count(
    table: Table, query: EntityQuery, past: Past | None = None, *, limit: timedelta = COUNT_LIMIT
) -> int:
    """Count the entities of a query; raises OperationTimedOut."""
    try:
        return run_as_of(counts.count(_relation(table, past), _using(table, query, past)), past, limit=limit)
    except Canceled:
        raise OperationTimedOut from None


def get(table: Table, key: EntityKey, past: Past | None = None) -> StoredEntity | None:
    """Return an entity with all properties; None also for an invalid key."""
    try:
        check_entity_key(*key, dialects.WIDEST)
        return run_as_of(pages.point(_relation(table, past), key, EntityQuery()), past)
    except (KeyValueTooLarge, OutOfRangeInput, ResourceNotFound, TableNotFound):
        return None
    except Canceled:
        raise OperationTimedOut from None


def query(
    relation: str,
    query: EntityQuery,
    clock: Callable[[], float],
    read: Read[T] = pages.page,  # type: ignore[assignment]
) -> Steps[Page[T]]:
    """Read a page of entities within the time limit.

    The planner's own plan is tried first. If it exceeds the lane's time limit, the keys are walked in windows; what
    was found when the budget is used up is the page, possibly empty, with a continuation token. The continuation of a
    query that no index supports is walked in windows from the start.
    """
    if query.top == 0:
        return Page([], None)
    if read is pages.page and pages.needs_bound(relation, query):
        return (yield from _read_bounded_page(relation, query))  # type: ignore[return-value]
    statement = read(relation, query)
    if query.start is not None and statement.lane is Lane.FILTER and not pages.is_indexed(query):
        return (yield from _walk(relation, query, clock, read))
    try:
        return (yield from _read_page(relation, query, statement))
    except Canceled:
        if statement.lane is Lane.KEY:
            raise
        return (yield from _walk(relation, query, clock, read))


def _read_page(relation: str, query: EntityQuery, statement: Statement[Page[T]]) -> Steps[Page[T]]:
    """Read a page; from the first large entity on, a second statement reads the rest within a size limit."""
    page: Page[Any] = yield statement
    if page.next is None or len(page.entities) == query.top:
        return page
    size = PAGE_BYTES - _size(page)
    beyond = replace(query, start=page.next, top=query.top - len(page.entities))
    rest: Page[Any] = yield pages.measured_page(relation, beyond, size)
    return Page(page.entities + rest.entities, rest.next)


def _size(page: Page[Any]) -> int:
    """Return the bytes of the entities of a page; previews are small."""
    return sum(len(stored.content) for stored in page.entities if isinstance(stored, StoredEntity))


def _read_bounded_page(relation: str, query: EntityQuery) -> Steps[Page[StoredEntity]]:
    """Read a page from several nodes, which send only entities before its likely end."""
    end = yield pages.likely_end(relation, query)
    bounded = replace(query, end=end or query.end)
    page = yield from _read_page(relation, bounded, pages.page(relation, bounded))
    missing = query.top - len(page.entities)
    if page.next is not None or end is None:
        return page
    if not missing:
        return Page(page.entities, end)
    size = PAGE_BYTES - _size(page)
    rest = yield pages.measured_page(relation, replace(query, start=end, top=missing), size)
    return Page(page.entities + rest.entities, rest.next)


def _walk(relation: str, query: EntityQuery, clock: Callable[[], float], read: Read[T]) -> Steps[Page[T]]:
    gathered: Page[T] = Page([], query.start)
    deadline = clock() + BUDGET
    window = _FIRST_WINDOW
    start = query.start
    size = 0  # bytes
    while True:
        began = clock()
        try:
            end: Position | None = yield pages.window_end(relation, replace(query, start=start), window)
            top = query.top - len(gathered.entities)
            rest = replace(query, start=start, end=end or query.end, top=top)
            page = yield from _read_page(relation, rest, read(relation, rest))
        except Canceled:
            if window <= _SMALLEST_WINDOW:
                raise
            window = max(window // 8, _SMALLEST_WINDOW)
            continue
        start = page.next or end
        gathered = Page(gathered.entities + page.entities, start)
        size += _size(page)
        if (
            start is None
            or page.next is not None
            or len(gathered.entities) >= query.top
            or size >= PAGE_BYTES
            or clock() > deadline
        ):
            return gathered
        # a window that takes about _WINDOW_SECONDS, at most four times as large
        growth = min(4.0, _WINDOW_SECONDS / max(clock() - began, 0.001))
        window = max(_SMALLEST_WINDOW, int(window * growth))
