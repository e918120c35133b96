"""WAL positions: progress of a server, and what a session has seen."""

from typing import Final

from storage.sql.statement import Lane, Result, Statement

# the end of the log that a primary has written or a standby has replayed; on the primary this includes unflushed
# records, which others see already if their writer does not wait for the disk
SERVER_POSITION: Final = """
(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END - '0/0')::bigint
"""
POSITION: Final = f"SELECT {SERVER_POSITION}"

_PAGE: Final = 8192
_PAGE_HEADER: Final = 24


def read_position(value: bytes) -> int:
    """Parse a log position; one just behind a page header equals one before it."""
    position = int(value)
    beyond = position % _PAGE
    return position - beyond if beyond <= _PAGE_HEADER else position


def position() -> Statement[int]:
    """Return the statement for a server's WAL position."""

    def read(result: Result) -> int:
        value = result.get_value(0, 0)
        return 0 if value is None else read_position(value)  # a standby that has replayed nothing

    return Statement(POSITION, (), Lane.KEY, read)
