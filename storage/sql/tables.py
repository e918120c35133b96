"""Statements that create and delete tables, each in one round trip.

A table that a client creates is a row at first: its relation is pending. It is made when the table is first used, by
``make``, or some seconds later. A table that is deleted before never has one. Wherever a row of a table is loaded, its
relation is made, so that only the statements here, and those that list names, meet a table without one.

A deletion renames the relation, so that a process with an old catalog does not find it: its writes would be lost. For
a table whose relation is pending, such a process locks the row to make it, and finds it deleted.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from storage.core.relation_forms import LOCAL
from storage.domain.errors import TableAlreadyExists
from storage.domain.values.kinds import AccountKind
from storage.sql import moments, relations
from storage.sql.django import fetch
from storage.sql.forms import has_other_form
from storage.sql.notify import CHANNEL, TABLE
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

# the present as a time, also after a statement has waited for a lock
_PRESENT: Final = moments.as_time(moments.PRESENT)
_RELATION: Final = LOCAL.prefix


class Note(NamedTuple):
    """Columns of an activity that do not depend on its table."""

    at: datetime
    verb: str
    account_name: str
    actor_kind: str
    actor: str
    address: str
    agent: str
    request_id: str
    detail: str  # JSON


_COLUMNS: Final = ", ".join(Note._fields)
_NOTE: Final = ", ".join(f"note_{name}" for name in Note._fields)
_RECORD_DELETION: Final = f"""\
INSERT INTO storage_activity ({_COLUMNS}, account_id, table_id, table_name, before) \
VALUES ({_NOTE}, of_account, known.id, known.name,
            jsonb_build_object('description', known.description, 'tags', known.tags))"""
_NOTE_TYPES: Final = {"at": "timestamptz", "detail": "jsonb"}
_NOTE_PARAMETERS: Final = ", ".join(f"note_{name} {_NOTE_TYPES.get(name, 'text')}" for name in Note._fields)

CREATE_FUNCTIONS: Final = f"""
CREATE OR REPLACE FUNCTION create_table(
    of_account bigint, new_name text, new_folded text, about text, new_tags jsonb, {_NOTE_PARAMETERS},
    OUT new_id bigint, OUT created timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
BEGIN
    INSERT INTO storage_table (account_id, name, folded_name, created_at, description, tags, relation_pending)
    VALUES (of_account, new_name, new_folded, {_PRESENT}, about, new_tags, true)
    ON CONFLICT DO NOTHING
    RETURNING id, created_at INTO new_id, created;
    IF new_id IS NULL THEN
        RETURN;
    END IF;
    IF clock_timestamp() - began >= interval '100 us' THEN
        -- it may have waited for the deletion of a table with this name
        created := {_PRESENT};
        UPDATE storage_table SET created_at = created WHERE id = new_id;
    END IF;
    INSERT INTO storage_activity ({_COLUMNS}, account_id, table_id, table_name)
    VALUES ({_NOTE}, of_account, new_id, new_name);
END
$$;
CREATE OR REPLACE FUNCTION make_relation(of_table bigint, ddl text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM storage_table WHERE id = of_table AND relation_pending AND deleted_at IS NULL FOR NO KEY UPDATE;
    IF FOUND THEN
        EXECUTE ddl;
        UPDATE storage_table SET relation_pending = false WHERE id = of_table;
    END IF;
END
$$;
-- without ``keep``, a table with entities is kept for as long as the history of its account
CREATE OR REPLACE FUNCTION remove_table(
    of_table bigint, keep interval, most_kept integer, OUT is_deleted boolean, OUT kept interval
) LANGUAGE plpgsql AS $$
DECLARE
    known record;
    relation text := '{_RELATION}' || of_table;
    deleted text := '{relations.deleted_name(_RELATION)}' || of_table;
    has_long boolean;
    is_used boolean := false;
    present timestamptz;
BEGIN
    SELECT t.account_id, t.folded_name, t.relation_pending, a.history_days INTO known
    FROM storage_table AS t JOIN storage_account AS a ON a.id = t.account_id
    WHERE t.id = of_table AND t.deleted_at IS NULL FOR UPDATE OF t;
    is_deleted := FOUND;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    IF NOT known.relation_pending THEN
        IF NOT pg_try_advisory_xact_lock({relations.INDEXING}, of_table::integer) THEN
            PERFORM * FROM ({relations.CANCEL_INDEXING.format(table_id="of_table")}) AS cancelled;
        END IF;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', relation, deleted);
        has_long := to_regclass(relation || '_long') IS NOT NULL;
        IF has_long THEN
            EXECUTE format('ALTER TABLE %I RENAME TO %I', relation || '_long', deleted || '_long');
        END IF;
        IF keep IS NULL AND (has_long OR pg_relation_size(deleted::regclass) > 0) THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %I)', deleted) INTO is_used;
        END IF;
    END IF;
    kept := keep;
    -- while the relation is locked, so that a reader of the past waits for it: see storage.sql.moments
    present := {_PRESENT};
    IF is_used AND known.history_days > 0 THEN
        kept := make_interval(days => known.history_days);
        -- clients that make and delete tables all day may not fill the disk
        UPDATE storage_table SET kept_until = present WHERE id IN (
            SELECT id FROM storage_table WHERE account_id = known.account_id AND kept_until > present
            ORDER BY deleted_at DESC OFFSET most_kept - 1
        );
    END IF;
    UPDATE storage_table SET deleted_at = present, kept_until = present + kept WHERE id = of_table;
    PERFORM pg_notify('{CHANNEL}', '{TABLE} ' || known.account_id || ' ' || known.folded_name);
END
$$;
CREATE OR REPLACE FUNCTION delete_table(
    of_account bigint, of_name text, most_kept integer, {_NOTE_PARAMETERS}, OUT is_deleted boolean
) LANGUAGE plpgsql AS $$
DECLARE
    known record;
    gone record;
BEGIN
    -- A table whose relation is pending has nothing, and no other process has it in its catalog. As an integer, because
    -- PostgreSQL would look through the index of all such tables, which has the deleted ones too.
    UPDATE storage_table AS t SET deleted_at = {_PRESENT}
    WHERE t.account_id = of_account AND t.folded_name = of_name AND t.deleted_at IS NULL
        AND t.relation_pending::integer = 1
    RETURNING t.id, t.name, t.description, t.tags INTO known;
    is_deleted := FOUND;
    IF is_deleted THEN
        {_RECORD_DELETION};
        RETURN;
    END IF;
    SELECT t.id, t.name, t.description, t.tags INTO known FROM storage_table AS t
    WHERE t.account_id = of_account AND t.folded_name = of_name AND t.deleted_at IS NULL
        AND NOT {has_other_form("t")}
        AND NOT EXISTS (SELECT FROM storage_storedaccesspolicy AS p WHERE p.table_id = t.id);
    is_deleted := FOUND;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    SELECT * INTO gone FROM remove_table(known.id, NULL, most_kept);
    is_deleted := gone.is_deleted;
    IF NOT is_deleted THEN
        RETURN;
    END IF;
    IF gone.kept IS NOT NULL THEN
        note_detail := note_detail || jsonb_build_object('kept_days', extract(day FROM gone.kept)::integer);
    END IF;
    {_RECORD_DELETION};
END
$$;
"""
DROP_FUNCTIONS: Final = "DROP FUNCTION create_table, make_relation, remove_table, delete_table"


def _call(function: str, *types: str) -> str:
    """Return SQL that calls a function with parameters of these types and the columns of a note."""
    types = (*types, *(_NOTE_TYPES.get(name, "text") for name in Note._fields))
    parameters = ", ".join(f"${number}::{type_}" for number, type_ in enumerate(types, 1))
    return f"SELECT result.* FROM {function}({parameters}) AS result"


_CREATE: Final = _call("create_table", "bigint", "text", "text", "text", "jsonb")
_CREATE_IN_TICKS: Final = f"SELECT new_id, {moments.ticks('created')} FROM ({_CREATE}) AS made"
_DELETE: Final = _call("delete_table", "bigint", "text", "integer")


_FORGET: Final = """
DELETE FROM storage_table WHERE id = ANY (%s) AND relation_pending AND deleted_at IS NOT NULL RETURNING id
"""


class CreatedTable(NamedTuple):
    id: int
    ticks: int  # when it was created


def create(
    account_id: int, name: str, folded_name: str, description: str, tags: str, note: Note
) -> Statement[CreatedTable]:
    """Create a table whose relation is pending; raises TableAlreadyExists, or ServerBusy if the account was deleted."""

    def read(result: Result) -> CreatedTable:
        if result.get_value(0, 0) is None:
            raise TableAlreadyExists
        return CreatedTable(integer_at(result, 0, 0), integer_at(result, 0, 1))

    parameters = (str(account_id), name, folded_name, description, tags, note.at.isoformat(), *note[1:])
    return Statement(_CREATE_IN_TICKS, parameters, Lane.KEY, read)


def delete(account_id: int, folded_name: str, most_kept: int, note: Note) -> Statement[bool]:
    """Delete a local table without policies; the result is False if there is none, and nothing was done."""
    parameters = (str(account_id), folded_name, str(most_kept), note.at.isoformat(), *note[1:])
    return Statement(_DELETE, parameters, Lane.KEY, lambda result: text_at(result, 0, 0) == "t")


def delete_now(table_id: int, keep: timedelta | None, most_kept: int) -> tuple[bool, timedelta | None]:
    """Delete a local table without an activity; return whether it was there, and how long it is kept."""
    [(is_deleted, kept)] = fetch("SELECT * FROM remove_table(%s, %s, %s)", table_id, keep, most_kept)
    return is_deleted, kept


def forget(table_ids: Sequence[int]) -> int:
    """Delete the rows of deleted tables that never had a relation, which nothing refers to; return their number."""
    return len(fetch(_FORGET, list(table_ids)))


def make(table_id: int, account_id: int, kind: AccountKind) -> Statement[None]:
    """Make the relation of a table if it is pending and the table is not deleted."""
    ddl = relations.create(table_id, account_id, kind)
    return Statement(
        "SELECT make_relation($1::bigint, $2)", (str(table_id), ddl), Lane.KEY, lambda result: None
    )
