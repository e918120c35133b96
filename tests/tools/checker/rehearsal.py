"""Rehearsed failures: whether the records of a rehearsal know which writes were committed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg

from tests.tools.checker.history import Change
from tests.tools.checker.levels import Violation


class Record(NamedTuple):
    """Recorded write: whether a failure was rehearsed, and whether it was committed."""

    request: str
    is_struck: bool
    is_applied: bool


def read_records(connection: psycopg.Connection) -> list[Record]:
    """Read the writes to entities of the newest rehearsal."""
    rows = connection.execute(
        """
        SELECT request_id::text, exchange ? 'rules', coalesce(exchange->>'applied' = 'true', false)
        FROM storage_rehearsedrequest
        WHERE rehearsal_id = (SELECT max(id) FROM storage_rehearsal) AND exchange ? 'changes'
        """
    )
    return [Record(*row) for row in rows]


def check_records(records: Sequence[Record], changes: Sequence[Change]) -> Iterator[Violation]:
    """Check that the feed has the changes of a write if, and only if, its record says that it was committed."""
    committed = {it.request for it in changes}
    for request, number in Counter(it.request for it in records).items():
        if number > 1:
            yield Violation("one record per request", f"{request}: {number}")
    for record in records:
        if record.is_applied != (record.request in committed):
            yield Violation("records know what was committed", str(record))
