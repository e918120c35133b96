"""What jobs beside the requests need of PostgreSQL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from zlib import crc32

from django.db import connection

from storage.sql.relations import relation_name
from storage.sql.statement import Lane, Result, Statement

_JOBS: Final = 0x7461626C  # first key of advisory locks: any number that nobody else uses


@contextmanager
def try_job_lock(job: str) -> Iterator[bool]:
    """Whether no other process is at this job; until the end of the block none will be."""
    keys = (_JOBS, crc32(job.encode()) - 2**31)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", keys)
        row = cursor.fetchone()
    if row is None or row[0] is not True:
        yield False
        return
    try:
        yield True
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", keys)


def commit_asynchronously() -> None:
    """The current transaction does not wait for the disk: a crash of PostgreSQL may lose it, up to 0.6 s later."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")


def delete_before(table_id: int, partition_key: str) -> None:
    """Deletes the entities of a table in the partitions before this one."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {relation_name(table_id)} WHERE pk < %s", (partition_key,))


def has_rows(table_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM {relation_name(table_id)})")
        row = cursor.fetchone()
    return row is not None and row[0] is True


class Size(NamedTuple):
    """Bytes on the disk with indexes, and about how many rows there are."""

    capacity: int
    rows: int


def sizes(account_id: int) -> list[tuple[str, Size]]:
    """Of an account's tables with their folded names; from catalog and statistics, without reading any."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZES, (account_id,))
        return [(name, Size(capacity, rows)) for name, capacity, rows in cursor.fetchall()]


def sizes_of(table_ids: Sequence[int]) -> dict[int, Size]:
    """Of these tables."""
    relations = {relation_name(table_id): table_id for table_id in table_ids}
    with connection.cursor() as cursor:
        cursor.execute(_SIZES_OF, (list(relations),))
        return {relations[name]: Size(capacity, rows) for name, capacity, rows in cursor.fetchall()}


class Totals(NamedTuple):
    tables: int
    rows: int
    capacity: int


def totals(account_ids: Sequence[int]) -> dict[int, Totals]:
    """What the tables of these accounts come to; from catalog and statistics, without reading any."""
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS, {"accounts": list(account_ids), "many": _MANY})
        return {account_id: Totals(*numbers) for account_id, *numbers in cursor.fetchall()}


def count_up_to(table_ids: Sequence[int], most: int) -> Statement[dict[int, int]]:
    """How many rows these tables have, ``most`` at most."""
    counts = [
        f"SELECT {table_id}, (SELECT count(*) FROM (SELECT FROM {relation_name(table_id)} LIMIT {most}) AS few)"
        for table_id in table_ids
    ]

    def read(result: Result) -> dict[int, int]:
        return {_integer(result, row, 0): _integer(result, row, 1) for row in range(result.ntuples)}

    return Statement(" UNION ALL ".join(counts), (), Lane.FILTER, read)


def partitions_up_to(table_ids: Sequence[int], most: int) -> Statement[dict[int, tuple[int, int]]]:
    """How many rows these tables have, ``most`` at most, and in how many partitions those are."""
    counts = [
        f"SELECT {table_id}, count(*), count(DISTINCT pk)"
        f" FROM (SELECT pk FROM {relation_name(table_id)} LIMIT {most}) AS few"
        for table_id in table_ids
    ]

    def read(result: Result) -> dict[int, tuple[int, int]]:
        return {
            _integer(result, row, 0): (_integer(result, row, 1), _integer(result, row, 2))
            for row in range(result.ntuples)
        }

    return Statement(" UNION ALL ".join(counts), (), Lane.FILTER, read)


def partitions_of(table_ids: Sequence[int]) -> dict[int, int]:
    """About how many partitions these tables have; one that was never analyzed is not among them."""
    relations = {relation_name(table_id): table_id for table_id in table_ids}
    with connection.cursor() as cursor:
        cursor.execute(_PARTITIONS_OF, (list(relations),))
        return {relations[name]: partitions for name, partitions in cursor.fetchall()}


def disk_usage(table_id: int) -> tuple[int, int, int]:
    """Bytes on the disk: of the rows, of the index over the keys, of that over the properties."""
    with connection.cursor() as cursor:
        cursor.execute(_DISK_USAGE, {"name": relation_name(table_id)})
        row = cursor.fetchone()
    return row if row is not None else (0, 0, 0)


def _integer(result: Result, row: int, column: int) -> int:
    value = result.get_value(row, column)
    assert value is not None
    return int(value)


# the size of a relation that is dropped meanwhile is null
_SIZES_OF: Final = """
SELECT s.relname, coalesce(pg_total_relation_size(s.relid), 0), greatest(s.n_live_tup, c.reltuples, 0)::bigint
FROM pg_stat_user_tables AS s
JOIN pg_class AS c ON c.oid = s.relid
WHERE s.relname = ANY (%s) AND s.schemaname = current_schema()
"""

# the statistics tell a number, or where it grows with the rows a share of them, as a negative one
_PARTITIONS_OF: Final = """
SELECT c.relname, CASE WHEN s.n_distinct < 0 THEN -s.n_distinct * c.reltuples ELSE s.n_distinct END::bigint
FROM pg_class AS c
JOIN pg_stats AS s ON s.schemaname = current_schema() AND s.tablename = c.relname AND s.attname = 'pk'
WHERE c.relname = ANY (%s) AND c.relnamespace = current_schema()::regnamespace AND c.reltuples >= 0
"""

_DISK_USAGE: Final = """
SELECT coalesce(pg_table_size(c.oid), 0),
    coalesce(sum(pg_relation_size(i.indexrelid)) FILTER (WHERE i.indisprimary), 0)::bigint,
    coalesce(sum(pg_relation_size(i.indexrelid)) FILTER (WHERE NOT i.indisprimary), 0)::bigint
FROM pg_class AS c
LEFT JOIN pg_index AS i ON i.indrelid = c.oid
WHERE c.relname = %(name)s AND c.relnamespace = current_schema()::regnamespace
GROUP BY c.oid
"""

_SIZES: Final = """
SELECT t.folded_name, coalesce(pg_total_relation_size(s.relid), 0), greatest(s.n_live_tup, c.reltuples, 0)::bigint
FROM storage_table AS t
JOIN pg_stat_user_tables AS s ON s.relname = 'entity_' || t.id AND s.schemaname = current_schema()
JOIN pg_class AS c ON c.oid = s.relid
WHERE t.account_id = %s AND t.deleted_at IS NULL
"""

_MANY: Final = 2000  # tables; to ask the disk for the size of each would take too long

_TOTALS: Final = """
WITH found AS (
    SELECT
        t.account_id, c.oid, c.reltuples, c.relpages,
        count(*) OVER (PARTITION BY t.account_id) > %(many)s AS are_many
    FROM storage_table AS t
    JOIN pg_class AS c ON c.relname = 'entity_' || t.id AND c.relnamespace = current_schema()::regnamespace
    WHERE t.account_id = ANY (%(accounts)s) AND t.deleted_at IS NULL AND NOT starts_with(t.folded_name, '$')
)
SELECT
    account_id,
    count(*),
    sum(greatest(pg_stat_get_live_tuples(oid), reltuples, 0))::bigint,
    sum(
        CASE
            WHEN are_many THEN relpages * current_setting('block_size')::bigint
            ELSE coalesce(pg_total_relation_size(oid), 0)
        END
    )::bigint
FROM found
GROUP BY account_id
"""
