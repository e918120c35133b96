"""Facets: frequent values of properties with few distinct values, from a sample of matching entities."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import EdmValue
from storage.models import Table
from storage.sql import django as sql
from storage.sql import facets as statements
from storage.sql.background import estimated_rows
from storage.sql.facets import Counts
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.tables.indexes import using

_LIMIT: Final = timedelta(milliseconds=800)  # for each of two attempts
_SAMPLE: Final = 5_000  # matching entities
_SPREAD_SAMPLE: Final = 50_000  # entities out of the whole table, in case the first matches are not typical
_SPREAD_MINIMUM: Final = 200  # matches that make the spread sample usable
_VALUES_LIMIT: Final = 50  # different values of a property that becomes a facet
_NO_VALUES_LIMIT: Final = 1_000_000  # for properties asked for by name
_ENTITIES_PER_VALUE: Final = 2  # at least, on average


@dataclass(frozen=True, slots=True)
class Facet:
    """The most frequent values of a property."""

    name: str
    values: tuple[tuple[EdmValue, int], ...]  # with their counts
    distinct: int  # the number of values
    entities: int  # the number of counted entities
    is_sample: bool


def facets(table: Table, entity_query: EntityQuery, names: tuple[str, ...] | None = None) -> list[Facet]:
    """Return the facets of ``names``, or of all low-cardinality properties; none if counting takes too long."""
    query = replace(using(table, entity_query), start=None, end=None)
    counted = _count(table, query, names, share=100.0)
    is_sample = counted is None or counted.entities >= _SAMPLE
    if is_sample:
        spread = _count(
            table, query, names, share=min(99.0, 100.0 * _SPREAD_SAMPLE / estimated_rows(table.pk))
        )
        counted = spread if counted is None or (spread and spread.entities >= _SPREAD_MINIMUM) else counted
    if counted is None or not counted.entities:
        return []
    facets = []
    for name, group in groupby(counted.counts, lambda count: count.name):
        counts = list(group)
        values = tuple((count.value, count.entities) for count in counts)
        facets.append(Facet(name, values, counts[0].distinct, counted.entities, is_sample))
    if names is not None:
        return sorted(facets, key=lambda facet: names.index(facet.name))
    return sorted(filter(_tells_apart, facets), key=lambda facet: (facet.distinct, facet.name))


def _count(table: Table, query: EntityQuery, names: tuple[str, ...] | None, *, share: float) -> Counts | None:
    kinds = _VALUES_LIMIT if names is None else _NO_VALUES_LIMIT
    statement = statements.count(
        relation_of(table), query, names=names, kinds=kinds, share=share, limit=_SAMPLE
    )
    try:
        return sql.run_in_lane(statement, limit=_LIMIT)
    except (Canceled, StorageError):
        return None


def _tells_apart(facet: Facet) -> bool:
    """Return whether the values divide the entities into groups."""
    is_constant = facet.distinct == 1 and facet.values[0][1] == facet.entities
    return not is_constant and facet.distinct * _ENTITIES_PER_VALUE <= facet.entities
