"""Condition and order of a query: a key range and a filter."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.ast import Filter, Operator
from storage.domain.filters.keys import Bound, KeyBounds, KeyInterval, key_range
from storage.domain.filters.query import EntityQuery, Position
from storage.sql import arrays
from storage.sql.filters import compile
from storage.sql.statement import Lane, Result, Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Walk:
    condition: str
    order: str
    lane: Lane


class Binder:
    """Collector of parameters that returns their placeholders."""

    def __init__(self) -> None:
        self.parameters: list[str | bytes | None] = []

    def bind(self, value: str) -> str:
        self.parameters.append(value)
        return f"${len(self.parameters)}"

    def bind_texts(self, values: Iterable[str]) -> str:
        """Bind an array."""
        self.parameters.append(arrays.texts(values))
        return f"${len(self.parameters)}"

    def bind_filter(self, root: Filter, indexed: Collection[str]) -> str:
        """Compile a filter and return its condition."""
        compiled = compile(root, len(self.parameters) + 1, indexed)
        self.parameters += compiled.parameters
        return compiled.text

    def statement(self, text: str, lane: Lane, read: Callable[[Result], T]) -> Statement[T]:
        return Statement(text, tuple(self.parameters), lane, read)


def walk(query: EntityQuery, binder: Binder) -> Walk:
    access = plan_access(query.filter)
    bounds = access.bounds
    conditions = _key_conditions(bounds, query.start, query.end, binder)
    if bounds.residual is not None:
        conditions.append(binder.bind_filter(bounds.residual, query.indexed))
    return Walk(
        condition=" AND ".join(conditions) or "true",
        # inside one partition the planner would sort by both, not knowing beyond LIMIT that the first is constant
        order="pk, rk" if bounds.partition.single is None else "rk",
        lane=Lane.KEY if access.is_by_keys else Lane.FILTER,
    )


def keys(query: EntityQuery, binder: Binder) -> str:
    """Return the condition on the keys."""
    return " AND ".join(_key_conditions(key_range(query.filter), query.start, query.end, binder)) or "true"


def _key_conditions(
    bounds: KeyBounds, start: Position | None, end: Position | None, binder: Binder
) -> list[str]:
    """Return conditions that the primary key index supports as a range."""
    partition = bounds.partition
    if bounds.is_empty or (start is not None and end is not None and start >= end):
        return ["false"]
    if partition.single is not None:
        return _in_partition(partition.single, bounds.row, start, end, binder)
    conditions = []
    if start is not None and not _is_below(start, partition.lower):
        conditions.append(f"(pk, rk) >= ({binder.bind(start.partition_key)}, {binder.bind(start.row_key)})")
        conditions += _interval("pk", replace(partition, lower=None), binder)
    else:
        conditions += _interval("pk", partition, binder)
    if end is not None:
        conditions.append(f"(pk, rk) < ({binder.bind(end.partition_key)}, {binder.bind(end.row_key)})")
    return conditions


def _in_partition(
    only: str, row: KeyInterval, start: Position | None, end: Position | None, binder: Binder
) -> list[str]:
    if start is not None and start.partition_key >= only:
        if start.partition_key > only:
            return ["false"]
        row = row.narrowed(Operator.GE, start.row_key)
    if end is not None and end.partition_key <= only:
        if end.partition_key < only:
            return ["false"]
        row = row.narrowed(Operator.LT, end.row_key)
    if row.is_empty:
        return ["false"]
    return [f"pk = {binder.bind(only)}", *_interval("rk", row, binder)]


def _is_below(start: Position, lower: Bound | None) -> bool:
    """Return whether the position is before the lower bound of partition keys."""
    if lower is None:
        return False
    return start.partition_key < lower.key or (start.partition_key == lower.key and not lower.inclusive)


def _interval(column: str, interval: KeyInterval, binder: Binder) -> list[str]:
    conditions = []
    if interval.lower is not None:
        conditions.append(
            f"{column} {'>=' if interval.lower.inclusive else '>'} {binder.bind(interval.lower.key)}"
        )
    if interval.upper is not None:
        conditions.append(
            f"{column} {'<=' if interval.upper.inclusive else '<'} {binder.bind(interval.upper.key)}"
        )
    return conditions
