"""Samples of a database server's replication state: its log position, timeline and source."""

from typing import Final, NamedTuple

from storage.sql.positions import SERVER_POSITION, read_position
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

# The timeline changes when a replica takes the place of the primary. A replica has the timeline of the log it receives;
# it is null for users without the role pg_read_all_stats, and a replica that receives nothing has no row.
_SAMPLE: Final = f"""
SELECT pg_is_in_recovery()::text, {SERVER_POSITION},
    CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_wal_receiver LIMIT 1)
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer END,
    (SELECT count(*) FROM pg_stat_wal_receiver),
    CASE WHEN pg_is_in_recovery() THEN true ELSE pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() END::text
"""
_SYSTEM: Final = "SELECT system_identifier FROM pg_control_system()"


class Sample(NamedTuple):
    """Replication state that a server reports."""

    is_replica: bool
    position: int
    timeline: int | None  # None: the server does not say
    is_receiving: bool
    is_flushed: bool  # its log is on its disk


def sample() -> Statement[Sample]:
    return Statement(_SAMPLE, (), Lane.KEY, _read_sample)


def _read_sample(result: Result) -> Sample:
    position, timeline = result.get_value(0, 1), result.get_value(0, 2)
    return Sample(
        is_replica=text_at(result, 0, 0) == "true",
        position=0 if position is None else read_position(position),
        timeline=None if timeline is None else int(timeline),
        is_receiving=integer_at(result, 0, 3) > 0,
        is_flushed=text_at(result, 0, 4) == "true",
    )


def system() -> Statement[int]:
    """Return the statement for the system identifier, which a primary and its replicas share."""
    return Statement(_SYSTEM, (), Lane.KEY, lambda result: integer_at(result, 0, 0))
