"""Row estimates by PostgreSQL's planner, and samples for numbers that it cannot know."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.query import EntityQuery, Position
from storage.sql import explained, pages, walks
from storage.sql.counts import planned_rows
from storage.sql.indexes import is_property_index
from storage.sql.long_keys import is_child
from storage.sql.statement import Lane, Result, Statement, integer_at
from storage.sql.walks import Binder


class ScanKind(StrEnum):
    """Methods by which PostgreSQL finds rows."""

    KEYS = "keys"
    PROPERTIES = "properties"  # by the index on the values of all properties
    INDEX = "index"  # by the index of a property
    NOTHING = "nothing"  # by reading all rows


class Plan(NamedTuple):
    """Plan of a query, in row estimates."""

    matching: int
    looked_at: int | None  # rows fetched and tested; None if the plan does not tell
    scan_kind: ScanKind


def plan(relation: str, query: EntityQuery) -> Statement[Plan]:
    """Return the plan of the statement for a page."""
    page = pages.page(relation, query)
    return Statement(f"EXPLAIN (FORMAT json) {page.text}", page.parameters, page.lane, _read_plan)


def _read_plan(result: Result) -> Plan:
    plan, times = explained.read(result)
    nodes = list(_nodes(plan))
    limit = next((node for node in nodes if node["Node Type"] == "Limit"), None)
    if limit is None:  # the planner sees that nothing can match
        return Plan(0, 0, ScanKind.KEYS)
    walk = limit["Plans"][0]
    scans = [node for node in _nodes(walk) if "Scan" in node["Node Type"]]
    kind = _scan_kind([node["Index Name"] for node in scans if "Index Name" in node])
    # bitmap scans tell how many rows they fetch; plans of other scans contain only what passes the filter
    bitmaps = [node for node in scans if node["Node Type"] == "Bitmap Heap Scan"]
    looked_at = sum(int(node["Plans"][0]["Plan Rows"]) for node in bitmaps) * times if bitmaps else None
    if kind is ScanKind.INDEX and not bitmaps:
        looked_at = int(walk["Plan Rows"]) * times
    return Plan(int(walk["Plan Rows"]) * times, looked_at, kind)


def _scan_kind(indexes: list[str]) -> ScanKind:
    if not indexes:
        return ScanKind.NOTHING
    if any(is_property_index(name) for name in indexes):
        return ScanKind.INDEX
    # the index of a shard has its number behind its name
    return ScanKind.KEYS if all("_pkey" in name for name in indexes) else ScanKind.PROPERTIES


def _nodes(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a plan, except those on entities with long keys."""
    if is_child(root.get("Relation Name", "")):
        return
    yield root
    for child in root.get("Plans", ()):
        yield from _nodes(child)


def rows_read(
    relation: str, query: EntityQuery, end: Position | None, rows: int
) -> Generator[Statement[Any], Any, int]:
    """Estimate the rows read for a page up to ``end``, of ``rows`` in its relation."""
    if query.start is None:
        expected: Plan = yield plan(relation, query)
        if expected.looked_at is not None:
            return expected.looked_at
        if expected.scan_kind is ScanKind.NOTHING:
            return rows
    covered: int = yield in_range(relation, replace(query, end=end or query.end))
    return min(covered, rows)


def in_range(relation: str, query: EntityQuery) -> Statement[int]:
    """Return the statement for the planner's row estimate of a query's key range."""
    binder = Binder()
    return planned_rows(relation, walks.keys(query, binder), binder)


def matching(relation: str, query: EntityQuery, *, limit: int) -> Statement[int]:
    """Count the matching rows, up to ``limit``."""
    binder = Binder()
    walk = walks.walk(query, binder)
    text = f"SELECT count(*) FROM (SELECT 1 FROM {relation} WHERE {walk.condition} LIMIT {limit}) AS found"
    return binder.statement(text, walk.lane, lambda result: integer_at(result, 0, 0))


class Sample(NamedTuple):
    rows: int
    matching: int


_SAMPLE: Final = """
SELECT count(*), count(*) FILTER (WHERE {tested})
FROM (SELECT * FROM {relation} {sampling} WHERE {condition} LIMIT {limit}) AS sample
"""


def sample(relation: str, query: EntityQuery, *, share: float, limit: int) -> Statement[Sample]:
    """Count the matches in up to ``limit`` rows of the key range, from ``share`` percent of the pages."""
    binder = Binder()
    condition = walks.keys(query, binder)
    residual = plan_access(query.filter).bounds.residual
    text = _SAMPLE.format(
        tested="true" if residual is None else binder.bind_filter(residual, query.indexed),
        relation=relation,
        # always the same pages, so that an estimate changes only with the filter
        sampling=f"TABLESAMPLE SYSTEM ({share:.6f}) REPEATABLE (0)" if share < 100 else "",
        condition=condition,
        limit=limit,
    )
    return binder.statement(
        text, Lane.FILTER, lambda result: Sample(integer_at(result, 0, 0), integer_at(result, 0, 1))
    )
