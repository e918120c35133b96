"""A change set is one call of a function, which applies the changes in order or fails and rolls all of them back.

Each relation has its own function, because only then are its statements planned once and not in every call. The first
argument is the partition key, by which a distributed PostgreSQL can route the call.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.values.edm import quote
from storage.sql import entities
from storage.sql.statement import Lane, Result, Statement

_MERGE_OF_ROW = entities.merge_parts("c.anns", "c.vals", "c.gone")

_FUNCTION: Final = """
CREATE FUNCTION {{relation}}_apply(p text, changes jsonb, only_inserts boolean) RETURNS bigint[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c record;
    failed integer;
    failure text;
    done bigint;
    applied bigint[] := '{{{{}}}}';
    problem text;
    inserted integer;
BEGIN
    IF only_inserts THEN
        -- all at once takes half the time; if one fails, the loop below finds out which
        BEGIN
            INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
            SELECT p, rk, {now}, props, anns, vals
            FROM jsonb_to_recordset(changes) AS change (rk text, props jsonb, anns text, vals text)
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS inserted = ROW_COUNT;
            IF inserted = jsonb_array_length(changes) THEN
                RETURN array_fill({now}, ARRAY[inserted]);
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TB002';
        EXCEPTION WHEN SQLSTATE 'TB002' OR program_limit_exceeded THEN
            NULL;
        END;
    END IF;
    FOR c IN
        SELECT * FROM jsonb_to_recordset(changes) AS change (
            i integer, op text, rk text, expected bigint, props jsonb, anns text, vals text, gone text[])
    LOOP
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
            -- the changes come in the order of their keys, but the first failure counts in the order of the request
            IF failed IS NULL OR c.i < failed THEN
                failed := c.i;
                failure := problem;
            END IF;
        END IF;
        applied := applied || done;
    END LOOP;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = failed || ' ' || failure;
    END IF;
    RETURN applied;
EXCEPTION WHEN program_limit_exceeded THEN
    -- an index entry is too large; only here is it known which
    IF failed IS NULL OR c.i < failed THEN
        failed := c.i;
        failure := 'KeyValueTooLarge';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = failed || ' ' || failure;
END
$$
""".format(now=entities.NOW, **_MERGE_OF_ROW)


def create_function(relation: str) -> str:
    return _FUNCTION.format(relation=relation)


def drop_function(relation: str) -> str:
    return f"DROP FUNCTION {relation}_apply(text, jsonb, boolean)"


@lru_cache(maxsize=1024)
def _call(relation: str) -> str:
    return f"SELECT {relation}_apply($1, $2::jsonb, $3::boolean)"


def apply(relation: str, changes: Sequence[Change]) -> Statement[list[int]]:
    """Apply all changes of one partition, or none; return their Timestamps (the last one of a deleted entity) in order.

    Raises ChangeSetError with the index of the change that failed. Rows are locked in the order of their keys, so that
    change sets on the same entities wait for each other instead of deadlocking.
    """
    order = sorted(range(len(changes)), key=lambda index: changes[index].key.row_key)
    documents = ",".join([_document(index, changes[index]) for index in order])
    only_inserts = all(type(change) is Insert for change in changes)
    parameters = (changes[0].key.partition_key, f"[{documents}]", str(only_inserts))

    def read(result: Result) -> list[int]:
        applied = result.get_value(0, 0)
        assert applied is not None
        by_index = dict(zip(order, applied[1:-1].split(b","), strict=True))
        return [int(by_index[index]) for index in range(len(order))]

    return Statement(_call(relation), parameters, Lane.KEY, read)


def _document(index: int, change: Change) -> str:
    head = f'{{"i":{index},"rk":{quote(change.key.row_key)}'
    match change:
        case Delete(_, condition):
            return f'{head},"op":"delete","expected":{_expected(condition.expected)}}}'
        case Insert():
            op, expected = "insert", "null"
        case Update():
            op, expected = "merge" if change.merge else "replace", _expected(change.condition.expected)
        case Upsert():
            op, expected = "upsert_merge" if change.merge else "upsert", "null"
    try:
        projection, annotations, values = entities.written(change.entity)
    except StorageError as error:
        raise ChangeSetError(index, error) from None
    merging = (
        f',"gone":{quote(entities.text_array(change.entity.properties))}' if op.endswith("merge") else ""
    )
    return (
        f'{head},"op":"{op}","expected":{expected},"props":{projection},'
        f'"anns":{quote(annotations)},"vals":{quote(values)}{merging}}}'
    )


def _expected(ticks: int | None) -> str:
    return "null" if ticks is None else str(ticks)
