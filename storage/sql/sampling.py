"""Samples of a relation, for counting properties."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

# the type of a projected ``value``, as in domain.values.encoding: strings begin with a letter for it, numbers differ in
# scale
TYPE: Final = """CASE jsonb_typeof(value)
    WHEN 'boolean' THEN 'Edm.Boolean'
    WHEN 'string' THEN CASE left(value #>> '{}', 1)
        WHEN 's' THEN 'Edm.String' WHEN 't' THEN 'Edm.DateTime' WHEN 'g' THEN 'Edm.Guid'
        WHEN 'b' THEN 'Edm.Binary' ELSE 'Edm.Double' END
    ELSE CASE
        WHEN right(value::text, 3) = '.00' THEN 'Edm.Int64'
        WHEN value::text LIKE '%.%' OR length(value::text) > 11 THEN 'Edm.Double'
        ELSE 'Edm.Int32' END
END"""


class Sampling(NamedTuple):
    """Sample of up to ``limit`` rows from ``share`` percent of a relation's pages, repeatable."""

    share: float
    limit: int

    def is_whole(self, rows: int) -> bool:
        """Return whether a sample of so many rows covers the whole relation."""
        return self.share >= 100 and rows < self.limit


def samplings(rows: int, limits: Sequence[int]) -> Iterator[Sampling]:
    """Yield the samplings to try in turn, for a relation of about ``rows`` rows."""
    for limit in limits:
        # twice the sample: pages are unequally full, and statistics lag behind
        yield Sampling(100.0 if rows <= limit else min(100.0, 200.0 * limit / rows), limit)


def typed(relation: str, sampling: Sampling, columns: str, fields: str) -> str:
    """Return the start of a statement with the CTEs ``sample`` and ``typed``, a row per property with its ``type``."""
    share = f"TABLESAMPLE SYSTEM ({sampling.share:.6f}) REPEATABLE (0)" if sampling.share < 100 else ""
    return (
        f"WITH sample AS MATERIALIZED (SELECT {columns} FROM {relation} {share} LIMIT {sampling.limit}),"
        f" typed AS (SELECT {fields}, {TYPE} AS type FROM sample, jsonb_each(props)"
    )
