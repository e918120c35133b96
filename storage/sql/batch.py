"""Change sets: one function call that applies the changes in order or rolls back all of them.

Each relation has its own function, because only then are its statements planned once and not in every call.
The first argument is the partition key, by which a call can be routed to the node of the partition.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from storage.domain.entities.changes import Change
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.values.kinds import AccountKind
from storage.sql import change_function, entities, moments
from storage.sql.change_rows import ChangeRow, change_row
from storage.sql.failures import AT_ONCE
from storage.sql.forms import capabilities
from storage.sql.history import OLDEST_POSTGRESQL, Op, Recorder, recorded_table
from storage.sql.statement import Lane, Parameters, Result, Statement, integer_at

# An upsert knows of its row no more than its columns, so the names that it sets are found by its key; keys are sorted.
_GONE_OF_KEY: Final = 'gones[width_bucket(excluded.rk COLLATE "C", rks)]::text[]'
# the text of a change: older servers give the annotations by themselves
TEXT: Final = "CASE WHEN anns IS NULL THEN vals ELSE entity_content(anns, vals) END"
# rows that one statement changes, and the state of their entities before, which it keeps
_ROWS: Final = f"""
SELECT p, rk, moment, props, '', {TEXT} FROM unnest(rks, propss, annss, valss) AS change (rk, props, anns, vals)
"""
_BEFORE: Final = """
SELECT array_agg(rk), array_agg(was), array_agg(anns), array_agg(vals)
INTO written_rks, before_ts, before_anns, before_vals
"""

# entities whose keys are too long for an index are inserted into the child relation described in storage.sql.long_keys
_INSERTION: Final = """
INSERT INTO {{relation}}{child} (pk, rk, ts, props, anns, vals)
VALUES (p, c.rk, moment, c.props, '', c.vals)
ON CONFLICT DO NOTHING
RETURNING ts INTO done;
"""


def _insertion(child: str = "") -> str:
    return _INSERTION.strip().format(child=child)


# A deletion that an insertion waited for has got a later Timestamp. Rows of the last moments are found by the index of
# times, from the latest on.
_LATEST_BEFORE: Final = """
SELECT greatest(latest, max(ts) + 1) INTO latest FROM (
    SELECT h.ts FROM {history} AS h
    WHERE h.ts >= latest AND h.tbl = {table} AND h.pk = p AND h.rk = ANY (rks) ORDER BY h.ts DESC LIMIT 1
) AS before;
"""
_MOMENT: Final = "tablero.moment"  # the setting with the Timestamp of the first half of a change set
_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION {{relation}}_change_set(
    p text, places integer[], ops text[], rks text[], expecteds bigint[],
    propss jsonb[], annss text[], valss text[], gones text[], by_actor integer, in_request uuid
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- of the first half of the change set, if this is the second
    given bigint := nullif(current_setting('{setting}', true), '')::bigint;
    moment bigint;
    latest bigint;
    c record;
    failed integer;
    failure text;
    done bigint;
    applied bigint[];
    problem text;
    op_of_all text := CASE
        WHEN cardinality(rks) = 1 THEN NULL WHEN ops IS NULL THEN 'insert' WHEN ops[1] = ALL (ops) THEN ops[1] END;
    written_rks text[];
    -- an entity as it was, and those that the changes found
    was_ts bigint;
    was_anns text;
    was_vals text;
    before_ts bigint[];
    before_anns text[];
    before_vals text[];
BEGIN
    -- before the time is taken: storage.sql.moments
    LOCK TABLE ONLY {{relation}} IN ROW EXCLUSIVE MODE;
    moment := coalesce(given, {present});
    IF op_of_all IN ('insert', 'delete') OR op_of_all IN ('upsert', 'replace', 'upsert_merge', 'merge')
        AND current_setting('server_version_num')::integer >= {returns_old}
    THEN
        -- all at once takes a half to three quarters of the time; if one fails, the loop below finds out which
        BEGIN
            applied := array_fill(moment, ARRAY[cardinality(rks)]);
            IF op_of_all = 'insert' THEN
                -- without ON CONFLICT, which looks up each key once more
                INSERT INTO {{relation}} (pk, rk, ts, props, anns, vals) {rows};
            ELSE
                IF op_of_all IN ('upsert', 'replace') THEN
                    WITH written AS (
                        INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals) {rows}
                        ON CONFLICT (pk, rk) DO UPDATE
                        SET ts = moment, props = excluded.props, anns = '', vals = excluded.vals
                        WHERE e.ts < moment
                        RETURNING e.rk, old.ts AS was, old.anns, old.vals
                    )
                    {before} FROM written;
                ELSIF op_of_all IN ('upsert_merge', 'merge') THEN
                    WITH written AS (
                        INSERT INTO {{relation}} AS e (pk, rk, ts, props, anns, vals) {rows}
                        ON CONFLICT (pk, rk) DO UPDATE
                        SET ts = moment, props = e.props || excluded.props,
                            anns = '', vals = {merged_of_all}
                        WHERE e.ts < moment AND {fits_of_all}
                        RETURNING e.rk, old.ts AS was, old.anns, old.vals
                    )
                    {before} FROM written;
                ELSE
                    WITH written AS (
                        DELETE FROM {{relation}} AS e WHERE e.pk = p AND e.rk = ANY (rks) AND e.ts < moment
                        RETURNING e.rk, e.ts AS was, e.anns, e.vals
                    )
                    {before} FROM (SELECT * FROM written ORDER BY rk) AS written;
                    applied := before_ts;
                END IF;
                IF written_rks IS DISTINCT FROM rks OR op_of_all IN ('replace', 'merge', 'delete') AND EXISTS (
                    SELECT FROM unnest(expecteds, before_ts) AS change (expected, was)
                    WHERE was IS NULL OR was <> expected
                ) THEN
                    RAISE EXCEPTION USING ERRCODE = 'TB002';
                END IF;
            END IF;
        -- one exists, is changed twice, has keys too long for the index of the relation, or is refused above
        EXCEPTION
        WHEN unique_violation OR cardinality_violation OR program_limit_exceeded OR SQLSTATE 'TB002' THEN
            applied := NULL;
            before_ts := NULL;
            before_anns := NULL;
            before_vals := NULL;
        END;
    END IF;
    IF applied IS NULL THEN
        FOR c IN
            SELECT i, coalesce(op, 'insert') AS op, rk, expected, props, {text} AS vals, gone::text[] AS gone
            FROM unnest(places, ops, rks, expecteds, propss, annss, valss, gones)
                AS change (i, op, rk, expected, props, anns, vals, gone)
        LOOP
            done := NULL;
            was_ts := NULL;
            was_anns := NULL;
            was_vals := NULL;
            IF c.op IN ('insert_long', 'upsert_long', 'upsert_merge_long') THEN
                PERFORM entity_make_room('{{relation}}', p, c.rk, c.i);
            END IF;
            IF c.op = 'insert' THEN
                {insertion}
            ELSIF c.op = 'insert_long' THEN
                {long_insertion}
            ELSE
                LOOP
                    SELECT e.ts, e.anns, e.vals INTO was_ts, was_anns, was_vals
                    FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk FOR UPDATE;
                    EXIT WHEN FOUND;
                    CASE c.op
                    WHEN 'upsert', 'upsert_merge' THEN
                        {insertion}
                    WHEN 'upsert_long', 'upsert_merge_long' THEN
                        {long_insertion}
                    ELSE
                        EXIT;
                    END CASE;
                    EXIT WHEN done IS NOT NULL;
                    -- another transaction has inserted it
                END LOOP;
            END IF;
            IF was_ts IS NOT NULL AND (c.expected IS NULL OR was_ts = c.expected) THEN
                CASE c.op
                WHEN 'replace', 'upsert', 'upsert_long' THEN
                    UPDATE {{relation}} AS e
                    SET ts = {after}, props = c.props, anns = '', vals = c.vals
                    WHERE e.pk = p AND e.rk = c.rk
                    RETURNING e.ts INTO done;
                WHEN 'merge', 'upsert_merge', 'upsert_merge_long' THEN
                    UPDATE {{relation}} AS e
                    SET ts = {after}, props = e.props || c.props, anns = '', vals = {merged}
                    WHERE e.pk = p AND e.rk = c.rk AND {fits}
                    RETURNING e.ts INTO done;
                WHEN 'delete' THEN
                    DELETE FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk
                    RETURNING e.ts INTO done;
                END CASE;
            END IF;
            IF done IS NULL THEN
                problem := CASE
                    WHEN c.op IN ('insert', 'insert_long') THEN 'EntityAlreadyExists'
                    WHEN was_ts IS NULL THEN 'ResourceNotFound'
                    WHEN was_ts <> c.expected THEN 'UpdateConditionNotSatisfied'
                    ELSE (SELECT {excess} FROM {{relation}} AS e WHERE e.pk = p AND e.rk = c.rk)
                END;
                -- the changes come in the order of their keys, but the first failure counts in the order of the request
                IF failed IS NULL OR c.i < failed THEN
                    failed := c.i;
                    failure := problem;
                END IF;
            END IF;
            applied := applied || done;
            before_ts := before_ts || was_ts;
            IF by_actor IS NOT NULL THEN
                before_anns := before_anns || was_anns;
                before_vals := before_vals || was_vals;
            END IF;
        END LOOP;
    END IF;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TB001', MESSAGE = failed || ' ' || failure;
    END IF;
    -- one Timestamp for all, so that there is no moment that has a part of them
    latest := greatest(moment, (SELECT max(was) + 1 FROM unnest(before_ts) AS was));
    IF by_actor IS NOT NULL THEN
        {latest_before}
    END IF;
    IF latest > given THEN
        RAISE EXCEPTION USING ERRCODE = '{at_once}';
    END IF;
    IF latest > moment THEN
        UPDATE {{relation}} AS e SET ts = latest WHERE e.pk = p AND e.rk = ANY (rks) AND e.ts < latest;
        SELECT array_agg(CASE WHEN op = 'delete' THEN ts ELSE latest END ORDER BY place) INTO applied
        FROM unnest(coalesce(ops, array_fill('insert'::text, ARRAY[cardinality(rks)])), applied) WITH ORDINALITY
            AS change (op, ts, place);
    END IF;
    IF 'delete' = ANY (ops) AND latest >= {present} THEN
        PERFORM raise_moment_floor(latest);  -- a deleted entity may be inserted again
    END IF;
    IF by_actor IS NOT NULL THEN
        INSERT INTO {{history}} (tbl, op, ts, was, actor, request, pk, rk, anns, vals)
        SELECT {{table}},
            CASE WHEN was IS NULL THEN '{op.INSERT}' WHEN op = 'delete' THEN '{op.DELETE}' ELSE '{op.UPDATE}' END,
            latest, was, by_actor, in_request, p, rk, anns, vals
        FROM unnest(ops, rks, before_ts, before_anns, before_vals) AS change (op, rk, was, anns, vals);
    END IF;
    RETURN applied;
END
$$
"""


@lru_cache
def _function(kind: AccountKind) -> str:
    """Return the template of the change function, with names left open."""
    merge_of_row = entities.merge_parts(kind, "c.vals", "c.gone")
    merge_of_all = entities.merge_parts(kind, "excluded.vals", _GONE_OF_KEY, is_computed=True)
    return _FUNCTION.format(
        setting=_MOMENT,
        at_once=AT_ONCE,
        present=moments.PRESENT,
        latest_before=_LATEST_BEFORE.strip(),
        op=Op,
        insertion=_insertion(),
        long_insertion=_insertion("_long"),
        after=moments.after("moment"),
        returns_old=OLDEST_POSTGRESQL,
        rows=_ROWS.strip(),
        text=TEXT,
        before=_BEFORE.strip(),
        **merge_of_row,
        **{f"{name}_of_all": part for name, part in merge_of_all.items()},
    )


def create_function(relation: str, history: str, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Return SQL that creates the function; it records changes in the view ``history`` when given an actor."""
    return _function(kind).format(relation=relation, table=recorded_table(relation), history=history)


def drop_function(relation: str) -> str:
    # servers before 1.0 use the first two, and do not make the third
    return "; ".join(
        f"DROP FUNCTION IF EXISTS {relation}_{name}" for name in ("apply", "change", "change_set")
    )


def apply(relation: str, changes: Sequence[Change], recorder: Recorder | None = None) -> Statement[list[int]]:
    """Apply all changes of one partition atomically; return their Timestamps in order.

    A deleted entity has its last Timestamp. Raises ChangeSetError with the index of the change that failed.
    Rows are locked in key order, so that change sets on the same entities wait for each other instead of
    deadlocking.
    """
    rows = [_row(relation, index, change) for index, change in enumerate(changes)]
    return _apply(relation, rows, recorder)


def apply_rows(
    relation: str, rows: Sequence[ChangeRow], recorder: Recorder | None = None
) -> Statement[list[int]]:
    """Apply the rows of changes, as ``apply`` does."""
    return _apply(relation, [(row.operation(relation), row) for row in rows], recorder)


def _apply(
    relation: str, rows: Sequence[tuple[str, ChangeRow]], recorder: Recorder | None
) -> Statement[list[int]]:
    order = sorted(range(len(rows)), key=lambda index: rows[index][1].key.row_key)
    operations, ordered = zip(*[rows[index] for index in order], strict=True)
    only_inserts = set(operations) == {"insert"}
    parameters = _parameters(order, None if only_inserts else operations, ordered, recorder)

    def read(result: Result) -> list[int]:
        applied = change_function.applied(result)
        timestamps = [0] * len(order)
        for index, ticks in zip(order, applied[1:-1].split(b","), strict=True):
            timestamps[index] = int(ticks)
        return timestamps

    return Statement(change_function.call(relation), parameters, Lane.KEY, read)


class NotInHalves(Exception):
    """The change set cannot be split into halves."""


class Halves:
    """Change set of insertions in two statements of one transaction, built while the other one runs.

    The second takes its Timestamp from the first, by a setting of the transaction. The keys must be sorted,
    because rows are locked in that order.
    """

    def __init__(self, relation: str, first: Sequence[Change], recorder: Recorder | None = None) -> None:
        """Create from the changes of the first half; raises NotInHalves."""
        if not capabilities(relation).has_floor:
            raise NotInHalves
        self._relation = relation
        self._recorder = recorder
        self._count = len(first)
        self._last_key = ""
        parameters = self._rows(0, first)
        self.first = Statement(_first_half(relation), parameters, Lane.KEY, lambda result: None)

    def second(self, changes: Sequence[Change]) -> Statement[list[int]]:
        """Return the statement for the second half, with the Timestamps of all changes; raises NotInHalves."""
        parameters = self._rows(self._count, changes)
        count = self._count + len(changes)

        def read(result: Result) -> list[int]:
            return [integer_at(result, 0, 0)] * count

        return Statement(_second_half(self._relation), parameters, Lane.KEY, read)

    def _rows(self, place: int, changes: Sequence[Change]) -> Parameters:
        rows = [_row(self._relation, place + index, change) for index, change in enumerate(changes)]
        keys = [self._last_key, *(row.key.row_key for _, row in rows)]
        if any(operation != "insert" for operation, _ in rows) or keys != sorted(keys):
            raise NotInHalves
        self._last_key = keys[-1]
        places = range(place, place + len(rows))
        return _parameters(places, None, [row for _, row in rows], self._recorder)


@lru_cache(maxsize=1024)
def _first_half(relation: str) -> str:
    call = change_function.call(relation)
    return f"SELECT set_config('{_MOMENT}', applied[1]::text, true) FROM ({call} AS applied) AS first_half"


@lru_cache(maxsize=1024)
def _second_half(relation: str) -> str:
    """Return SQL that fails if the Timestamp differs, as a function of an older version would cause."""
    call = change_function.call(relation)
    is_same = f"applied[1]::text = current_setting('{_MOMENT}')"
    return f"SELECT applied[1] / ({is_same})::integer FROM ({call} AS applied) AS second_half"


def _parameters(
    places: Sequence[int],
    operations: Sequence[str] | None,
    rows: Sequence[ChangeRow],
    recorder: Recorder | None,
) -> Parameters:
    return (
        rows[0].key.partition_key,
        *change_function.columns(places, operations, rows),
        *change_function.recording(recorder),
    )


def _row(relation: str, index: int, change: Change) -> tuple[str, ChangeRow]:
    """Return operation and row of a change; raises ChangeSetError with its index."""
    try:
        row = change_row(change)
        return row.operation(relation), row
    except StorageError as error:
        raise ChangeSetError(index, error) from None
