"""One statement per entity operation."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, assert_never

from storage.domain.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.edm import write_projected
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
from storage.domain.errors import EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied
from storage.domain.etag import Precondition
from storage.domain.filters import KeyBounds, KeyInterval, Operator, key_range
from storage.domain.query import PAGE_BYTES, EntityQuery, Page, Position
from storage.sql.failures import named
from storage.sql.filters import compile
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

# $n names the lines of the properties that the change brings: they go, the change's own are appended. The result of
# a merge may break a limit that both its parts keep; small ones cannot (252 properties take 1,764 characters).
_MERGED: Final = "regexp_replace(e.{column}, {gone}, '', 'g') || {new}"
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
""".format(now=NOW, **merge_parts("$4::text", "$5::text", "$7::text"))

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
""".format(now=NOW, columns=_COLUMNS, **merge_parts("$4::text", "$5::text", "$6::text"))

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


_NAME_IN_REGEX = re.compile(r"\W")


def lines_of(names: Iterable[str]) -> str:
    """A regular expression for the lines, of values and of annotations, that belong to the named properties."""
    escaped = (_NAME_IN_REGEX.sub(r"\\\g<0>", quoted(name)[1:-1]) for name in names)
    return rf'\n,"({"|".join(escaped)})(@odata\.type)?":[^\n]*'


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
    parameters = (*row, expected, lines_of(change.entity.properties))
    return Statement(_text(_MERGE, relation), parameters, Lane.KEY, _timestamp_or_error)


def _upsert(relation: str, change: Upsert) -> Statement[int]:
    row = (*change.key, *written(change.entity))
    if not change.merge:
        return Statement(_text(_UPSERT, relation), row, Lane.KEY, _timestamp)
    parameters = (*row, lines_of(change.entity.properties))
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


def point(relation: str, key: EntityKey, query: EntityQuery) -> Statement[StoredEntity]:
    """Query Entity by its key; only ``select`` and ``annotations`` of the query count."""
    binder = _Binder()
    condition = f"pk = {binder.bind(key.partition_key)} AND rk = {binder.bind(key.row_key)}"
    content = _content(query, binder)
    text = f"SELECT pk, rk, ts, true, {', '.join(content.columns)} FROM {relation} WHERE {condition}"

    def read(result: Result) -> StoredEntity:
        if result.ntuples == 0:
            raise ResourceNotFound
        return content.read(result, 0)

    return Statement(text, tuple(binder.parameters), Lane.KEY, read)


# the innermost query walks the keys in order, the middle one adds up what the rows before a row weigh, the outer one
# leaves out the content of those beyond the limit of a page: their keys tell where the next page starts
_PAGE: Final = """
SELECT pk, rk, ts, before < {bytes}, {whole}
FROM (
    SELECT *, coalesce(sum({weight}) OVER (
        ORDER BY pk, rk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT pk, rk, ts, {inner} FROM {relation}
        WHERE {condition}
        ORDER BY pk, rk
        LIMIT {limit}
    ) AS page
) AS measured
ORDER BY pk, rk
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
        whole=", ".join(f"CASE WHEN before < {PAGE_BYTES} THEN {column} END" for column in content.names),
        weight=content.weight,
        inner=content.inner,
        relation=relation,
        condition=" AND ".join(conditions) or "true",
        limit=f"{binder.bind(str(query.top + 1))}::bigint",
    )
    lane = Lane.KEY if bounds.residual is None else Lane.FILTER
    return Statement(
        text, tuple(binder.parameters), lane, lambda result: _read_page(result, content, query.top)
    )


def _read_page(result: Result, content: "_Content", top: int) -> Page:
    entities: list[StoredEntity] = []
    read, get = content.read, result.get_value
    for row in range(result.ntuples):
        if row == top or get(row, 3) != b"t":
            return Page(entities, Position(_text_at(result, row, 0), _text_at(result, row, 1)))
        entities.append(read(result, row))
    return Page(entities, None)


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
    elif start is not None and (partition.lower is None or start.partition_key >= partition.lower.key):
        conditions.append(f"(pk, rk) >= ({binder.bind(start.partition_key)}, {binder.bind(start.row_key)})")
        conditions += _interval("pk", replace(partition, lower=None), binder)
    else:
        conditions += _interval("pk", partition, binder)
    if end is not None:
        conditions.append(f"(pk, rk) < ({binder.bind(end.partition_key)}, {binder.bind(end.row_key)})")
    return conditions


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
    """``inner`` are the columns to fetch, ``names`` the expressions over them that make the content, in order."""

    inner: str
    weight: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    read: Callable[[Result, int], StoredEntity]


def _content(query: EntityQuery, binder: _Binder) -> _Content:
    if query.select is None and query.annotations:
        whole = ("anns || vals",)
        return _Content("anns, vals", "octet_length(anns) + octet_length(vals)", whole, whole, _row)
    if query.select is None:
        return _Content("vals", "octet_length(vals)", ("vals",), ("vals",), _row)
    names = [name for name in query.select if name not in SYSTEM_PROPERTIES]
    if not names:
        return _Content("true AS nothing", "0", ("''",), ("''",), _row)
    columns = tuple(f"(props->{binder.bind(name)})::text" for name in names)
    fetched = tuple(f"c{number}" for number in range(len(names)))
    return _Content(
        inner=", ".join(f"{column} AS {name}" for column, name in zip(columns, fetched, strict=True)),
        weight=" + ".join(f"coalesce(octet_length({name}), 0)" for name in fetched),
        names=fetched,
        columns=columns,
        read=_selected([quoted(name).encode() for name in names], annotations=query.annotations),
    )


def _row(result: Result, row: int) -> StoredEntity:
    get: Callable[[int, int], Any] = result.get_value  # no column that is read here is ever null
    return StoredEntity(get(row, 0).decode(), get(row, 1).decode(), int(get(row, 2)), get(row, 4))


def _selected(members: list[bytes], *, annotations: bool) -> Callable[[Result, int], StoredEntity]:
    def read(result: Result, row: int) -> StoredEntity:
        content = b"".join(
            [
                write_projected(member, result.get_value(row, column), annotations=annotations)
                for column, member in enumerate(members, 4)
            ]
        )
        return _row(result, row)._replace(content=content)

    return read


def _text_at(result: Result, row: int, column: int) -> str:
    value = result.get_value(row, column)
    assert value is not None
    return value.decode()
