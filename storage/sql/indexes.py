"""Property indexes for ranges, prefixes and sorting."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg
from django.db import OperationalError, connection
from psycopg import sql

from storage.domain.values.encoding import escape
from storage.sql.django import execute, fetch
from storage.sql.failures import Canceled
from storage.sql.filters import INDEXED_NUMBER, INDEXED_TEXT, INDEXED_TIME
from storage.sql.forms import HasRelation
from storage.sql.relations import relation_of
from storage.sql.statement import Lane, Statement

_CREATE: Final = "CREATE INDEX CONCURRENTLY {index} ON {relation} ({columns})"
_INDEXES: Final = """
SELECT i.indexrelid::regclass::text, i.indisvalid, coalesce(pg_relation_size(i.indexrelid), 0),
    coalesce(s.idx_scan, 0)
FROM pg_index AS i
LEFT JOIN pg_stat_user_indexes AS s USING (indexrelid)
WHERE i.indexrelid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
"""
_SCANS: Final = """
SELECT place, coalesce(pg_stat_get_numscans(to_regclass(name)), 0)
FROM unnest(%s::text[]) WITH ORDINALITY AS known (name, place)
WHERE to_regclass(name) IS NOT NULL
"""
_CLEAN_PENDING: Final = """
SELECT gin_clean_pending_list(i.indexrelid)
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS a ON a.oid = c.relam
WHERE i.indrelid = to_regclass($1) AND a.amname = 'gin'
"""


class StoredIndex(NamedTuple):
    """State of an index in PostgreSQL."""

    is_valid: bool  # false while the index is made, and if a crash interrupted that
    size: int  # bytes
    scans: int  # the number of scans so far


def index_name(table_id: int, index_id: int) -> str:
    return f"entity_{table_id}_property_{index_id}"


def is_property_index(name: str) -> bool:
    return "_property_" in name


def create(table: HasRelation, index_id: int, name: str) -> None:
    """Create the index of a property without blocking writers; not allowed in a transaction."""
    connection.ensure_connection()
    quoted = sql.Literal(escape(name)).as_string(connection.connection)
    columns = INDEXED_TIME if name == "Timestamp" else f"{INDEXED_NUMBER}, {INDEXED_TEXT}".format(name=quoted)
    relation = relation_of(table)
    _run(_CREATE.format(index=index_name(table.pk, index_id), relation=relation, columns=columns))


def analyze(table: HasRelation) -> None:
    """Run ANALYZE on a table for statistics on a new index's expressions; raises Canceled."""
    _run(f"ANALYZE {relation_of(table)}")


def clean_pending(relation: str) -> Statement[None]:
    """Return the statement that moves the pending entries of a relation's index of all properties to the index."""
    return Statement(_CLEAN_PENDING, (relation,), Lane.FILTER, lambda result: None)


def _run(text: str) -> None:
    try:
        execute(text)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise Canceled from None
        raise


def drop(table_id: int, index_id: int) -> None:
    """Drop an index, also an invalid one, without blocking writers; not allowed in a transaction."""
    execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(table_id, index_id)}")


def stored(table_id: int, index_ids: Sequence[int]) -> dict[int, StoredIndex]:
    """Return the existing indexes by id."""
    names = {index_name(table_id, index_id): index_id for index_id in index_ids}
    rows = fetch(_INDEXES, list(names))
    # the name of an index that was just dropped is a number
    return {names[name]: StoredIndex(*fields) for name, *fields in rows if name in names}


def scans(known: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return the scan counts of existing indexes, each given by table id and index id."""
    found = fetch(_SCANS, [index_name(*ids) for ids in known])
    return {known[place - 1]: number for place, number in found}
