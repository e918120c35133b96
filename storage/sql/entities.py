"""One statement per entity operation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, assert_never

from storage.domain.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.edm import escape, write_column
from storage.domain.entity import (
    SYSTEM_PROPERTIES,
    Entity,
    EntityKey,
    Fragments,
    StoredEntity,
    check_size,
    fragments,
    quoted,
)
from storage.domain.errors import EntityAlreadyExists, ResourceNotFound
from storage.domain.etag import Precondition
from storage.domain.filters import Bound, KeyBounds, KeyInterval, Operator, key_range
from storage.domain.query import PAGE_BYTES, EntityQuery, Page, Position
from storage.sql.failures import named
from storage.sql.filters import compile, is_indexable
from storage.sql.statement import Lane, Result, Statement

# statement_timestamp, not clock_timestamp: a distributed PostgreSQL refuses volatile functions in an UPDATE
NOW: Final = "(extract(epoch FROM statement_timestamp()) * 10000000)::bigint"

_COLUMNS: Final = "(pk, rk, ts, props, anns, vals)"

_INSERT: Final = f"""
INSERT INTO {{relation}} {_COLUMNS}
VALUES ($1, $2, {NOW}, $3::jsonb, $4, $5)
ON CONFLICT DO NOTHING
RETURNING ts
"""

_REPLACE: Final = f"""
UPDATE {{relation}}
SET ts = greatest({NOW}, ts + 1), props = $3::jsonb, anns = $4, vals = $5
WHERE pk = $1 AND rk = $2
RETURNING ts
"""

# done, or the Timestamp that did not match, or no row: 404 told from 412 in the same round trip
_REPLACE_IF: Final = f"""
WITH done AS (
    UPDATE {{relation}}
    SET ts = greatest({NOW}, ts + 1), props = $3::jsonb, anns = $4, vals = $5
    WHERE pk = $1 AND rk = $2 AND ts = $6::bigint
    RETURNING ts
)
SELECT ts, NULL FROM done
UNION ALL
SELECT ts, 'UpdateConditionNotSatisfied' FROM {{relation}}
WHERE pk = $1 AND rk = $2 AND NOT EXISTS (SELECT FROM done)
"""

_UPSERT: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
VALUES ($1, $2, {NOW}, $3::jsonb, $4, $5)
ON CONFLICT (pk, rk) DO UPDATE
SET ts = greatest(excluded.ts, e.ts + 1), props = excluded.props, anns = excluded.anns, vals = excluded.vals
RETURNING ts
"""

# The lines of the properties that the change brings go, the change's own are appended. The result of
# a merge may break a limit that both its parts keep; small ones cannot (252 properties take 1,764 characters).
_MERGED: Final = "entity_without(e.{column}, {gone}) || {new}"
_FITS: Final = """
CASE
    WHEN octet_length(e.vals) + octet_length({vals}) < 1764 THEN true
    ELSE entity_excess(e.pk, e.rk, {merged_anns}, {merged_vals}) IS NULL
END
"""


def merge_parts(anns: str, vals: str, gone: str) -> dict[str, str]:
    merged_anns = _MERGED.format(column="anns", gone=gone, new=anns)
    merged_vals = _MERGED.format(column="vals", gone=gone, new=vals)
    fits = _FITS.format(vals=vals, merged_anns=merged_anns, merged_vals=merged_vals)
    return {"merged_anns": merged_anns, "merged_vals": merged_vals, "fits": fits}


_MERGE: Final = """
WITH done AS (
    UPDATE {{relation}} AS e
    SET ts = greatest({now}, e.ts + 1), props = e.props || $3::jsonb, anns = {merged_anns}, vals = {merged_vals}
    WHERE pk = $1 AND rk = $2 AND ($6::bigint IS NULL OR ts = $6::bigint) AND {fits}
    RETURNING ts
)
SELECT ts, NULL FROM done
UNION ALL
SELECT ts, CASE
    WHEN ts <> $6::bigint THEN 'UpdateConditionNotSatisfied'
    ELSE coalesce(
        entity_excess(pk, rk, {merged_anns}, {merged_vals}),
        -- it was as it should be when the statement began, and was changed or deleted since
        CASE WHEN $6::bigint IS NULL THEN 'ResourceNotFound' ELSE 'UpdateConditionNotSatisfied' END)
END
FROM {{relation}} AS e
WHERE pk = $1 AND rk = $2 AND NOT EXISTS (SELECT FROM done)
""".format(now=NOW, **merge_parts("$4::text", "$5::text", "$7::text[]"))

_UPSERT_MERGE: Final = """
WITH done AS (
    INSERT INTO {{relation}} AS e {columns}
    VALUES ($1, $2, {now}, $3::jsonb, $4, $5)
    ON CONFLICT (pk, rk) DO UPDATE
    SET ts = greatest(excluded.ts, e.ts + 1), props = e.props || excluded.props,
        anns = {merged_anns}, vals = {merged_vals}
    WHERE {fits}
    RETURNING ts
)
SELECT ts, NULL FROM done
UNION ALL
-- a row that changed between the two snapshots is asked to try again
SELECT ts, coalesce(entity_excess(pk, rk, {merged_anns}, {merged_vals}), 'ServerBusy')
FROM {{relation}} AS e
WHERE pk = $1 AND rk = $2 AND NOT EXISTS (SELECT FROM done)
""".format(now=NOW, columns=_COLUMNS, **merge_parts("$4::text", "$5::text", "$6::text[]"))

_DELETE: Final = "DELETE FROM {relation} WHERE pk = $1 AND rk = $2 RETURNING ts"

_DELETE_IF: Final = """
WITH done AS (
    DELETE FROM {relation} WHERE pk = $1 AND rk = $2 AND ts = $3::bigint RETURNING ts
)
SELECT ts, NULL FROM done
UNION ALL
SELECT ts, 'UpdateConditionNotSatisfied' FROM {relation}
WHERE pk = $1 AND rk = $2 AND NOT EXISTS (SELECT FROM done)
"""


@lru_cache(maxsize=4096)
def _text(template: str, relation: str) -> str:
    return template.format(relation=relation)


def written(entity: Entity) -> Fragments:
    """The texts of an entity's row, its limits checked."""
    texts = fragments(entity.properties)
    check_size(entity, texts)
    return texts


def text_array(names: Iterable[str]) -> str:
    """Property names, quoted as in the texts of a row, in the text format of a PostgreSQL array."""
    return "{" + ",".join(quoted(name).replace("\\", "\\\\") for name in names) + "}"


# writes


def change(relation: str, change: Change) -> Statement[int]:
    """The statement of a single change; its result is the new Timestamp (of a deleted entity, its last)."""
    match change:
        case Insert(entity):
            return Statement(_text(_INSERT, relation), (*entity.key, *written(entity)), Lane.KEY, _inserted)
        case Update():
            return _merge(relation, change) if change.merge else _replace(relation, change)
        case Upsert():
            return _upsert(relation, change)
        case Delete(key, condition):
            return _delete(relation, key, condition)
        case _:
            assert_never(change)


def _replace(relation: str, change: Update) -> Statement[int]:
    row = (*change.key, *written(change.entity))
    expected = change.condition.expected
    if expected is None:
        return Statement(_text(_REPLACE, relation), row, Lane.KEY, _timestamp)
    return Statement(_text(_REPLACE_IF, relation), (*row, str(expected)), Lane.KEY, _timestamp_or_error)


def _merge(relation: str, change: Update) -> Statement[int]:
    row = (*change.key, *written(change.entity))
    expected = None if change.condition.expected is None else str(change.condition.expected)
    parameters = (*row, expected, text_array(change.entity.properties))
    return Statement(_text(_MERGE, relation), parameters, Lane.KEY, _timestamp_or_error)


def _upsert(relation: str, change: Upsert) -> Statement[int]:
    row = (*change.key, *written(change.entity))
    if not change.merge:
        return Statement(_text(_UPSERT, relation), row, Lane.KEY, _timestamp)
    parameters = (*row, text_array(change.entity.properties))
    return Statement(_text(_UPSERT_MERGE, relation), parameters, Lane.KEY, _timestamp_or_error)


def _delete(relation: str, key: EntityKey, condition: Precondition) -> Statement[int]:
    if condition.expected is None:
        return Statement(_text(_DELETE, relation), tuple(key), Lane.KEY, _timestamp)
    parameters = (*key, str(condition.expected))
    return Statement(_text(_DELETE_IF, relation), parameters, Lane.KEY, _timestamp_or_error)


def _inserted(result: Result) -> int:
    if result.ntuples == 0:
        raise EntityAlreadyExists
    return _integer(result, 0, 0)


def _timestamp(result: Result) -> int:
    if result.ntuples == 0:
        raise ResourceNotFound
    return _integer(result, 0, 0)


def _timestamp_or_error(result: Result) -> int:
    timestamp = _timestamp(result)
    code = result.get_value(0, 1)
    if code is not None:
        raise named(code.decode())
    return timestamp


def _integer(result: Result, row: int, column: int) -> int:
    value = result.get_value(row, column)
    assert value is not None
    return int(value)


# reads


# keys hold no backslash and no control character, so that a quotation mark is all there is to escape
_KEYS: Final = (
    """'"PartitionKey":"' || replace(pk, '"', '\\"') || '","RowKey":"' || replace(rk, '"', '\\"') || '"'"""
)


def point(relation: str, key: EntityKey, query: EntityQuery) -> Statement[StoredEntity]:
    """Query Entity by its key; only ``select`` and ``annotations`` of the query count."""
    binder = _Binder()
    condition = f"pk = {binder.bind(key.partition_key)} AND rk = {binder.bind(key.row_key)}"
    content = _content(query, binder)
    text = f"SELECT pk, rk, ts, {_KEYS}, {', '.join(content.fetched)} FROM {relation} WHERE {condition}"

    def read(result: Result) -> StoredEntity:
        if result.ntuples == 0:
            raise ResourceNotFound
        return content.read(result, 1)[0]

    return Statement(text, tuple(binder.parameters), Lane.KEY, read)


# the innermost query walks the keys in order, the middle one adds up what the rows before a row weigh, the outer one
# leaves out the content of those beyond the limit of a page: their keys tell where the next page starts
_PAGE: Final = """
SELECT pk, rk, CASE WHEN before < {bytes} THEN ts END, {keys}, {content}
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


def page(relation: str, query: EntityQuery, end: Position | None = None) -> Statement[Page]:
    """Query Entities: up to ``top`` entities from ``start`` and before ``end``."""
    binder = _Binder()
    bounds = key_range(query.filter)
    conditions = _key_conditions(bounds, query.start, end, binder)
    if bounds.residual is not None:
        compiled = compile(bounds.residual, len(binder.parameters) + 1)
        binder.parameters += compiled.parameters
        conditions.append(compiled.text)
    content = _content(query, binder)
    text = _PAGE.format(
        bytes=PAGE_BYTES,
        keys=_KEYS,
        content=", ".join(f"CASE WHEN before < {PAGE_BYTES} THEN {name} END" for name in content.names),
        weight=content.weight,
        columns=content.columns,
        relation=relation,
        condition=" AND ".join(conditions) or "true",
        # inside one partition the planner would sort by both, not knowing beyond LIMIT that the first is constant
        order="pk, rk" if bounds.partition.single is None else "rk",
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    lane = Lane.KEY if bounds.residual is None else Lane.FILTER
    return Statement(
        text, tuple(binder.parameters), lane, lambda result: _read_page(result, content, query.top)
    )


def _read_page(result: Result, content: "_Content", top: int) -> Page:
    """Rows beyond the page have a key, one of them for ``top``, the others without a Timestamp."""
    count = min(result.ntuples, top)
    if count and result.get_value(count - 1, 2) is None:
        count = next(row for row in range(count) if result.get_value(row, 2) is None)
    following = (
        Position(_text_at(result, count, 0), _text_at(result, count, 1)) if count < result.ntuples else None
    )
    return Page(content.read(result, count), following)


def is_indexed(query: EntityQuery) -> bool:
    """Whether the index over the properties can serve the filter."""
    residual = key_range(query.filter).residual
    return residual is not None and is_indexable(residual)


def window_end(relation: str, query: EntityQuery, rows: int) -> Statement[Position | None]:
    """The key ``rows`` rows after the start of the query, None when there are not so many."""
    binder = _Binder()
    conditions = _key_conditions(key_range(query.filter), query.start, None, binder)
    text = (
        f"SELECT pk, rk FROM {relation} WHERE {' AND '.join(conditions) or 'true'} "
        f"ORDER BY pk, rk OFFSET {binder.bind(str(rows))}::bigint LIMIT 1"
    )

    def read(result: Result) -> Position | None:
        return Position(_text_at(result, 0, 0), _text_at(result, 0, 1)) if result.ntuples else None

    return Statement(text, tuple(binder.parameters), Lane.FILTER, read)


class _Binder:
    """Parameters and their placeholders, in the order of binding."""

    def __init__(self) -> None:
        self.parameters: list[str | None] = []

    def bind(self, value: str) -> str:
        self.parameters.append(value)
        return f"${len(self.parameters)}"


def _key_conditions(
    bounds: KeyBounds, start: Position | None, end: Position | None, binder: _Binder
) -> list[str]:
    """Conditions that the primary key serves as a range.

    Of two lower bounds only the higher is said: with both, the walk might begin at the lower one.
    """
    partition, row = bounds.partition, bounds.row
    only = partition.single
    if bounds.is_empty or (only is not None and start is not None and start.partition_key > only):
        return ["false"]
    conditions = []
    if only is not None:
        conditions.append(f"pk = {binder.bind(only)}")
        if start is not None and start.partition_key == only:
            row = row.narrowed(Operator.GE, start.row_key)
        conditions += _interval("rk", row, binder)
    elif start is not None and not _is_below(start, partition.lower):
        conditions.append(f"(pk, rk) >= ({binder.bind(start.partition_key)}, {binder.bind(start.row_key)})")
        conditions += _interval("pk", replace(partition, lower=None), binder)
    else:
        conditions += _interval("pk", partition, binder)
    if end is not None:
        conditions.append(f"(pk, rk) < ({binder.bind(end.partition_key)}, {binder.bind(end.row_key)})")
    return conditions


def _is_below(start: Position, lower: Bound | None) -> bool:
    """Whether the walk begins at the bound of the partition keys rather than at the position."""
    if lower is None:
        return False
    return start.partition_key < lower.key or (start.partition_key == lower.key and not lower.inclusive)


def _interval(column: str, interval: KeyInterval, binder: _Binder) -> list[str]:
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


# what of an entity goes into an answer


@dataclass(frozen=True, slots=True)
class _Content:
    """How the asked-for properties come out of a row: ``columns`` in, expressions ``names`` over them out.

    ``fetched`` are the same expressions over the relation itself, ``weight`` is their size in bytes.
    """

    columns: str
    weight: str
    names: tuple[str, ...]
    fetched: tuple[str, ...]
    read: Callable[[Result, int], list[StoredEntity]]


def _content(query: EntityQuery, binder: _Binder) -> _Content:
    if query.select is None and query.annotations:
        whole = ("anns || vals",)
        return _Content("anns, vals", "octet_length(anns) + octet_length(vals)", whole, whole, _read_whole)
    if query.select is None:
        return _Content("vals", "octet_length(vals)", ("vals",), ("vals",), _read_whole)
    names = [name for name in query.select if name not in SYSTEM_PROPERTIES]
    if not names:
        return _Content("true AS nothing", "0", ("''",), ("''",), _read_whole)
    # escaped: what PostgreSQL cannot hold as text names no property
    fetched = tuple(f"props->>{binder.bind(escape(name))}" for name in names)
    columns = tuple(f"c{number}" for number in range(len(names)))
    return _Content(
        columns=", ".join(f"{text} AS {name}" for text, name in zip(fetched, columns, strict=True)),
        weight=" + ".join(f"coalesce(octet_length({name}), 0)" for name in columns),
        names=columns,
        fetched=fetched,
        read=_read_selected([quoted(name).encode() for name in names], annotations=query.annotations),
    )


_FIRST: Final = 4  # the column where the content starts


def _read_whole(result: Result, count: int) -> list[StoredEntity]:
    get: Callable[[int, int], Any] = result.get_value  # no column that is read here is ever null
    new = tuple.__new__  # a NamedTuple's own constructor is Python code
    return [new(StoredEntity, (get(row, 3), get(row, 2), get(row, _FIRST))) for row in range(count)]


def _read_selected(members: list[bytes], *, annotations: bool) -> Callable[[Result, int], list[StoredEntity]]:
    def read(result: Result, count: int) -> list[StoredEntity]:
        get: Callable[[int, int], Any] = result.get_value
        rows = range(count)
        columns = [
            write_column(member, [get(row, column) for row in rows], annotations=annotations)
            for column, member in enumerate(members, _FIRST)
        ]
        new = tuple.__new__
        contents = map(b"".join, zip(*columns, strict=True))
        return [
            new(StoredEntity, (get(row, 3), get(row, 2), c)) for row, c in zip(rows, contents, strict=True)
        ]

    return read


def _text_at(result: Result, row: int, column: int) -> str:
    value = result.get_value(row, column)
    assert value is not None
    return value.decode()
