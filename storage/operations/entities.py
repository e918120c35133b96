"""Query Entities, for whoever asks: how a filter that no index serves is answered within its time."""

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final

from storage.domain.entity import EntityKey, StoredEntity
from storage.domain.errors import (
    KeyValueTooLarge,
    OperationTimedOut,
    OutOfRangeInput,
    ResourceNotFound,
    TableNotFound,
)
from storage.domain.names import check_key
from storage.domain.query import EntityQuery, Page, Position
from storage.models import Table
from storage.sql import django as sql
from storage.sql import pages
from storage.sql.failures import Canceled
from storage.sql.relations import relation_name
from storage.sql.statement import Lane, Statement

Steps = Generator[Statement[Any], Any, Page]

BUDGET: Final = 2.5  # seconds of walking; with the first attempt and the last window still under five
_FIRST_WINDOW: Final = 20_000  # rows
_WINDOW_SECONDS: Final = 0.4
_SMALLEST_WINDOW: Final = 100


def page(table: Table, wanted: EntityQuery) -> Page:
    """A page of entities for whoever waits for it, on Django's own connection."""
    try:
        return sql.walk(query(relation_name(table.pk), wanted, time.monotonic), sql.run_in_lane)
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


def query(relation: str, wanted: EntityQuery, clock: Callable[[], float]) -> Steps:
    """A page of entities.

    The planner's own way is tried first. If it runs into the lane's time limit, the keys are walked in windows; what
    was found when the time is up is the page, with a continuation token even if that is nothing. A page that goes on
    where another ended, and that no index helps, is walked at once.
    """
    if wanted.top == 0:
        return Page([], None)
    statement = pages.page(relation, wanted)
    if wanted.start is not None and statement.lane is Lane.FILTER and not pages.is_indexed(wanted):
        return (yield from _walk(relation, wanted, clock))
    try:
        page: Page = yield statement
    except Canceled:
        if statement.lane is Lane.KEY:
            raise
        return (yield from _walk(relation, wanted, clock))
    return page


def _walk(relation: str, wanted: EntityQuery, clock: Callable[[], float]) -> Steps:
    found = Page([], wanted.start)
    deadline = clock() + BUDGET
    window = _FIRST_WINDOW
    start = wanted.start
    while True:
        began = clock()
        try:
            end: Position | None = yield pages.window_end(relation, replace(wanted, start=start), window)
            top = wanted.top - len(found.entities)
            rest = replace(wanted, start=start, end=end or wanted.end, top=top)
            page: Page = yield pages.page(relation, rest)
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
