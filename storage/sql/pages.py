"""Query statements: point reads, multiple keys, pages, and window ends."""

import json
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from storage.domain.entities.entity import (
    SYSTEM_PROPERTIES,
    EntityKey,
    StoredEntity,
    encode_entity_key,
    quote_name,
)
from storage.domain.errors import ResourceNotFound
from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.query import PAGE_BYTES, PAGE_LIMIT, EntityQuery, Page, Position
from storage.domain.values.encoding import escape, write_column
from storage.domain.values.kinds import AccountKind
from storage.sql import arrays, walks
from storage.sql.content import CONTENT, with_annotations
from storage.sql.filters import compile
from storage.sql.forms import capabilities
from storage.sql.statement import Combination, Lane, Parameters, Result, Statement, integer_at, text_at
from storage.sql.walks import Binder


def point(relation: str, key: EntityKey, query: EntityQuery) -> Statement[StoredEntity]:
    """Return the statement that reads an entity by key, subject to the query's filter."""
    is_short = query.select is None or sum(map(len, query.select)) <= _KEPT
    parts = _point if is_short else _point.__wrapped__
    text, names, read, combination = parts(relation, query.select, query.annotations, query.kind)
    parameters = (*key, *names)
    if query.filter is None:
        return Statement(text, parameters, Lane.KEY, read, combination)
    condition = compile(query.filter, len(parameters) + 1, query.indexed)
    return Statement(f"{text} AND {condition.text}", (*parameters, *condition.parameters), Lane.KEY, read)


_KEPT: Final = (
    2048  # characters of selected names in a statement that is kept, so that no client fills the memory
)


@lru_cache(maxsize=1024)
def _point(
    relation: str, select: tuple[str, ...] | None, annotations: bool, kind: AccountKind
) -> tuple[str, Parameters, Callable[[Result], StoredEntity], Combination[StoredEntity] | None]:
    """Return the parts of a point read: SQL, extra parameters, reader, and combination."""
    binder = Binder()
    condition = f"pk = {binder.bind('')} AND rk = {binder.bind('')}"
    content = _content(relation, EntityQuery(select=select, annotations=annotations, kind=kind), binder)
    names = tuple(binder.parameters[2:])
    columns = f"pk, rk, ts, {', '.join(content.fetched)}"
    given_keys = "unnest($1::text[], $2::text[]) AS wanted (pk, rk)"
    several = f"SELECT {columns} FROM {given_keys} JOIN {relation} USING (pk, rk)"

    def read(result: Result) -> StoredEntity:
        if result.ntuples == 0:
            raise ResourceNotFound
        return content.read(result, _ticks(result, 1))[0]

    def read_several(result: Result) -> Mapping[EntityKey, StoredEntity]:
        return _by_key(result, content)

    def together(parameters: Sequence[Parameters]) -> Statement[Mapping[EntityKey, StoredEntity]]:
        keys = arrays.columns([row[:2] for row in parameters])
        return Statement(several, (*keys, *names), Lane.KEY, read_several)

    text = f"SELECT {columns} FROM {relation} WHERE {condition}"
    combination = Combination(together, is_write=False) if capabilities(relation).joins_partitions else None
    return text, names, read, combination


def _by_key(result: Result, content: "_Content") -> dict[EntityKey, StoredEntity]:
    return {
        EntityKey(text_at(result, row, 0), text_at(result, row, 1)): found
        for row, found in enumerate(content.read(result, _ticks(result, result.ntuples)))
    }


# in the order of keys where they are locked, so that transactions that lock the same rows wait for each other instead
# of deadlocking; otherwise in none: the lane of keys avoids sorts, so it would walk through all entities for an order
_GET_MANY: Final = """
SELECT e.pk, e.rk, ts, {content}
FROM {relation} AS e
JOIN jsonb_to_recordset($1::jsonb) AS wanted (pk text, rk text) ON e.pk = wanted.pk AND e.rk = wanted.rk
{lock}
"""
_TOTAL_BYTES: Final = """
SELECT coalesce(sum(octet_length(e.anns) + octet_length(e.vals)), 0)
FROM {relation} AS e
JOIN jsonb_to_recordset($1::jsonb) AS wanted (pk text, rk text) ON e.pk = wanted.pk AND e.rk = wanted.rk
"""


# the same in one partition, for a relation that allows no statement to join several
_GET_IN_PARTITION: Final = """
SELECT pk, rk, ts, {content} FROM {relation} WHERE pk = $1 AND rk = ANY ($2::text[]) ORDER BY pk, rk {lock}
"""
_BYTES_IN_PARTITION: Final = """
SELECT coalesce(sum(octet_length(anns) + octet_length(vals)), 0) FROM {relation} WHERE pk = $1 AND rk = ANY ($2::text[])
"""


def get_many(
    relation: str, keys: Collection[EntityKey], *, lock: bool = False
) -> Generator[Statement[Any], Any, dict[EntityKey, StoredEntity]]:
    """Return the existing entities of these keys; ``lock`` locks them until the transaction ends."""
    content = _content(relation, EntityQuery(), Binder())
    by_key: dict[EntityKey, StoredEntity] = {}
    text, lock_clause = (
        (_GET_MANY, "ORDER BY e.pk, e.rk FOR UPDATE OF e")
        if capabilities(relation).joins_partitions
        else (_GET_IN_PARTITION, "FOR UPDATE")
    )
    text = text.format(
        content=", ".join(content.fetched), relation=relation, lock=lock_clause if lock else ""
    )
    for parameters in _wanted(relation, keys):
        by_key |= yield Statement(text, parameters, Lane.KEY, lambda result: _by_key(result, content))
    return by_key


def total_bytes(relation: str, keys: Collection[EntityKey]) -> Generator[Statement[Any], Any, int]:
    """Return the total text size in bytes of the entities of these keys."""
    is_joined = capabilities(relation).joins_partitions
    text = (_TOTAL_BYTES if is_joined else _BYTES_IN_PARTITION).format(relation=relation)
    total = 0
    for parameters in _wanted(relation, keys):
        total += yield Statement(text, parameters, Lane.KEY, lambda result: integer_at(result, 0, 0))
    return total


def _wanted(relation: str, keys: Collection[EntityKey]) -> Iterator[Parameters]:
    """Yield the parameters of each statement that reads the keys."""
    if capabilities(relation).joins_partitions:
        yield (json.dumps([{"pk": key.partition_key, "rk": key.row_key} for key in set(keys)]),)
        return
    for partition_key, several in groupby(sorted(set(keys)), lambda key: key.partition_key):
        yield partition_key, arrays.texts(key.row_key for key in several)


_SMALL: Final = PAGE_BYTES // (
    PAGE_LIMIT + 1
)  # bytes of an entity; no page of such entities exceeds its limit

_PAGE: Final = """
SELECT pk, rk, CASE WHEN {small} THEN ts END, {content}
FROM {relation}
WHERE {condition}
ORDER BY {order}
LIMIT {limit}
"""

# the innermost query walks the keys in order, the middle one adds up the sizes of the previous rows, the outer one
# omits the content of rows beyond the size limit of a page: their keys tell where the next page starts
_MEASURED_PAGE: Final = """
SELECT pk, rk, CASE WHEN before < {bytes} THEN ts END, {content}
FROM (
    SELECT *, coalesce(sum({weight}) OVER (
        ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT pk, rk, ts, {columns} FROM {relation}
        WHERE {condition}
        ORDER BY {order}
        LIMIT {limit}
    ) AS page
) AS measured
ORDER BY {order}
"""


def page(relation: str, query: EntityQuery) -> Statement[Page[StoredEntity]]:
    """Return the statement for a page of up to ``top`` entities from ``start`` to ``end``, exclusive."""
    binder = Binder()
    walk = walks.walk(query, binder)
    content = _content(relation, query, binder)
    small = f"{_with_overhead(content.bound, content, binder)} <= {_SMALL}"
    text = _PAGE.format(
        small=small,
        content=", ".join(f"CASE WHEN {small} THEN {fetched} END" for fetched in content.fetched),
        relation=relation,
        condition=walk.condition,
        order=walk.order,
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    return binder.statement(text, walk.lane, lambda result: _read_page(result, content, query.top))


def measured_page(relation: str, query: EntityQuery, size: int) -> Statement[Page[StoredEntity]]:
    """Return the statement for a page that ends after the entity that exceeds ``size`` bytes."""
    binder = Binder()
    walk = walks.walk(query, binder)
    content = _content(relation, query, binder)
    weight = _with_overhead(content.weight, content, binder)
    text = _MEASURED_PAGE.format(
        bytes=size,
        content=", ".join(f"CASE WHEN before < {size} THEN {name} END" for name in content.names),
        weight=weight,
        columns=content.columns,
        relation=relation,
        condition=walk.condition,
        order=walk.order,
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    return binder.statement(text, walk.lane, lambda result: _read_page(result, content, query.top))


# One of so many keys, by their hash, tells where about a page ends, and is read of an index. The page ends before this
# key with a chance of 2 %.
_SAMPLED: Final = 16
_LIKELY_END: Final = f"""
SELECT pk, rk FROM {{relation}} WHERE {{keys}} AND (hashtext(pk) # hashtext(rk)) & {_SAMPLED - 1} = 0
ORDER BY pk, rk OFFSET {{skipped}}::bigint LIMIT 1
"""
_BOUNDED_FROM: Final = 100  # entities


def needs_bound(relation: str, query: EntityQuery) -> bool:
    """Return whether several nodes would each send as many entities as the page has."""
    if capabilities(relation).joins_partitions or query.top < _BOUNDED_FROM:
        return False
    access = plan_access(query.filter)
    return access.is_by_keys and access.bounds.partition.single is None


def likely_end(relation: str, query: EntityQuery) -> Statement[Position | None]:
    """Return the statement for a key soon after the end of a page; None if there is probably no further one."""
    binder = Binder()
    keys = walks.keys(query, binder)
    skipped = binder.bind(str(query.top * 6 // (_SAMPLED * 5) + 4))
    text = _LIKELY_END.format(relation=relation, keys=keys, skipped=skipped)
    return binder.statement(text, Lane.KEY, lambda result: position_at(result, 0))


def _read_page(result: Result, content: "_Content", top: int) -> Page[StoredEntity]:
    """Read a page; rows beyond it have only a key."""
    ticks = _ticks(result, min(result.ntuples, top))
    if None in ticks:
        ticks = ticks[: ticks.index(None)]
    return Page(content.read(result, ticks), position_at(result, len(ticks)))


def _ticks(result: Result, count: int) -> list[bytes | None]:
    return [result.get_value(row, 2) for row in range(count)]


def is_indexed(query: EntityQuery) -> bool:
    """Return whether an index on properties supports the filter."""
    access = plan_access(query.filter)
    return not access.is_by_keys and access.index_candidates(query.indexed) is None


def window_end(relation: str, query: EntityQuery, rows: int) -> Statement[Position | None]:
    """Return the statement for the key ``rows`` rows after the query's start; None if there are fewer."""
    binder = Binder()
    text = (
        f"SELECT pk, rk FROM {relation} WHERE {walks.keys(query, binder)} "
        f"ORDER BY pk, rk OFFSET {binder.bind(str(rows))}::bigint LIMIT 1"
    )
    return binder.statement(text, Lane.FILTER, lambda result: position_at(result, 0))


# the selected content of entities


# the entities of a result, given their Timestamps
_Read = Callable[[Result, list[bytes | None]], list[StoredEntity]]


@dataclass(frozen=True, slots=True)
class _Content:
    """SQL that selects properties, with the function that reads the result."""

    columns: str  # selected by the inner query
    weight: str  # size of ``names`` in bytes when written, without ``overhead``
    bound: str  # upper bound of ``weight`` over the relation, also without ``overhead``
    names: tuple[str, ...]  # expressions over ``columns``, selected by the outer query
    fetched: tuple[str, ...]  # the same expressions over the relation itself
    read: _Read
    overhead: int = 0  # bytes of each entity that do not depend on it: names of properties that it may lack


def _content(relation: str, query: EntityQuery, binder: Binder) -> _Content:
    if query.select is None:  # annotations are left out where the answer is written
        size = "octet_length(anns) + octet_length(vals)"
        if not capabilities(relation).joins_partitions:
            # nodes parse and plan each statement again, a call of a function for a fifth longer
            both = ("vals", "anns")
            return _Content("anns, vals", size, size, both, both, _read_both)
        return _Content("anns, vals", size, size, (CONTENT,), (CONTENT,), _read_whole)
    names = [name for name in query.select if name not in SYSTEM_PROPERTIES]
    if not names:
        return _Content("true AS nothing", "0", "0", ("''",), ("''",), _read_whole)
    # escaped, because PostgreSQL text cannot hold every name
    fetched = tuple(f"props->>{binder.bind(escape(name))}" for name in names)
    columns = tuple(f"c{number}" for number in range(len(names)))
    members = [quote_name(name).encode() for name in names]
    return _Content(
        columns=", ".join(f"{text} AS {name}" for text, name in zip(fetched, columns, strict=True)),
        # as JSON, in which some characters take six bytes
        weight=" + ".join(f"coalesce(octet_length(to_json({name})::text), 0)" for name in columns),
        bound="octet_length(vals) * 3 / 2",  # a binary value is projected in hexadecimal
        names=columns,
        fetched=fetched,
        read=_read_selected(members, query),
        # Cosmos leaves out what an entity lacks
        overhead=sum(len(b",%b:null" % it) for it in members) if query.kind is AccountKind.STORAGE else 0,
    )


def _with_overhead(size: str, content: _Content, binder: Binder) -> str:
    return f"{size} + {binder.bind(str(content.overhead))}::bigint" if content.overhead else size


_FIRST: Final = 3  # the column where the content starts


def _read_keys(result: Result, count: int) -> list[bytes]:
    """Return the keys as members of a JSON object."""
    get: Callable[[int, int], Any] = result.get_value  # the columns read here are never null
    keys = [b'"PartitionKey":"%b","RowKey":"%b"' % (get(row, 0), get(row, 1)) for row in range(count)]
    text = b"".join(keys)
    if text.isascii() and text.count(b'"') == 8 * count:
        return keys  # contain no backslash or control character either, so that nothing needs escaping
    return [encode_entity_key(EntityKey(get(row, 0).decode(), get(row, 1).decode())) for row in range(count)]


def _read_whole(result: Result, ticks: list[bytes | None]) -> list[StoredEntity]:
    contents = [result.get_value(row, _FIRST) for row in range(len(ticks))]
    return _rows(result, ticks, contents)


def _read_both(result: Result, ticks: list[bytes | None]) -> list[StoredEntity]:
    get: Callable[[int, int], Any] = result.get_value  # rows with a Timestamp have both
    contents = [with_annotations(get(row, _FIRST + 1), get(row, _FIRST)) for row in range(len(ticks))]
    return _rows(result, ticks, contents)


def _rows(result: Result, ticks: list[bytes | None], contents: Iterable[bytes | None]) -> list[StoredEntity]:
    new: Any = tuple.__new__  # a NamedTuple's own constructor is Python code
    rows = zip(_read_keys(result, len(ticks)), ticks, contents, strict=True)
    return [new(StoredEntity, row) for row in rows]


def _read_selected(members: list[bytes], query: EntityQuery) -> _Read:
    def read(result: Result, ticks: list[bytes | None]) -> list[StoredEntity]:
        get: Callable[[int, int], Any] = result.get_value
        rows = range(len(ticks))
        columns = [
            write_column(
                member, [get(row, column) for row in rows], annotations=query.annotations, kind=query.kind
            )
            for column, member in enumerate(members, _FIRST)
        ]
        return _rows(result, ticks, map(b"".join, zip(*columns, strict=True)))

    return read


def position_at(result: Result, row: int) -> Position | None:
    """Return the key in the first two columns of a row; None without such a row."""
    return Position(text_at(result, row, 0), text_at(result, row, 1)) if row < result.ntuples else None
