"""Properties and types of a table's entities, from a sample as tables have no schema."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from storage.domain.errors import OperationTimedOut, StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm
from storage.editing.filters.diagnostics import Schema
from storage.history.past import Past, run_as_of
from storage.models import Table
from storage.sql import background, counts, pages
from storage.sql import django as sql
from storage.sql.counts import Occurrence, Sample, TypeUse
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.sampling import samplings
from storage.sql.statement import Statement

T = TypeVar("T")

# entities; the next smaller number if reading them exceeds the time limit of a statement
_SAMPLES: Final = (20_000, 1_000, 50)
_WINDOW: Final = 10_000  # entities
_KEPT: Final = 30.0  # seconds
_MOST_KEPT: Final = 200  # tables


@dataclass(frozen=True, slots=True)
class Property:
    """Property with its types, most frequent first, and the ``share`` of sampled entities that have it."""

    name: str
    types: tuple[Edm, ...]
    share: float


@dataclass(frozen=True, slots=True)
class PropertySample:
    """The properties of some or all entities of a table, by name."""

    properties: tuple[Property, ...]
    entities: int
    is_whole: bool

    @property
    def schema(self) -> Schema:
        return Schema({it.name: it.types for it in self.properties}, self.is_whole)


EMPTY: Final = PropertySample((), 0, is_whole=False)
_kept: dict[tuple[int, bool], tuple[float, PropertySample]] = {}


def sample(table: Table, *, quickly: bool = False) -> PropertySample:
    """Return the properties, cached for half a minute; ``quickly`` reduces the sample for use while typing."""
    now = time.monotonic()
    for is_quick in (False, quickly):
        kept = _kept.get((table.pk, is_quick))
        if kept is not None and kept[0] > now - _KEPT:
            return kept[1]
    result = _look(table, _SAMPLES[1:] if quickly else _SAMPLES)
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[table.pk, quickly] = (now, result)
    return result


def names(table: Table, wanted: EntityQuery, past: Past | None = None) -> list[str]:
    """Return the property names of all entities of a query, without a time limit."""
    return sorted({name for found in _in_windows(table, wanted, past, counts.names) for name in found})


def types(table: Table, query: EntityQuery, past: Past | None = None) -> list[TypeUse]:
    """Return the types of the properties of all entities of a query, by name, without a time limit."""
    known: dict[tuple[str, Edm], TypeUse] = {}
    for uses in _in_windows(table, query, past, counts.types):
        for use in uses:
            before = known.get((use.name, use.type), use)
            known[use.name, use.type] = use._replace(
                is_micro=use.is_micro and before.is_micro, is_near=use.is_near and before.is_near
            )
    return [known[key] for key in sorted(known)]


def _in_windows(
    table: Table,
    query: EntityQuery,
    past: Past | None,
    statement: Callable[[str, EntityQuery], Statement[list[T]]],
) -> Iterator[list[T]]:
    """Run a statement on windows of a query's entities, each within the time limit."""
    relation = relation_of(table)
    rows = _WINDOW
    start = query.start
    while True:
        window = replace(query, start=start)
        try:
            end = run_as_of(pages.window_end(relation, window, rows), past)
            result = run_as_of(statement(relation, replace(window, end=end or query.end)), past)
        except Canceled:
            if rows == 1:
                raise OperationTimedOut from None
            rows = max(1, rows // 8)
            continue
        yield result
        if end is None:
            return
        start = end


def _look(table: Table, limits: Sequence[int]) -> PropertySample:
    rows = background.estimated_rows(table.pk)
    for sampling in samplings(rows, limits):
        try:
            sample = sql.run_in_lane(counts.sample(relation_of(table), sampling))
        except Canceled:
            continue
        except StorageError:
            return EMPTY
        return _catalogue(sample, is_whole=sampling.is_whole(sample.entities))
    return EMPTY


def _catalogue(sample: Sample, *, is_whole: bool) -> PropertySample:
    by_name: dict[str, list[Occurrence]] = {}
    for occurrence in sorted(sample.occurrences, key=lambda it: -it.entities):
        by_name.setdefault(occurrence.name, []).append(occurrence)
    properties = tuple(
        Property(
            name,
            tuple(occurrence.type for occurrence in occurrences),
            sum(occurrence.entities for occurrence in occurrences) / sample.entities,
        )
        for name, occurrences in sorted(by_name.items())
    )
    return PropertySample(properties, sample.entities, is_whole)
