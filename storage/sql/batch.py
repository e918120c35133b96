"""A change set is one call of a function, which applies the changes in order or fails and rolls all of them back.

Each relation has its own function, because only then are its statements planned once and not in every call. The first
argument is the partition key, by which a distributed PostgreSQL can route the call.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Fragments
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.values.kinds import AccountKind
from storage.sql import arrays, entities, long_keys
from storage.sql.statement import Lane, Result, Statement

_MERGE_OF_ROW = entities.merge_parts("c.anns", "c.vals", "c.gone")

_INSERTION: Final = """
        WHEN 'insert{suffix}' THEN{room}
            INSERT INTO {target} (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT DO NOTHING
            RETURNING ts INTO done;
            problem := 'EntityAlreadyExists';
"""
_UPSERTS: Final = """
        WHEN 'upsert{suffix}' THEN{room}
            INSERT INTO {target} AS e (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT ({unique}) DO UPDATE
            SET ts = greatest(excluded.ts, e.ts + 1),
                props = excluded.props, anns = excluded.anns, vals = excluded.vals
            RETURNING e.ts INTO done;
        WHEN 'upsert_merge{suffix}' THEN{room}
            INSERT INTO {target} AS e (pk, rk, ts, props, anns, vals)
            VALUES (p, c.rk, {now}, c.props, c.anns, c.vals)
            ON CONFLICT ({unique}) DO UPDATE
            SET ts = greatest(excluded.ts, e.ts + 1), props = e.props || excluded.props,
                anns = {merged_anns}, vals = {merged_vals}
            WHERE {fits}
            RETURNING e.ts INTO done;
"""
_ORDINARY: Final = {"target": "{relation}", "unique": "pk, rk", "suffix": "", "room": ""}
_LONG: Final = {
    "target": "{relation}_long",
    "unique": "entity_key_hash(pk, rk)",
    "suffix": "_long",
    "room": "\n            PERFORM entity_make_room('{relation}', p, c.rk, c.i);",
}


def _branches(template: str, form: dict[str, str]) -> str:
    return template.strip("\n").format(now=entities.NOW, **_MERGE_OF_ROW, **form)


_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION {{relation}}_change(
    p text, places integer[], ops text[], rks text[], expecteds bigint[],
    propss jsonb[], annss text[], valss text[], gones text[]
) RETURNS bigint[]
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
    IF ops IS NULL THEN
        -- all at once takes half the time; if one fails, the loop below finds out which
        BEGIN
            INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals)
            SELECT p, rk, {now}, props, anns, vals
            FROM unnest(rks, propss, annss, valss) AS change (rk, props, anns, vals)
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS inserted = ROW_COUNT;
            IF inserted = cardinality(rks) THEN
                RETURN array_fill({now}, ARRAY[inserted]);
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TB002';
        EXCEPTION WHEN SQLSTATE 'TB002' THEN
            NULL;
        END;
    END IF;
    FOR c IN
        SELECT i, coalesce(op, 'insert') AS op, rk, expected, props, anns, vals, gone::text[] AS gone
        FROM unnest(places, ops, rks, expecteds, propss, annss, valss, gones)
            AS change (i, op, rk, expected, props, anns, vals, gone)
    LOOP
        done := NULL;
        CASE c.op
{insertion}
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
{upserts}
        WHEN 'delete' THEN
            DELETE FROM {{relation}} AS e
            WHERE e.pk = p AND e.rk = c.rk AND (c.expected IS NULL OR e.ts = c.expected)
            RETURNING e.ts INTO done;
{of_long_keys}
        END CASE;
        IF done IS NULL THEN
            IF c.op NOT IN ('insert', 'insert_long') THEN
                SELECT CASE
                    WHEN e.ts <> c.expected THEN 'UpdateConditionNotSatisfied'
                    WHEN c.gone IS NOT NULL THEN
                        coalesce({excess}, 'ServerBusy')
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
END
$$
""".format(
    now=entities.NOW,
    insertion=_branches(_INSERTION, _ORDINARY),
    upserts=_branches(_UPSERTS, _ORDINARY),
    of_long_keys=_branches(_INSERTION + _UPSERTS, _LONG),
    **_MERGE_OF_ROW,
)


def create_function(relation: str, kind: AccountKind = AccountKind.STORAGE) -> str:
    return _FUNCTION.format(relation=relation, excess_of_kind=entities.EXCESS_FUNCTIONS[kind])


def drop_function(relation: str) -> str:
    # servers before 0.5 used the first; it is kept until the table goes, so that they run on during an upgrade
    return f"DROP FUNCTION IF EXISTS {relation}_apply; DROP FUNCTION {relation}_change"


class _Row(NamedTuple):
    """A change as the function takes it."""

    operation: str
    row_key: str
    expected: int | None
    fragments: Fragments
    gone: str | None


def apply(relation: str, changes: Sequence[Change]) -> Statement[list[int]]:
    """Apply all changes of one partition, or none; return their Timestamps (the last one of a deleted entity) in order.

    Raises ChangeSetError with the index of the change that failed. Rows are locked in the order of their keys, so that
    change sets on the same entities wait for each other instead of deadlocking.
    """
    rows = [_row(index, change) for index, change in enumerate(changes)]
    order = sorted(range(len(rows)), key=lambda index: rows[index].row_key)
    operations, row_keys, expected, fragments, gone = zip(*[rows[index] for index in order], strict=True)
    projections, annotations, values = zip(*fragments, strict=True)
    only_inserts = set(operations) == {"insert"}
    parameters = (
        changes[0].key.partition_key,
        arrays.integers(order),
        None if only_inserts else arrays.texts(operations),
        arrays.texts(row_keys),
        None if only_inserts else arrays.bigints(expected),
        arrays.documents(projections),
        arrays.texts(annotations),
        arrays.texts(values),
        None if only_inserts else arrays.texts(gone),
    )

    def read(result: Result) -> list[int]:
        applied = result.get_value(0, 0)
        assert applied is not None
        timestamps = [0] * len(order)
        for index, ticks in zip(order, applied[1:-1].split(b","), strict=True):
            timestamps[index] = int(ticks)
        return timestamps

    return Statement(long_keys.call(relation), parameters, Lane.KEY, read)


def _row(index: int, change: Change) -> _Row:
    try:
        match change:
            case Insert(entity):
                operation = long_keys.operation("insert", entity.key)
                return _Row(operation, entity.key.row_key, None, entities.written(entity), None)
            case Update(entity, condition, merge):
                operation = "merge" if merge else "replace"
                gone = entities.text_array(entity.properties) if merge else None
                return _Row(operation, entity.key.row_key, condition.expected, entities.written(entity), gone)
            case Upsert(entity, merge):
                operation = long_keys.operation("upsert_merge" if merge else "upsert", entity.key)
                gone = entities.text_array(entity.properties) if merge else None
                return _Row(operation, entity.key.row_key, None, entities.written(entity), gone)
            case Delete(key, condition):
                return _Row("delete", key.row_key, condition.expected, _NOTHING, None)
            case _:
                assert_never(change)
    except StorageError as error:
        raise ChangeSetError(index, error) from None


_NOTHING: Final = Fragments("{}", "", "")
