"""Comparison of two accounts or tables, present or past: entities, policies, properties and descriptions."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from storage.compare.side_names import SideName
from storage.compare.sides import Side, SideNotFound, SideTable
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.entities.moments import Moment
from storage.domain.refusals import Reason
from storage.domain.values import encoding
from storage.domain.values.edm import EdmValue, write_datetime
from storage.domain.values.kinds import AccountKind
from storage.editing.comparison import PropertyDifference
from storage.editing.comparison import compare as compare_properties
from storage.editing.merge import Properties
from storage.history import past
from storage.models import Table
from storage.sql import comparing as statements
from storage.sql import django as sql
from storage.sql import snapshots
from storage.sql.comparing import Changed, Image, Pair, Since
from storage.sql.comparing import Counts as Counts
from storage.sql.comparing import DifferingEntity as DifferingEntity
from storage.sql.restoring import Images

ALL_KINDS: Final = frozenset(DifferenceKind)
COUNT_LIMIT: Final = timedelta(seconds=60)
PAGE_LIMIT: Final = timedelta(seconds=60)
_WALK: Final = 1_000  # entities of a page, which is limited in bytes too


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """Table that exists on one or both sides; ``name`` is spelled as on the right, or else as on the left."""

    name: str
    left: SideTable | None
    right: SideTable | None
    pair: Pair

    @property
    def policies(self) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None:
        """The stored access policies of both sides if they differ."""
        left, right = ([] if side is None else side.policies for side in (self.left, self.right))
        return None if left == right else (left, right)

    @property
    def descriptions(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """The description and tags of both sides if the table is on both and they differ."""
        if self.left is None or self.right is None:
            return None
        left, right = ({"description": it.description, "tags": it.tags} for it in (self.left, self.right))
        return None if left == right else (left, right)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two sides."""

    left: Side
    right: Side
    tables: Sequence[ComparedTable]  # in the order of their names
    read_at: Moment  # the moment at which both sides are compared
    # names of tables that only one side has while the other, the value, is a snapshot or a branch of some
    # other tables, so they count neither as missing nor as new
    not_compared: Mapping[str, SideName] = field(default_factory=dict)
    with_timestamps: bool = False

    @property
    def service_properties(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """The service properties of two accounts if they differ."""
        left, right = self.left.service_properties, self.right.service_properties
        if self.left.name.table or self.right.name.table or left is None or right is None or left == right:
            return None
        return left, right

    def table(self, name: str) -> ComparedTable | None:
        return next((table for table in self.tables if table.name == name), None)

    def check_tables(self, names: Iterable[str]) -> None:
        """Raise SideNotFound for a table that is not part of the comparison."""
        for name in sorted(set(names) - {table.name for table in self.tables}):
            if name in self.not_compared:
                raise SideNotFound(Reason.NOT_IN_SNAPSHOT, snapshot=self.not_compared[name], table=name)
            raise SideNotFound(Reason.NO_TABLE_TO_COMPARE, table=name)


def compare(left: Side, right: Side, *, with_timestamps: bool = False) -> Comparison:
    """Compare two sides, or two tables with any names; entities are read lazily."""
    if left.name.table and right.name.table:
        (one,), (other,) = left.tables.values(), right.tables.values()
        pairs: list[tuple[SideTable | None, SideTable | None]] = [(one, other)]
    else:
        lefts, rights = _by_name(left, right), _by_name(right, left)
        pairs = [(lefts.get(name), rights.get(name)) for name in sorted({*lefts, *rights})]
    compared = [_compared(left, right, *pair, with_timestamps=with_timestamps) for pair in pairs]
    compared.sort(key=lambda it: it.name)
    outside = {it.name: side.name for it in compared if (side := _unaware(left, right, it)) is not None}
    tables = [it for it in compared if it.name not in outside]
    # before any entity is read: a change since then counts as newer even if it is read
    read_at = sql.run(snapshots.take_moment())
    return Comparison(left, right, tables, read_at, outside, with_timestamps)


def _unaware(left: Side, right: Side, table: ComparedTable) -> Side | None:
    """Return the side that lacks a table but may only be incomplete; None otherwise."""
    lacking = left if table.left is None else right if table.right is None else None
    if lacking is None or lacking.known_tables is None:
        return None
    fold = str if left.kind is right.kind is AccountKind.COSMOS else str.lower
    return None if fold(table.name) in map(fold, lacking.known_tables) else lacking


def _by_name(side: Side, other: Side) -> Mapping[str, SideTable]:
    """Pair tables by their identity; names in Cosmos accounts are case-sensitive."""
    only = side.name.table or other.name.table
    if side.kind is other.kind:
        by_name = dict(side.tables)
    else:
        by_name = {}
        for table in side.tables.values():
            by_name.setdefault(table.name.lower(), table)
            if by_name[table.name.lower()] is not table:
                by_name[table.name] = table
    folded = only if side.kind is other.kind is AccountKind.COSMOS else only.lower()
    return {name: table for name, table in by_name.items() if not only or name == folded}


def _compared(
    left: Side, right: Side, one: SideTable | None, other: SideTable | None, *, with_timestamps: bool
) -> ComparedTable:
    present = other or one
    assert present is not None
    pair = _changed(one, other) or Pair(
        _relation(one, left, right),
        _relation(other, right, left),
        tuple(it.timeline for it in (one, other) if it is not None and it.timeline is not None),
    )
    return ComparedTable(present.name, one, other, replace(pair, with_timestamps=with_timestamps))


def _relation(table: SideTable | None, side: Side, other: Side) -> str:
    if table is None:
        return statements.NO_TABLE
    has_other_times = side.kind is AccountKind.COSMOS and other.kind is not side.kind
    return statements.with_short_times(table.relation) if has_other_times else table.relation


def _changed(one: SideTable | None, other: SideTable | None) -> Pair | None:
    """Pair a table at two moments whose changes are all in the history."""
    if one is None or other is None or one.table_id != other.table_id:
        return None
    left, right = one.past, other.past
    if (one.timeline, other.timeline) != (left, right):
        return None  # a copy that was made for a snapshot
    if left is not None and (right is None or left.moment.ticks <= right.moment.ticks):
        changed = Changed(left, None if right is None else right.moment)
        return Pair(statements.EARLIER, statements.LATER, changed=changed)
    if right is not None:
        changed = Changed(right, None if left is None else left.moment)
        return Pair(statements.LATER, statements.EARLIER, changed=changed)
    return None


def count(table: ComparedTable, *, limit: timedelta = COUNT_LIMIT) -> Counts:
    """Count the entities of a table by how they differ; raises OperationTimedOut."""
    return sql.run_limited(statements.count(table.pair), limit)


def page(
    table: ComparedTable,
    kinds: Collection[DifferenceKind] = ALL_KINDS,
    *,
    after: EntityKey | None = None,
    top: int,
) -> list[DifferingEntity]:
    """Return up to ``top`` differing entities in key order: fewer if they are large, but at least one.

    Raises OperationTimedOut.
    """
    statement = statements.page(table.pair, kinds, after=after, top=top)
    return sql.run_limited(statement, PAGE_LIMIT, settings=statements.PAGE_SETTINGS)


def images(
    table: ComparedTable,
    kinds: Collection[DifferenceKind],
    *,
    to_left: bool,
    keys: Collection[EntityKey] | None = None,
    read_at: Moment | None = None,
) -> Images:
    """Return the images that make one side of a table equal to the other; ``keys`` limits them to these entities.

    Entities of a live side that were changed after ``read_at``, when the comparison was read, count as newer.
    Without a history of the time since, Timestamps tell: changes in the seconds before count too, and
    deletions go unnoticed.
    """
    newer = [
        Since(it.table.pk, it is table.left, read_at, past.changes_since(it.table, read_at))
        for it in (table.left, table.right)
        if read_at is not None and it is not None and it.past is None and isinstance(it.table, Table)
    ]
    return statements.images(table.pair, kinds, to_left=to_left, keys=keys, newer=newer)


def is_changed_since(table: Table, moment: Moment) -> bool:
    """Return whether a table was created, or an entity of it changed, after a moment."""
    record = None if moment.snapshot is None else past.changes_since(table, moment)
    changed = statements.is_table_changed_since(table.pk, past.source_of(table), record, moment)
    return sql.run_limited(changed, PAGE_LIMIT)


def walk(
    comparison: Comparison,
    kinds: Collection[DifferenceKind] = ALL_KINDS,
    *,
    tables: Collection[str] | None = None,
    after: tuple[str, EntityKey] | None = None,
    top: int = _WALK,
) -> Iterator[tuple[ComparedTable, DifferingEntity]]:
    """Yield the differing entities of all or the given tables, by table and key."""
    for table in comparison.tables:
        if tables is not None and table.name not in tables:
            continue
        key = None
        if after is not None and after[0] >= table.name:
            if after[0] > table.name:
                continue
            key = after[1]
        while batch := page(table, kinds, after=key, top=top):
            yield from ((table, entity) for entity in batch)
            key = batch[-1].key


def write_difference(table: ComparedTable, entity: DifferingEntity) -> bytes:
    """Serialize the differences of an entity as one line of ASCII JSON, as Strings may hold lone surrogates."""
    differences = property_differences(entity)
    written = {
        "table": table.name,
        "partition_key": entity.key.partition_key,
        "row_key": entity.key.row_key,
        "kind": entity.kind,
        "left_timestamp": entity.left and write_datetime(entity.left.timestamp),
        "right_timestamp": entity.right and write_datetime(entity.right.timestamp),
        "properties": [
            {"name": it.name, "left": _write_value(it.left), "right": _write_value(it.right)}
            for it in differences
        ],
    }
    return json.dumps(written, separators=(",", ":")).encode()


def property_differences(entity: DifferingEntity) -> list[PropertyDifference]:
    """Return the differing properties; all of them if one side lacks the entity."""
    left, right = (_read(entity, image) for image in (entity.left, entity.right))
    return compare_properties(left, right)


def _read(entity: DifferingEntity, image: Image | None) -> Properties:
    return {} if image is None else read_stored(entity.stored(image)).properties


def _write_value(value: EdmValue | None) -> dict[str, Any] | None:
    return None if value is None else {"type": value.type, "value": json.loads(encoding.write(value))}
