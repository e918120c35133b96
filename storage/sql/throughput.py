"""Remaining request units of tables, in a relation shared by all processes."""

from typing import Final, NamedTuple

from storage.sql.django import execute
from storage.sql.statement import Lane, Result, Statement, text_at


class Portion(NamedTuple):
    """Granted portion; ``left`` are the units left to all processes, 0 or less if none was granted."""

    is_granted: bool
    left: float


def take(table_id: int, limit: int, owed: float, portion: float) -> Statement[Portion]:
    """Charge the request units that a process owes, and grant it a portion if any are left.

    The bucket refills by ``limit`` units per second, up to as many.
    """

    def read(result: Result) -> Portion:
        return Portion(text_at(result, 0, 0) == "t", float(text_at(result, 0, 1)))

    parameters = tuple(map(str, (table_id, limit, owed, portion)))
    return Statement(_TAKE, parameters, Lane.KEY, read)


def tidy() -> None:
    """Delete rows of buckets that are full again."""
    execute("DELETE FROM storage_throughput WHERE taken_at < now() - interval '1 day'")


_TAKE: Final = """
INSERT INTO storage_throughput AS known (table_id, is_granted, units, taken_at)
SELECT $1::bigint, rest > 0, CASE WHEN rest > 0 THEN rest - $4::float8 ELSE rest END, clock_timestamp()
FROM (SELECT $2::float8 - $3::float8 AS rest) AS whole
ON CONFLICT (table_id) DO UPDATE SET (is_granted, units, taken_at) = (
    SELECT rest > 0, CASE WHEN rest > 0 THEN rest - $4::float8 ELSE rest END, present
    FROM (
        SELECT least($2::float8, known.units + extract(epoch FROM present - known.taken_at)::float8 * $2::float8)
            - $3::float8 AS rest, present
        FROM (SELECT greatest(clock_timestamp(), known.taken_at) AS present) AS clock
    ) AS due
)
RETURNING is_granted, units
"""
