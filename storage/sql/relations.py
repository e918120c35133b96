"""The relation of a table: its name, creation, soft deletion and removal.

Each table has a relation of its own, so that dropping it is a DROP, and scans, statistics and indexes are per table::

    create table entity_17 (
      pk    text collate "C" not null,  -- PartitionKey
      rk    text collate "C" not null,  -- RowKey
      ts    bigint not null,            -- Timestamp and ETag in ticks of 100 ns: moments.py
      props jsonb not null,             -- typed projection, for filters
      anns  text not null,              -- empty but in rows that 1.0 wrote: content.py
      vals  text not null,              -- the exact text that is sent: content.py
      primary key (pk, rk)
    );
    create index on entity_17 using gin (props jsonb_path_ops);  -- every equality filter

Long keys are in a child (long_keys.py), indexes of properties in indexes.py. Ticks are integers because the service has
seven digits of a second and PostgreSQL six.

Key columns have the collation "C": rows are in the order of UTF-8 bytes, which is code-point order. The service orders
by UTF-16 code units; the two differ only for characters above U+FFFF (the service puts them before U+E000). Matching
it would need another encoding of keys, and decoding every key of every page.
"""

from collections.abc import Iterable
from typing import Final

from storage.domain.values.kinds import AccountKind
from storage.sql import batch
from storage.sql.django import fetch
from storage.sql.forms import DELETED, HasRelation, has_other_form, locally
from storage.sql.forms import relation_name as relation_name
from storage.sql.history import writers_name

# The GIN index supports every equality filter. It prevents HOT updates, so vacuum runs earlier than by default. Rows
# are stored uncompressed up to half a page: the default of 2 kB would compress most entities, at 10 µs each.
_STORAGE: Final = """WITH (
    toast_tuple_target = 4080,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
)"""
# the function is the same for every table, and reading it takes a fifth of the time of a creation
_UNCHECKED: Final = "SET LOCAL check_function_bodies = off;"
CREATE: Final = f"CREATE TABLE {{relation}} (LIKE entity_template INCLUDING ALL) {_STORAGE}"
_CREATE_BARE: Final = f"CREATE TABLE {{relation}} (LIKE entity_template) {_STORAGE};"
_INDEX_MEMORY: Final = "256MB"  # to make the indexes of a relation that is filled
_ADD_KEY: Final = "ALTER TABLE {relation} ADD PRIMARY KEY (pk, rk);"
ADD_PROPERTIES: Final = "CREATE INDEX ON {relation} USING gin (props jsonb_path_ops)"
# first key of the advisory lock that a process has while it makes an index of a table; the second is the table's id
INDEXING: Final = 0x7461626D
# so that no writer waits for a new index
CANCEL_INDEXING: Final = f"""
SELECT pg_cancel_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = {INDEXING} AND objid = {{table_id}}
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
"""
_SOFT_DELETE: Final = f"""
{CANCEL_INDEXING};
ALTER TABLE {{relation}} RENAME TO {{deleted}};
ALTER TABLE IF EXISTS {{relation}}_long RENAME TO {{deleted}}_long;
"""
_RESTORE: Final = """
ALTER TABLE {deleted} RENAME TO {relation};
ALTER TABLE IF EXISTS {deleted}_long RENAME TO {relation}_long;
"""

_WITHOUT_FUNCTION: Final = f"""
SELECT id FROM storage_table
WHERE deleted_at IS NULL AND NOT {has_other_form("storage_table")}
    AND to_regclass('entity_' || id) IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_proc
    WHERE proname = 'entity_' || storage_table.id || '_change_set' AND pronamespace = current_schema()::regnamespace
)"""


def relation_of(table: HasRelation) -> str:
    """Return the name of the relation of a table that is not deleted."""
    return table.form.relation(table.pk)


def deleted_name(relation: str) -> str:
    return f"{DELETED}{relation}"


def source_name(relation: str, *, is_deleted: bool) -> str:
    """Return the name of the relation with a table's entities, deleted or not."""
    return deleted_name(relation) if is_deleted else relation


def drop_local_function(relation: str) -> str:
    return locally(batch.drop_function(relation))


def create(table_id: int, account_id: int, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Return SQL that creates a table's relation, recording changes in the account's history."""
    relation = relation_name(table_id)
    return f"{CREATE};{ADD_PROPERTIES};".format(relation=relation) + create_function(
        table_id, account_id, kind
    )


def find_without_function(table_id: int | None = None) -> list[int]:
    """Return the tables created by a server of an older version, without the current function."""
    only = "" if table_id is None else f" AND id = {int(table_id)}"
    return [found for (found,) in fetch(_WITHOUT_FUNCTION + only)]


def create_function(table_id: int, account_id: int, kind: AccountKind) -> str:
    """Return SQL that creates the function of the relation of a table."""
    return _UNCHECKED + locally(
        batch.create_function(relation_name(table_id), writers_name(account_id), kind)
    )


def create_bare(table_id: int) -> str:
    """Return SQL that creates a relation without indexes, to be filled before ``complete``."""
    return _CREATE_BARE.format(relation=relation_name(table_id))


def complete(table_id: int, account_id: int, kind: AccountKind) -> str:
    """Return SQL that adds the indexes and function left out by create_bare, twice as fast for many rows."""
    relation = relation_name(table_id)
    function = locally(batch.create_function(relation, writers_name(account_id), kind))
    indexes = f"{_ADD_KEY}{ADD_PROPERTIES};".format(relation=relation)
    return f"SET LOCAL maintenance_work_mem = '{_INDEX_MEMORY}';{indexes}ANALYZE {relation};{function}"


def soft_delete(table_id: int) -> str:
    """Return SQL that hides the relation by renaming it, without waiting for index builds."""
    relation = relation_name(table_id)
    renaming = _SOFT_DELETE.format(table_id=table_id, relation=relation, deleted=deleted_name(relation))
    return renaming + drop_local_function(relation)


def restore(table_id: int, account_id: int, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Return SQL that reverts soft_delete."""
    relation = relation_name(table_id)
    renaming = _RESTORE.format(deleted=deleted_name(relation), relation=relation)
    return renaming + locally(batch.create_function(relation, writers_name(account_id), kind))


def drop(table_ids: Iterable[int]) -> str:
    """Return SQL that drops soft-deleted relations with their functions."""
    names = [relation_name(table_id) for table_id in table_ids]
    both = ", ".join(f"{deleted_name(name)}_long, {deleted_name(name)}" for name in names)
    functions = "; ".join(batch.drop_function(name) for name in names)
    return f"DROP TABLE IF EXISTS {both}; {locally(functions)}"
