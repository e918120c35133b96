"""Moments of snapshots, and the relations with their copied entities."""

from typing import Final

from storage.domain.entities.moments import Moment
from storage.sql.long_keys import LONG_KEYS, SHORT_KEYS
from storage.sql.moments import ticks
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

# A change that the snapshot does not have was made by a statement that ran when it was taken, or later: its Timestamp
# is not before the oldest running transaction, apart from differences of clocks and of when a start is published.
SLACK: Final = 10  # seconds
_OLDEST: Final = f"""least(
    statement_timestamp(),
    (SELECT min(xact_start) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND datname = current_database()),
    (SELECT min(prepared) FROM pg_prepared_xacts WHERE database = current_database())
) - interval '{SLACK} seconds'"""
_MOMENT: Final = f"""
SELECT snapshot, ticks, raise_moment_floor(ticks)
FROM (SELECT pg_current_snapshot()::text AS snapshot, {ticks(_OLDEST)} AS ticks) AS moment
"""


def take_moment() -> Statement[Moment]:
    """Return the statement for the present moment, with the snapshot that defines its visible changes."""

    def read(result: Result) -> Moment:
        return Moment(integer_at(result, 0, 1), text_at(result, 0, 0))

    return Statement(_MOMENT, (), Lane.KEY, read)


def relation_name(snapshot_id: int, table_id: int) -> str:
    """Return the name of the relation with the entities of a table as of a snapshot."""
    return f"snapshot_{snapshot_id}_{table_id}"


def create(relation: str) -> str:
    """Return SQL that creates the relation, to be filled before it is indexed."""
    return f"CREATE TABLE {relation} (LIKE entity_template) WITH (toast_tuple_target = 4080)"


def index(relation: str) -> str:
    """Return SQL that creates the indexes: for short keys, and for hashes of long ones."""
    return (
        f"CREATE INDEX ON {relation} (pk, rk) WHERE {SHORT_KEYS};"
        f"CREATE INDEX ON {relation} (entity_key_hash(pk, rk)) WHERE {LONG_KEYS};"
        f"ANALYZE {relation}"
    )


def drop(relation: str) -> str:
    return f"DROP TABLE IF EXISTS {relation}"
