"""Inferred schema of a table, from a sample of its entities, as tables have no declared schema."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from storage.domain.entities.entity import FIXED_SIZES
from storage.domain.errors import OperationTimedOut
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Table
from storage.sql import background
from storage.sql import django as sql
from storage.sql import schema as statements
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.sampling import samplings
from storage.sql.schema import KEYS, SchemaCounts, TypeCount
from storage.tables import table_list

_SAMPLES: Final = (2_000, 500)  # entities: 20 µs each; the smaller number if counting takes too long
_LIMIT: Final = timedelta(seconds=2)  # for each


@dataclass(frozen=True, slots=True)
class PropertyType:
    """Type of a property in so many sampled ``entities``; ``average_size`` and ``largest`` are value sizes in bytes."""

    type: Edm
    entities: int
    average_size: int
    largest: int
    examples: tuple[EdmValue, ...]

    @property
    def has_sizes(self) -> bool:
        """Return whether values of the type vary in size."""
        return self.type not in FIXED_SIZES


@dataclass(frozen=True, slots=True)
class SchemaProperty:
    """A property of a table's schema."""

    name: str
    types: tuple[PropertyType, ...]  # the most frequent first
    share: float  # share of the entities that have it
    distinct: int  # in the whole table, estimated from a sample

    @property
    def is_key(self) -> bool:
        return self.name in KEYS

    @property
    def is_mixed(self) -> bool:
        return len(self.types) > 1


@dataclass(frozen=True, slots=True)
class Schema:
    """Properties of ``entities`` out of about ``total``, keys first, then by share."""

    properties: tuple[SchemaProperty, ...]
    entities: int
    total: int
    is_whole: bool


def describe(table: Table) -> Schema:
    """Infer the schema of a table from a sample; raises OperationTimedOut if even the smallest takes too long."""
    rows = background.estimated_rows(table.pk)
    for sampling in samplings(rows, _SAMPLES):
        try:
            counts = sql.run_in_lane(statements.count(relation_of(table), sampling), limit=_LIMIT)
        except Canceled:
            continue
        is_whole = sampling.is_whole(counts.entities)
        total = counts.entities if is_whole else max(rows, counts.entities)
        properties = _properties(counts, total)
        if not is_whole:
            properties = tuple(_with_known_keys(it, table, total) for it in properties)
        return Schema(properties, counts.entities, total, is_whole)
    raise OperationTimedOut


def _with_known_keys(sampled: SchemaProperty, table: Table, total: int) -> SchemaProperty:
    """Replace the distinct keys of a sample by the partitions that other pages show, and the RowKeys of statistics.

    A sample takes whole disk pages, which hold few partitions each because rows are clustered by key.
    """
    known = None
    if sampled.name == "PartitionKey":
        known = table_list.sizes([table])[table.name].partitions
    elif sampled.name == "RowKey":
        known = background.row_keys_of(table.pk)
    return replace(sampled, distinct=min(total, sampled.distinct if known is None else known))


def _properties(counts: SchemaCounts, total: int) -> tuple[SchemaProperty, ...]:
    by_name: defaultdict[str, list[TypeCount]] = defaultdict(list)
    for count in sorted(counts.types, key=lambda count: -count.entities):
        by_name[count.name].append(count)
    properties = [
        SchemaProperty(
            name,
            tuple(map(_type, types)),
            sum(count.entities for count in types) / counts.entities,
            sum(_estimate_distinct(count, total / counts.entities) for count in types),
        )
        for name, types in by_name.items()
    ]
    return tuple(sorted(properties, key=lambda it: (not it.is_key, -it.share, it.name)))


def _type(count: TypeCount) -> PropertyType:
    return PropertyType(
        count.type,
        count.entities,
        _bytes(count, count.average_size),
        _bytes(count, count.largest),
        count.examples,
    )


def _bytes(count: TypeCount, size: int) -> int:
    """Return the bytes of a value from the size of its projected text."""
    if count.type is Edm.STRING:
        return size if count.name in KEYS else size - 1
    if count.type is Edm.BINARY:
        return (size - 1) // 2  # hexadecimal
    return FIXED_SIZES[count.type]


def _estimate_distinct(count: TypeCount, scale: float) -> int:
    """Estimate distinct values like PostgreSQL's ANALYZE (Haas and Stokes), from those seen once."""
    if scale <= 1:
        return count.distinct
    seen, once = count.entities, count.once
    return round(seen * count.distinct / (seen - once + once / scale))
