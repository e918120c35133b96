"""Locks, clean-up and statistics for background work and size estimates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple
from zlib import crc32

from django.db import connection
from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

from storage.sql.django import execute, fetch, in_session, losing_locks
from storage.sql.forms import HasRelation, by_form, has_other_form, relation_of_row
from storage.sql.relations import relation_name, relation_of
from storage.sql.statement import Lane, Result, Statement, integer_at, read_numbers

_JOBS: Final = 0x7461626C  # first key of advisory locks, an arbitrary number


@contextmanager
def try_job_lock(job: str) -> Iterator[bool]:
    """Try to hold an inter-process lock on a job during the block; yield whether it was acquired."""
    with try_lock(_JOBS, _job_key(job)) as is_locked:
        yield is_locked


def job_lock_holder(job: str) -> int | None:
    """Return the backend process id that holds a job's lock; None if it is free."""
    rows = fetch(_LOCK_HOLDER, _JOBS, _job_key(job) % 2**32)
    return int(rows[0][0]) if rows else None


def _job_key(job: str) -> int:
    return crc32(job.encode()) - 2**31


@contextmanager
def try_lock(*keys: int) -> Iterator[bool]:
    """Try to hold an advisory lock, two integers, during the block; yield whether it was acquired."""
    with in_session():
        [(is_locked,)] = fetch("SELECT pg_try_advisory_lock(%s, %s)", *keys)
        if not is_locked:
            yield False
            return
        try:
            with losing_locks():
                yield True
        finally:
            execute("SELECT pg_advisory_unlock(%s, %s)", *keys)


ASYNCHRONOUS: Final = "SET LOCAL synchronous_commit = off"


def commit_asynchronously() -> None:
    """Commit the current transaction asynchronously: a crash of PostgreSQL may lose the last 0.6 s."""
    execute(ASYNCHRONOUS)


@contextmanager
def allowing_deletion() -> Iterator[None]:
    """Allow deletions from the activity log in the block, which a trigger otherwise refuses."""
    execute("SET LOCAL tablero.tidying = 'on'")
    try:
        yield
    finally:
        if not connection.needs_rollback:
            execute("SET LOCAL tablero.tidying = 'off'")


def has_rows(table: HasRelation) -> bool:
    extension = table.form.extension
    if extension is not None and connection.in_atomic_block:
        # else the read could keep the transaction from changing the relation and its function
        execute(extension.before_scan)
    return bool(fetch(f"SELECT 1 FROM {relation_of(table)} LIMIT 1"))


def add_up(
    relation: str,
    keys: Mapping[str, str],
    numbers: Mapping[str, str],
    rows: Iterable[tuple[object, ...]],
    latest: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Upsert rows, adding numbers and replacing their ``latest`` columns."""
    columns = {**keys, **numbers, **latest}
    given = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    changes = [f"{name} = known.{name} + excluded.{name}" for name in numbers]
    added = ", ".join(changes + [f"{name} = excluded.{name}" for name in latest])
    execute(
        f"INSERT INTO {relation} AS known ({', '.join(columns)}) SELECT * FROM unnest({given})"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added}",
        *map(list, zip(*rows, strict=True)),
    )


def set_written(moments: Mapping[int, datetime]) -> set[int]:
    """Set the last write of tables; return the ids that were updated, skipping locked rows."""
    return {table_id for (table_id,) in fetch(_SET_WRITTEN, list(moments), list(moments.values()))}


class Size(NamedTuple):
    """Bytes on disk including indexes, and the estimated number of rows."""

    capacity: int
    rows: int
    is_measured_here: bool = True


def sizes_of(table_ids: Sequence[int]) -> dict[int, Size]:
    """Return the sizes of tables by id, from PostgreSQL's statistics."""
    relations = {relation_name(table_id): table_id for table_id in table_ids}
    found = fetch(_SIZES_OF, list(relations), list(table_ids))
    return {relations[name]: Size(*size) for name, *size in found}


def estimated_rows(table_id: int) -> int:
    """Return the estimated number of rows of a table, at least one."""
    size = sizes_of([table_id]).get(table_id)
    return max(1, size.rows) if size is not None else 1


class Contents(NamedTuple):
    """The contents of an account."""

    tables: int = 0
    entities: int = 0  # an estimate
    size: int = 0  # bytes on disk; estimated if there are many tables
    is_empty: bool = True  # there certainly are no entities, whereas an estimate of 0 may lag behind


def totals(account_ids: Sequence[int]) -> dict[int, Contents]:
    """Return the sums over each account's tables, from PostgreSQL's statistics."""
    found = fetch(_TOTALS, _MANY, list(account_ids))
    return {account_id: Contents(*numbers) for account_id, *numbers in found}


def count_up_to(table_ids: Sequence[int], most: int) -> Statement[dict[int, int]]:
    """Count the rows of each table, up to ``most``."""
    return Statement(_of_each(table_ids, "count(*)", most), (), Lane.FILTER, read_numbers)


def partitions_up_to(table_ids: Sequence[int], most: int) -> Statement[dict[int, tuple[int, int]]]:
    """Count the rows of each table, up to ``most``, and the partitions of those rows."""

    def read(result: Result) -> dict[int, tuple[int, int]]:
        return {
            integer_at(result, row, 0): (integer_at(result, row, 1), integer_at(result, row, 2))
            for row in range(result.ntuples)
        }

    return Statement(_of_each(table_ids, "count(*), count(DISTINCT pk)", most), (), Lane.FILTER, read)


def _of_each(table_ids: Sequence[int], selected: str, most: int) -> str:
    """Return SQL that selects something from the first rows of each table."""
    return " UNION ALL ".join(
        f"SELECT {table_id}, {selected} FROM (SELECT pk FROM {relation_name(table_id)} LIMIT {most}) AS few"
        for table_id in table_ids
    )


def partitions_of(table_ids: Sequence[int]) -> dict[int, int]:
    """Estimate the partitions of tables, skipping those never analyzed."""
    return _distinct_of("pk", table_ids)


def row_keys_of(table_id: int) -> int | None:
    """Estimate the different RowKeys of a table; None if it was never analyzed."""
    return _distinct_of("rk", [table_id]).get(table_id)


def _distinct_of(column: str, table_ids: Sequence[int]) -> dict[int, int]:
    relations = {relation_name(table_id): table_id for table_id in table_ids}
    return {relations[name]: number for name, number in fetch(_DISTINCT_OF, column, list(relations))}


class DiskUsage(NamedTuple):
    """Disk usage of a table by part, in bytes."""

    entities: int = 0
    key_index: int = 0
    property_index: int = 0


def disk_usage(table_id: int) -> DiskUsage:
    rows = fetch(_DISK_USAGE, relation_name(table_id))
    return DiskUsage(*rows[0]) if rows else DiskUsage()


_LOCK_HOLDER: Final = """
SELECT pid FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid::bigint = %s AND objid::bigint = %s AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# SKIP LOCKED: never waiting for a lock rules out deadlocks
_SET_WRITTEN: Final = """
WITH new AS (SELECT * FROM unnest(%s::bigint[], %s::timestamptz[]) AS given (id, moment)), locked AS (
    SELECT t.id FROM storage_table AS t WHERE t.id IN (SELECT id FROM new) FOR NO KEY UPDATE SKIP LOCKED
), changed AS (
    UPDATE storage_table AS t SET written_at = greatest(t.written_at, new.moment)
    FROM new, locked
    WHERE t.id = new.id AND t.id = locked.id
)
SELECT id FROM locked
"""

# the size of a relation that was just dropped is null; entities with long keys are in a child: storage.sql.long_keys
_LONG_SIZE: Final = "coalesce(pg_total_relation_size(long.inhrelid), 0)"
_SIZE: Final = f"coalesce(pg_total_relation_size(c.oid), 0) + {_LONG_SIZE}"
# the functions below pg_stat_user_tables: the view looks at all relations of the database when it is joined
_ROWS: Final = "greatest(pg_stat_get_live_tuples(c.oid), c.reltuples, 0)::bigint"
_LONG_ROWS: Final = "coalesce(pg_stat_get_live_tuples(long.inhrelid), 0)"
_LONG: Final = "LEFT JOIN pg_inherits AS long ON long.inhparent = c.oid"

# values that the row of a table keeps of a relation that is not measured here
_KEPT_BYTES: Final = by_form("t", "bytes_column", "0")
_KEPT_ROWS: Final = by_form("t", "rows_column", "0")

_SIZES_OF: Final = f"""
SELECT c.relname, {_SIZE}, {_ROWS} + {_LONG_ROWS}, true
FROM pg_class AS c
{_LONG}
WHERE c.relname = ANY (%s) AND c.relnamespace = current_schema()::regnamespace
-- of a relation whose rows are elsewhere, what was last found there
UNION ALL SELECT 'entity_' || t.id, {_KEPT_BYTES}, {_KEPT_ROWS}, false FROM storage_table AS t
WHERE {has_other_form("t")} AND t.id = ANY (%s)
"""

# n_distinct is a number, or the negative share of rows if it grows with them
_DISTINCT_OF: Final = """
SELECT c.relname, CASE WHEN s.n_distinct < 0 THEN -s.n_distinct * c.reltuples ELSE s.n_distinct END::bigint
FROM pg_class AS c
JOIN pg_stats AS s ON s.schemaname = current_schema() AND s.tablename = c.relname AND s.attname = %s
WHERE c.relname = ANY (%s) AND c.relnamespace = current_schema()::regnamespace AND c.reltuples >= 0 AND NOT s.inherited
"""

_DISK_USAGE: Final = f"""
SELECT coalesce(pg_table_size(c.oid), 0) + coalesce(pg_table_size(long.inhrelid), 0),
    coalesce(sum(pg_relation_size(i.indexrelid)) FILTER (WHERE is_key), 0)::bigint,
    coalesce(sum(pg_relation_size(i.indexrelid)) FILTER (WHERE NOT is_key), 0)::bigint
FROM pg_class AS c
{_LONG}
LEFT JOIN pg_index AS i ON i.indrelid IN (c.oid, long.inhrelid)
-- pk and rk are the first columns
LEFT JOIN LATERAL (SELECT i.indisunique OR i.indkey[0] IN (1, 2) AS is_key) AS kind ON true
WHERE c.relname = %s AND c.relnamespace = current_schema()::regnamespace
GROUP BY c.oid, long.inhrelid
"""

_OF_RELATION: Final = f"""(
CASE WHEN {has_other_form("storage_table")} THEN {{known}} ELSE (
    SELECT {{value}} FROM pg_class AS c
    {_LONG}
    WHERE c.relname = 'entity_' || storage_table.id AND c.relnamespace = current_schema()::regnamespace
) END)"""


def _of_relation(value: str, known: str) -> RawSQL:
    text = _OF_RELATION.format(value=value, known=known)
    return RawSQL(text, (), output_field=BigIntegerField())  # noqa: S611  a constant


# to order tables by
ESTIMATED_ROWS: Final = _of_relation(
    f"greatest(pg_stat_get_live_tuples(c.oid), c.reltuples)::bigint + {_LONG_ROWS}",
    by_form("storage_table", "rows_column", "0"),
)
ESTIMATED_PAGES: Final = _of_relation(
    f"c.relpages + {_LONG_SIZE} / current_setting('block_size')::bigint",
    f"{by_form('storage_table', 'bytes_column', '0')} / current_setting('block_size')::bigint",
)

_MANY: Final = 2000  # tables; asking the disk for the size of each would take too long

_TOTALS: Final = f"""
WITH found AS (
    SELECT
        t.account_id, c.oid, c.reltuples, c.relpages, {_LONG_ROWS} AS long_rows, {_LONG_SIZE} AS long_size,
        coalesce(pg_relation_size(long.inhrelid), 0) AS long_heap,
        {has_other_form("t")} AS is_elsewhere, {_KEPT_ROWS} AS kept_rows, {_KEPT_BYTES} AS kept_bytes,
        count(*) OVER (PARTITION BY t.account_id) > %s AS are_many
    FROM storage_table AS t
    -- a table may have no relation yet
    LEFT JOIN pg_class AS c ON c.relname = {relation_of_row("t")}
        AND c.relnamespace = current_schema()::regnamespace
    {_LONG}
    WHERE t.account_id = ANY (%s) AND t.deleted_at IS NULL
)
SELECT
    account_id,
    count(*),
    sum(
        CASE WHEN is_elsewhere THEN kept_rows
            ELSE greatest(pg_stat_get_live_tuples(oid), reltuples, 0) + long_rows END
    )::bigint,
    sum(
        long_size + CASE
            WHEN is_elsewhere THEN kept_bytes
            WHEN are_many THEN coalesce(relpages, 0) * current_setting('block_size')::bigint
            ELSE coalesce(pg_total_relation_size(oid), 0)
        END
    )::bigint,
    -- a relation without a page has no rows
    bool_and(
        CASE WHEN is_elsewhere OR are_many OR long_heap > 0 THEN false
            ELSE coalesce(pg_relation_size(oid), 0) = 0 END
    )
FROM found
GROUP BY account_id
"""
