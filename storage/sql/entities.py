"""One statement per entity operation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, assert_never

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    Fragments,
    check_size,
    quote_name,
)
from storage.domain.errors import EntityAlreadyExists, ResourceNotFound
from storage.domain.values.kinds import AccountKind
from storage.sql import arrays, long_keys
from storage.sql.failures import named
from storage.sql.long_keys import is_long
from storage.sql.statement import Combination, Lane, Parameters, Result, Statement, integer_at, text_at

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

# returns the new Timestamp, or the one that did not match, or no row: one round trip tells 404 from 412
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

_OR_REPLACE: Final = """
ON CONFLICT (pk, rk) DO UPDATE
SET ts = greatest(excluded.ts, e.ts + 1), props = excluded.props, anns = excluded.anns, vals = excluded.vals
"""

_UPSERT: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
VALUES ($1, $2, {NOW}, $3::jsonb, $4, $5)
{_OR_REPLACE}
RETURNING ts
"""

# A merge removes the lines of the properties in the change and appends its own. The result may exceed a limit that
# both parts keep; small ones cannot (252 properties take 1,764 characters).
# The name of a line is between its first two quotation marks, followed by @ in an annotation. What every merge does is
# inline, because a call of a function takes five times as long; what hardly any does is not, because the preparation
# of a subquery takes time even if it is not run.
_MERGED: Final = """
(SELECT coalesce(string_agg(E'\\n' || line, ''), '')
 FROM string_to_table(substr(e.{column}, 2), E'\\n') AS line
 WHERE split_part(split_part(line, '"', 2), '@', 1) <> ALL ({gone})) || {new}
"""
_EXCESS: Final = """
{{excess_of_kind}}(e.pk, e.rk, entity_without(e.anns, {gone}) || {anns}, entity_without(e.vals, {gone}) || {vals})
"""
EXCESS_FUNCTIONS: Final = {
    AccountKind.STORAGE: "entity_excess",
    AccountKind.COSMOS: "cosmos_entity_excess",
}
_FITS: Final = """
CASE
    WHEN octet_length(e.vals) + octet_length({vals}) < 1764 THEN true
    ELSE {excess} IS NULL
END
"""


def merge_parts(anns: str, vals: str, gone: str) -> dict[str, str]:
    merged_anns = _MERGED.format(column="anns", gone=gone, new=anns)
    merged_vals = _MERGED.format(column="vals", gone=gone, new=vals)
    excess = _EXCESS.format(anns=anns, vals=vals, gone=gone)
    fits = _FITS.format(vals=vals, excess=excess)
    return {"merged_anns": merged_anns, "merged_vals": merged_vals, "excess": excess, "fits": fits}


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
        {excess},
        -- it matched when the statement began, and was changed or deleted since
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
-- the client must try again if the row changed between the two snapshots
SELECT ts, coalesce({excess}, 'ServerBusy')
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


# The same for several entities, in the order of their keys. What is not returned runs again alone, and finds out why.
_CASTS: Final = {"props": "jsonb", "expected": "bigint", "gone": "text[]"}


def _new(*columns: str) -> str:
    """The parameters of several changes as rows ``new``; with OFFSET each is cast once, not wherever it is used."""
    selected = ", ".join(f"{name}::{_CASTS[name]}" if name in _CASTS else name for name in columns)
    parameters = ", ".join(f"${number}::text[]" for number in range(1, len(columns) + 1))
    names = ", ".join(columns)
    return f"(SELECT {selected} FROM unnest({parameters}) AS new ({names}) OFFSET 0) AS new"


_ROW: Final = ("pk", "rk", "props", "anns", "vals")
_INSERT_NEW: Final = f"""
INSERT INTO {{relation}} AS e {_COLUMNS}
SELECT pk, rk, {NOW}, props, anns, vals FROM {_new(*_ROW)}
"""
_SET_NEW: Final = f"SET ts = greatest({NOW}, e.ts + 1), props = new.props, anns = new.anns, vals = new.vals"
_SAME: Final = "e.pk = new.pk AND e.rk = new.rk"

_INSERT_SEVERAL: Final = f"{_INSERT_NEW} ON CONFLICT DO NOTHING RETURNING pk, rk, ts"
_UPSERT_SEVERAL: Final = f"{_INSERT_NEW} {_OR_REPLACE} RETURNING pk, rk, ts"
_REPLACE_SEVERAL: Final = f"""
UPDATE {{relation}} AS e {_SET_NEW} FROM {_new(*_ROW)} WHERE {_SAME} RETURNING e.pk, e.rk, e.ts
"""
_REPLACE_SEVERAL_IF: Final = f"""
UPDATE {{relation}} AS e {_SET_NEW} FROM {_new(*_ROW, "expected")} WHERE {_SAME} AND e.ts = new.expected
RETURNING e.pk, e.rk, e.ts
"""
_MERGE_SEVERAL: Final = """
UPDATE {{relation}} AS e
SET ts = greatest({now}, e.ts + 1), props = e.props || new.props, anns = {merged_anns}, vals = {merged_vals}
FROM {new}
WHERE {same} AND (new.expected IS NULL OR e.ts = new.expected) AND {fits}
RETURNING e.pk, e.rk, e.ts
""".format(
    now=NOW,
    new=_new(*_ROW, "expected", "gone"),
    same=_SAME,
    **merge_parts("new.anns", "new.vals", "new.gone"),
)
_UPSERT_MERGE_SEVERAL: Final = """
WITH new AS MATERIALIZED (
    SELECT * FROM {new}
), merged AS (
    UPDATE {{relation}} AS e
    SET ts = greatest({now}, e.ts + 1), props = e.props || new.props, anns = {merged_anns}, vals = {merged_vals}
    FROM new
    WHERE {same} AND {fits}
    RETURNING e.pk, e.rk, e.ts
), inserted AS (
    INSERT INTO {{relation}} {columns}
    SELECT pk, rk, {now}, props, anns, vals
    FROM new
    WHERE NOT EXISTS (SELECT FROM {{relation}} AS e WHERE {same})
    ON CONFLICT DO NOTHING
    RETURNING pk, rk, ts
)
SELECT pk, rk, ts FROM merged UNION ALL SELECT pk, rk, ts FROM inserted
""".format(
    now=NOW,
    new=_new(*_ROW, "gone"),
    columns=_COLUMNS,
    same=_SAME,
    **merge_parts("new.anns", "new.vals", "new.gone"),
)
_DELETE_SEVERAL: Final = f"""
DELETE FROM {{relation}} AS e USING {_new("pk", "rk")}
WHERE {_SAME} RETURNING e.pk, e.rk, e.ts
"""
_DELETE_SEVERAL_IF: Final = f"""
DELETE FROM {{relation}} AS e USING {_new("pk", "rk", "expected")}
WHERE {_SAME} AND e.ts = new.expected RETURNING e.pk, e.rk, e.ts
"""


@lru_cache(maxsize=4096)
def _text(template: str, relation: str, kind: AccountKind) -> str:
    return template.format(relation=relation, excess_of_kind=EXCESS_FUNCTIONS[kind])


def written(entity: Entity) -> Fragments:
    """The texts of an entity's row, its limits checked."""
    texts = entity.fragments
    check_size(entity, texts)
    return texts


def text_array(names: Iterable[str]) -> str:
    """Write property names, quoted as in a row, as a PostgreSQL array literal."""
    return "{" + ",".join(quote_name(name).replace("\\", "\\\\") for name in names) + "}"


# writes


def change(relation: str, change: Change) -> Statement[int]:
    """Return the statement of a change; its result is the new Timestamp (the last one of a deleted entity)."""
    match change:
        case Insert(entity):
            if is_long(entity.key):
                return long_keys.insert(relation, "insert", entity.key, written(entity))
            return _statement(relation, _INSERT, _row(entity), _inserted, _INSERT_SEVERAL)
        case Upsert(entity, merge):
            if is_long(entity.key):
                operation = "upsert_merge" if merge else "upsert"
                gone = text_array(entity.properties) if merge else None
                return long_keys.insert(relation, operation, entity.key, written(entity), gone)
            if merge:
                parameters = (*_row(entity), text_array(entity.properties))
                return _statement(
                    relation,
                    _UPSERT_MERGE,
                    parameters,
                    _timestamp_or_error,
                    _UPSERT_MERGE_SEVERAL,
                    entity.kind,
                )
            return _statement(relation, _UPSERT, _row(entity), _timestamp, _UPSERT_SEVERAL)
        case Update(entity, condition, merge):
            expected = None if condition.expected is None else str(condition.expected)
            if merge:
                row = (*_row(entity), expected, text_array(entity.properties))
                return _statement(relation, _MERGE, row, _timestamp_or_error, _MERGE_SEVERAL, entity.kind)
            if expected is None:
                return _statement(relation, _REPLACE, _row(entity), _timestamp, _REPLACE_SEVERAL)
            row = (*_row(entity), expected)
            return _statement(relation, _REPLACE_IF, row, _timestamp_or_error, _REPLACE_SEVERAL_IF)
        case Delete(key, condition):
            if condition.expected is None:
                return _statement(relation, _DELETE, key, _timestamp, _DELETE_SEVERAL)
            parameters = (*key, str(condition.expected))
            return _statement(relation, _DELETE_IF, parameters, _timestamp_or_error, _DELETE_SEVERAL_IF)
        case _:
            assert_never(change)


def insert_all(relation: str, entities: Iterable[Entity]) -> Iterator[Statement[int]]:
    """Yield statements that insert entities of any partitions, all of one kind, whose keys are free."""
    ordinary = []
    for entity in entities:
        if is_long(entity.key):
            yield change(relation, Insert(entity))
        else:
            ordinary.append(_row(entity))
    if ordinary:
        text = _text(_INSERT_SEVERAL, relation, AccountKind.STORAGE)
        yield Statement(text, arrays.columns(ordinary), Lane.KEY, lambda result: result.ntuples)


def _statement(
    relation: str,
    template: str,
    parameters: Parameters,
    read: Callable[[Result], int],
    several: str,
    kind: AccountKind = AccountKind.STORAGE,
) -> Statement[int]:
    """``kind`` makes a difference to merges only."""
    text, combination = _text(template, relation, kind), _combination(several, relation, kind)
    return Statement(text, parameters, Lane.KEY, read, combination)


def _row(entity: Entity) -> tuple[str, ...]:
    return (*entity.key, *written(entity))


@lru_cache(maxsize=4096)
def _combination(template: str, relation: str, kind: AccountKind) -> Combination[int]:
    text = _text(template, relation, kind)

    def statement(several: Sequence[Parameters]) -> Statement[Mapping[EntityKey, int]]:
        return Statement(text, arrays.columns(several), Lane.KEY, _timestamps)

    return Combination(statement)


def _timestamps(result: Result) -> Mapping[EntityKey, int]:
    return {
        EntityKey(text_at(result, row, 0), text_at(result, row, 1)): integer_at(result, row, 2)
        for row in range(result.ntuples)
    }


def _inserted(result: Result) -> int:
    if result.ntuples == 0:
        raise EntityAlreadyExists
    return integer_at(result, 0, 0)


def _timestamp(result: Result) -> int:
    if result.ntuples == 0:
        raise ResourceNotFound
    return integer_at(result, 0, 0)


def _timestamp_or_error(result: Result) -> int:
    timestamp = _timestamp(result)
    code = result.get_value(0, 1)
    if code is not None:
        raise named(code.decode())
    return timestamp
