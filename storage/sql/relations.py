"""The relation of a table: its name, its birth and its end.

Key columns collate "C": rows are in the order of UTF-8 bytes, which is code-point order. The service orders by
UTF-16 code units; the two differ only in where characters above U+FFFF stand (the service puts them before U+E000).
Storing keys in another form would make that right at the price of decoding every key of every page: not done.
"""

from typing import Final

from storage.sql import batch

# Every equality filter is served by the GIN index. Updates are not HOT with it, so vacuum comes earlier than
# usual. Rows are kept whole up to half a page: the usual 2 kB would compress most entities, at 10 µs each.
_CREATE: Final = """
CREATE TABLE {relation} (LIKE entity_template INCLUDING ALL) WITH (
    toast_tuple_target = 4080,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX ON {relation} USING gin (props jsonb_path_ops);
"""


def relation_name(table_id: int) -> str:
    return f"entity_{table_id}"


def deleted_name(table_id: int) -> str:
    return f"deleted_entity_{table_id}"


def create(table_id: int) -> str:
    """SQL that makes the relation of a new table."""
    relation = relation_name(table_id)
    return _CREATE.format(relation=relation) + batch.create_function(relation)


def soft_delete(table_id: int) -> str:
    """SQL that takes the relation out of every statement's reach at once, however large it is."""
    relation = relation_name(table_id)
    return f"ALTER TABLE {relation} RENAME TO {deleted_name(table_id)}; {batch.drop_function(relation)}"


def restore(table_id: int) -> str:
    """SQL that undoes bury."""
    relation = relation_name(table_id)
    return f"ALTER TABLE {deleted_name(table_id)} RENAME TO {relation};" + batch.create_function(relation)


def drop(table_id: int) -> str:
    """SQL that gives back the space of a buried relation."""
    return f"DROP TABLE IF EXISTS {deleted_name(table_id)}"
