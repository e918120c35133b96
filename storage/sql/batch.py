"""A change set as one call: a function per relation walks the changes in order, or fails and so undoes them all.

The function is the relation's own, because only then are its statements planned once and not at every call; its
first argument is the partition key, by which a distributed PostgreSQL would route it.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from storage.domain.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.errors import ChangeSetError, StorageError
from storage.sql import entities
from storage.sql.statement import Lane, Result, Statement

_MERGE_OF_ROW = entities.merge_parts("c.anns", "c.vals", "c.gone")

_FUNCTION: Final = """
CREATE FUNCTION {{relation}}_apply(p text, changes jsonb) RETURNS bigint[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c record;
    i integer := -1;
    done bigint;
    applied bigint[] := '{{{{}}}}';
    problem text;
BEGIN
    FOR c IN
        SELECT * FROM jsonb_to_recordset(changes)
        AS change (op text, rk text, expected bigint, props jsonb, anns text, vals text, gone text)
    LOOP
        i := i + 1;
        done := NULL;
        CASE c.op
        WHEN 'insert' THEN
            INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT DO NOTHING
            RETURNING ts INTO done;
            problem := 'EntityAlreadyExists';
        WHEN 'replace' THEN
            UPDATE {{relation}} AS e
            SET ts = greatest({now}, e.ts + 1), props = c.props, anns = c.anns, vals = c.vals
            WHERE e.pk = p AND e.rk = c.rk AND (c.expected IS NULL OR e.ts = c.expected)
            RETURNING e.ts INTO done;
        WHEN 'merge' THEN
            UPDATE {{relation}} AS e
            SET ts = greatest({now}, e.ts + 1), props = e.props || c.props,
                anns = {merged_anns}, vals = {merged_vals}
            WHERE e.pk = p AND e.rk = c.rk AND (c.expected IS NULL OR e.ts = c.expected) AND {fits}
            RETURNING e.ts INTO done;
        WHEN 'upsert' THEN
            INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT (pk, rk) DO UPDATE
            SET ts = greatest(excluded.ts, e.ts + 1),
                props = excluded.props, anns = excluded.anns, vals = excluded.vals
            RETURNING e.ts INTO done;
        WHEN 'upsert_merge' THEN
            INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT (pk, rk) DO UPDATE
            SET ts = greatest(excluded.ts, e.ts + 1), props = e.props || excluded.props,
                anns = {merged_anns}, vals = {merged_vals}
            WHERE {fits}
            RETURNING e.ts INTO done;
        WHEN 'delete' THEN
            DELETE FROM {{relation}} AS e
            WHERE e.pk = p AND e.rk = c.rk AND (c.expected IS NULL OR e.ts = c.expected)
            RETURNING e.ts INTO done;
        END CASE;
        IF done IS NULL THEN
            IF c.op <> 'insert' THEN
                SELECT CASE
                    WHEN e.ts <> c.expected THEN 'UpdateConditionNotSatisfied'
                    WHEN c.gone IS NOT NULL THEN
                        coalesce(entity_excess(e.pk, e.rk, {merged_anns}, {merged_vals}), 'ServerBusy')
                    ELSE 'ServerBusy'
                END INTO problem
                FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk;
                problem := coalesce(problem, 'ResourceNotFound');
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = i || ' ' || problem;
        END IF;
        applied := applied || done;
    END LOOP;
    RETURN applied;
EXCEPTION WHEN program_limit_exceeded THEN
    -- an index entry that does not fit: only here is it known whose
    RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = i || ' KeyValueTooLarge';
END
$$
""".format(now=entities.NOW, **_MERGE_OF_ROW)


def create_function(relation: str) -> str:
    return _FUNCTION.format(relation=relation)


def drop_function(relation: str) -> str:
    return f"DROP FUNCTION {relation}_apply(text, jsonb)"


@lru_cache(maxsize=1024)
def _call(relation: str) -> str:
    return f"SELECT {relation}_apply($1, $2::jsonb)"


def apply(relation: str, changes: Sequence[Change]) -> Statement[list[int]]:
    """All changes, of one partition, or none: the new Timestamps (of a deleted entity, its last) in order.

    Raises ChangeSetError with the index of the change that failed.
    """
    documents = []
    for index, change in enumerate(changes):
        try:
            documents.append(_document(change))
        except StorageError as error:
            raise ChangeSetError(index, error) from None
    partition_key = changes[0].key.partition_key
    return Statement(_call(relation), (partition_key, f"[{','.join(documents)}]"), Lane.KEY, _read)


def _document(change: Change) -> str:
    row_key = json.dumps(change.key.row_key)
    match change:
        case Delete(_, condition):
            return f'{{"op":"delete","rk":{row_key},"expected":{_expected(condition.expected)}}}'
        case Insert(entity):
            op, expected = "insert", "null"
        case Update(entity, condition, merge):
            op, expected = "merge" if merge else "replace", _expected(condition.expected)
        case Upsert(entity, merge):
            op, expected = "upsert_merge" if merge else "upsert", "null"
    written = entities.written(entity)
    gone = json.dumps(entities.lines_of(entity.properties)) if op.endswith("merge") else "null"
    return (
        f'{{"op":"{op}","rk":{row_key},"expected":{expected},"props":{written.projection},'
        f'"anns":{json.dumps(written.annotations)},"vals":{json.dumps(written.values)},"gone":{gone}}}'
    )


def _expected(ticks: int | None) -> str:
    return "null" if ticks is None else str(ticks)


def _read(result: Result) -> list[int]:
    applied = result.get_value(0, 0)
    assert applied is not None
    return [int(ticks) for ticks in applied[1:-1].split(b",")]
