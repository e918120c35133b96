"""The design of a table: what its partitions, keys and kinds of entities are, and what its requests do."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.utils import timezone

from storage.design.advice import QueryUse, advise, exclude_copies, read_shape
from storage.design.findings import (
    Finding,
    PartitionTraffic,
    Weight,
    find_about_keys,
    find_about_kinds,
    find_about_partitions,
    find_about_queries,
)
from storage.design.keys import KeyName, KeyPattern, find_patterns
from storage.design.kinds import EntityKind, MixedProperty, count_types, find_kinds, find_mixed
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import OperationTimedOut, TableNotFound
from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.filters.ast import Filter
from storage.domain.values.edm import Edm
from storage.entities import schema
from storage.metrics import query_shapes, series
from storage.metrics.query_shapes import ShapeCount
from storage.models import Account, Table
from storage.sql import background
from storage.sql import design as statements
from storage.sql import django as sql
from storage.sql.design import Partitions
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.sampling import Sampling, samplings
from storage.sql.statement import Statement
from storage.tables import table_list

T = TypeVar("T")

_EXACT: Final = 300_000  # entities up to which all partitions are counted
_SAMPLED_ROWS: Final = (600, 100)  # the smaller number if counting takes too long
_SAMPLED_PAGES: Final = 12_000  # rows of the pages that they come from
_MOST: Final = 100_000  # entities of a partition that are counted
_KEYS: Final = (20_000, 2_000)
_SETS: Final = (4_000, 500)
_NEIGHBOURING, _AT_ENDS = 200, 10  # partitions whose first and last keys are examined, and their number
_MOST_SETS: Final = 200
_LIMIT: Final = timedelta(seconds=1)  # for each statement
_FEWEST, _MOST_DISTINCT = 3, 5_000  # different values of a property that serves as PartitionKey
_FEWEST_TOGETHER: Final = 10  # entities of a partition, on average
_DAYS: Final = 7
_KEPT: Final = 60.0  # seconds
_MOST_KEPT: Final = 200  # tables
_TABLES: Final = 20  # that are examined for the list of an account


@dataclass(frozen=True, slots=True)
class Shape:
    """Partitions, kinds of entities and mixed properties of a table; ``examined`` entities were read."""

    at: datetime
    partitions: Partitions
    kinds: Sequence[EntityKind]
    mixed: Sequence[MixedProperty]
    types: dict[str, Edm]  # the most frequent of each property
    examined: int
    candidate: str  # expression of a PartitionKey for a table of one partition; empty if none is known
    findings: Sequence[Finding]

    @property
    def is_whole(self) -> bool:
        """Return whether all entities were examined."""
        return self.examined >= self.partitions.entities


@dataclass(frozen=True, slots=True)
class Design:
    """Design of a table, with its findings: problems first."""

    table: Table
    shape: Shape
    queries: Sequence[QueryUse]
    traffic: PartitionTraffic
    writes_a_day: float
    findings: Sequence[Finding]

    @property
    def problems(self) -> int:
        return sum(finding.weight is Weight.PROBLEM for finding in self.findings)


_kept: dict[int, tuple[float, Shape]] = {}


def describe(table: Table) -> Design:
    """Examine a table and its requests; raises OperationTimedOut if even the smallest samples take too long."""
    now = timezone.now()
    shape = _shape_of(table)
    counts = query_shapes.read(table.pk, (now - timedelta(days=_DAYS)).date())
    queries = exclude_copies([_describe_query(count, shape, table.name) for count in counts])
    traffic = read_traffic(table.account_id, table.pk, now)
    findings = [
        *find_about_partitions(shape.partitions, traffic, shape.candidate),
        *find_about_queries(queries),
        *shape.findings,
    ]
    order = list(Weight)
    findings.sort(key=lambda it: order.index(it.weight))
    return Design(table, shape, queries, traffic, _writes_a_day(table, now), findings)


def _shape_of(table: Table) -> Shape:
    """Return what a table is, up to a minute old."""
    kept = _kept.get(table.pk)
    if kept is not None and kept[0] > time.monotonic() - _KEPT:
        return kept[1]
    shape = _examine(table)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[table.pk] = (time.monotonic(), shape)
    return shape


def _examine(table: Table) -> Shape:
    relation, rows = relation_of(table), background.estimated_rows(table.pk)
    partitions = _partitions(relation, rows)
    keys = _first(lambda sampling: statements.keys(relation, sampling), rows, _KEYS)
    sets = _first(lambda sampling: statements.property_sets(relation, sampling, _MOST_SETS), rows, _SETS)
    in_sets = sum(one.entities for one in sets)
    total = max(partitions.entities, len(keys))
    kinds, mixed = find_kinds(sets), find_mixed(sets)
    patterns = find_patterns(keys, _neighbours(relation, keys) if len(keys) < partitions.entities else ())
    longest: Mapping[KeyName, int] = {}
    if any(pattern.pattern is KeyPattern.UNPADDED for pattern in patterns):
        with suppress(Canceled):
            lengths = sql.run_in_lane(statements.longest_keys(relation), limit=_LIMIT)
            longest = dict(zip(KeyName, lengths, strict=True))
    findings = [
        *find_about_keys(patterns, total / len(keys) if keys else 0.0, longest),
        *find_about_kinds(kinds, mixed, total / in_sets if in_sets else 0.0),
    ]
    return Shape(
        timezone.now(),
        partitions,
        kinds,
        mixed,
        {name: types.most_common(1)[0][0] for name, types in count_types(sets).items()},
        min(len(keys), in_sets),
        _candidate(table, partitions.entities) if partitions.number == 1 else "",
        findings,
    )


def _neighbours(relation: str, keys: Sequence[EntityKey]) -> Sequence[EntityKey]:
    """Return more keys of some partitions of a sample, whose keys may all be of different partitions."""
    chosen = list(dict.fromkeys(key.partition_key for key in keys))[:_NEIGHBOURING]
    with suppress(Canceled):
        return sql.run_in_lane(statements.keys_at_ends(relation, chosen, _AT_ENDS), limit=_LIMIT)
    return ()


def _first(make: Callable[[Sampling], Statement[list[T]]], rows: int, limits: Sequence[int]) -> list[T]:
    """Run a statement on the largest of some samples that can be read within the time limit."""
    for sampling in samplings(rows, limits):
        try:
            return sql.run_in_lane(make(sampling), limit=_LIMIT)
        except Canceled:
            continue
    raise OperationTimedOut


def _partitions(relation: str, rows: int) -> Partitions:
    if rows <= _EXACT:
        try:
            return sql.run_in_lane(statements.partitions(relation), limit=_LIMIT)
        except Canceled:
            pass  # a sample then
    for number in _SAMPLED_ROWS:
        share = min(100.0, 100.0 * _SAMPLED_PAGES / max(rows, 1))
        statement = statements.sampled_partitions(relation, rows, share=share, rows=number, most=_MOST)
        try:
            return sql.run_in_lane(statement, limit=_LIMIT)
        except Canceled:
            continue
    raise OperationTimedOut


def _candidate(table: Table, entities: int) -> str:
    """Return a PartitionKey that would give a table many partitions of some size: a property of all entities."""
    most = min(_MOST_DISTINCT, entities // _FEWEST_TOGETHER)
    candidates: list[tuple[bool, int, str]] = []
    with suppress(OperationTimedOut):
        for one in schema.describe(table).properties:
            is_usable = (
                len(one.types) == 1 and one.types[0].type in (Edm.STRING, Edm.INT32) and not one.is_key
            )
            if is_usable and one.share >= 1 and _FEWEST <= one.distinct <= most:
                candidates.append((one.types[0].type is Edm.STRING, one.distinct, one.name))
    is_string, _distinct, name = max(candidates, default=(True, 0, ""))
    return name if is_string else f"string({name})"


def describe_filter(root: Filter, shape: Shape, table: Table) -> QueryUse:
    """Describe a query that need not have been sent."""
    count = ShapeCount(query_shapes.shape_of(root), plan_access(root).path, 0, 0, ())
    return _describe_query(count, shape, table.name)


def _describe_query(count: ShapeCount, shape: Shape, table: str) -> QueryUse:
    partitions = shape.partitions
    root = read_shape(count.shape)
    plan = plan_access(root)
    returned = round(count.entities / count.requests) if count.requests else 0
    is_known = root is not None or not count.shape
    read: int | None = None
    if is_known and plan.is_by_keys and not count.is_rest:
        # all that it reads is returned
        read = returned if count.requests else None
    elif count.path is AccessPath.TABLE_SCAN:
        read = partitions.entities
    elif count.path is AccessPath.PARTITION_SCAN and partitions.number:
        # large partitions may be asked for more often than others
        read = max(round(partitions.entities / partitions.number), returned)
    indexed = root is not None and not plan.is_by_keys and plan.index_candidates() is None
    return QueryUse(count, read, indexed, advise(count, shape.types, table))


def read_traffic(account_id: int, table_id: int, now: datetime) -> PartitionTraffic:
    """Return the busiest partition of a table in the last day; per second as the mean of a minute."""
    start = now.replace(second=0, microsecond=0) - series.DAY
    periods = [start + number * series.MINUTE for number in range(24 * 60 + 1)]
    minutes = series.read(account_id, table_id, periods, now + series.MINUTE, 1, with_frequent=True)
    total: Counter[str] = Counter()
    peaks: Counter[str] = Counter()
    for minute in minutes:
        for key, number in minute.partitions.counts.items():
            total[key] += number
            peaks[key] = max(peaks[key], number)
    requests = sum(minute.requests for minute in minutes)
    if not total or not requests:
        return PartitionTraffic(requests)
    [(key, number)] = total.most_common(1)
    return PartitionTraffic(requests, key, min(1.0, number / requests), peaks[key] / 60)


def _writes_a_day(table: Table, now: datetime) -> float:
    periods = [now - timedelta(days=_DAYS)]
    [counts] = series.read(table.account_id, table.pk, periods, now + series.MINUTE, series.QUARTER)
    writes = sum(
        traffic.requests
        for kind, traffic in counts.kinds.items()
        if kind.operation.startswith(("Insert", "Update", "Merge", "Delete", "EntityGroup"))
        and not kind.is_error
    )
    # a table may be younger
    days = (now - table.created_at) / series.DAY
    return writes / min(_DAYS, max(1.0, days))


@dataclass(frozen=True, slots=True)
class TableSummary:
    """Table with its most important findings, for the list of an account."""

    table: Table
    problems: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class AccountDesign:
    """Designs of the largest tables of an account; ``others`` were not examined."""

    tables: Sequence[TableSummary]
    others: int


def describe_account(account: Account, *, seconds: float = 2.0) -> AccountDesign:
    """Examine the largest tables of an account for some seconds; results of the last minute are used again."""
    deadline = time.monotonic() + seconds
    listing = table_list.largest(account, _TABLES)
    summaries: list[TableSummary] = []
    for table in listing.tables:
        if time.monotonic() > deadline:
            break
        with suppress(OperationTimedOut, TableNotFound):
            findings = describe(table).findings
            problems = [finding for finding in findings if finding.weight is Weight.PROBLEM]
            summaries.append(TableSummary(table, problems))
    return AccountDesign(summaries, listing.total - len(summaries))
