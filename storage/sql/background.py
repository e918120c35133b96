"""What jobs beside the requests need of PostgreSQL."""

from typing import Final, NamedTuple

from django.db import connection

from storage.sql.relations import relation_name

_ANALYTICS: Final = 0x7461626C65726F03  # key of an advisory lock; see notify for its neighbours


def commit_soon() -> None:
    """The current transaction does not wait for the disk: a crash of PostgreSQL may lose it, up to 0.6 s later."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")


def is_alone() -> bool:
    """Whether no other process keeps the books; then none does until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_ANALYTICS,))
        row = cursor.fetchone()
    return row is not None and row[0] is True


def delete_before(table_id: int, partition_key: str) -> None:
    """Deletes the entities of a table in the partitions before this one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {relation_name(table_id)} WHERE pk < %s", (partition_key,))


class Size(NamedTuple):
    """Bytes on the disk with indexes, and about how many rows there are."""

    capacity: int
    rows: int


def sizes() -> dict[int, Size]:
    """By the id of the table, of all tables; from the catalog and the statistics, without reading any."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZES)
        return {table_id: Size(capacity, rows) for table_id, capacity, rows in cursor.fetchall()}


_SIZES: Final = """
SELECT t.id, pg_total_relation_size(s.relid), greatest(s.n_live_tup, c.reltuples, 0)::bigint
FROM storage_table AS t
JOIN pg_stat_user_tables AS s ON s.relname = 'entity_' || t.id AND s.schemaname = current_schema()
JOIN pg_class AS c ON c.oid = s.relid
WHERE t.deleted_at IS NULL
"""
