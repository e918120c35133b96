"""Which values are frequent among the entities that a query finds, of properties that have few: by a sample."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import EdmValue
from storage.models import Table
from storage.sql import background
from storage.sql import django as sql
from storage.sql import facets as statements
from storage.sql.facets import Count, Counts
from storage.sql.failures import Canceled
from storage.sql.relations import relation_name

_LIMIT: Final = timedelta(milliseconds=800)  # of each of two attempts
_SAMPLE: Final = 5_000  # entities
_LOOKED_AT: Final = 50_000  # entities of the table, where the first that match are not like the others
_ENOUGH: Final = 200  # of these that match
_KINDS: Final = 50  # values of a property that is worth a facet
_ANY: Final = 1_000_000  # of one that is asked for
_SHARE: Final = 2  # entities to a value at least, or it is no category


@dataclass(frozen=True, slots=True)
class Facet:
    """The most frequent ``values`` with how many of the ``entities`` have them; ``distinct`` is how many there are."""

    name: str
    values: tuple[tuple[EdmValue, int], ...]
    distinct: int
    entities: int
    is_sample: bool


def facets(table: Table, wanted: EntityQuery, names: tuple[str, ...] | None = None) -> list[Facet]:
    """Of all properties that have few values, or of ``names`` as they are given; nothing where it takes too long."""
    query = replace(wanted, start=None, end=None)
    found = _count(table, query, names, share=100.0)
    is_sample = found is None or found.entities >= _SAMPLE
    if is_sample:
        spread = _count(table, query, names, share=_share(table))
        found = spread if found is None or (spread and spread.entities >= _ENOUGH) else found
    if found is None or not found.entities:
        return []
    facets = [_facet(list(counts), found.entities, is_sample) for _, counts in groupby(found.counts, _name)]
    if names is not None:
        return sorted(facets, key=lambda facet: names.index(facet.name))
    return sorted(filter(_tells_apart, facets), key=lambda facet: (facet.distinct, facet.name))


def _count(table: Table, query: EntityQuery, names: tuple[str, ...] | None, *, share: float) -> Counts | None:
    kinds = _KINDS if names is None else _ANY
    statement = statements.count(
        relation_name(table.pk), query, names=names, kinds=kinds, share=share, limit=_SAMPLE
    )
    try:
        return sql.run_in_lane(statement, limit=_LIMIT)
    except (Canceled, StorageError):
        return None


def _share(table: Table) -> float:
    rows = max(1, background.sizes_of([table.pk]).get(table.pk, background.Size(0, 0)).rows)
    return min(99.0, 100.0 * _LOOKED_AT / rows)


def _name(count: Count) -> str:
    return count.name


def _facet(counts: list[Count], entities: int, is_sample: bool) -> Facet:
    first = counts[0]
    values = tuple((count.value, count.entities) for count in counts)
    return Facet(first.name, values, first.distinct, entities, is_sample)


def _tells_apart(facet: Facet) -> bool:
    """Whether there are several values, and fewer than entities."""
    is_everywhere_the_same = facet.distinct == 1 and facet.values[0][1] == facet.entities
    return not is_everywhere_the_same and facet.distinct * _SHARE <= facet.entities
