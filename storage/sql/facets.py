"""Frequent property values among matching entities."""

import json
from typing import Final, NamedTuple

from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import escape, unescape, unproject
from storage.sql import walks
from storage.sql.statement import Lane, Result, Statement, text_at
from storage.sql.walks import Binder

_LONGEST: Final = 400  # bytes of a value; a property with longer ones is skipped
_VALUES: Final = 10  # per property


class Count(NamedTuple):
    """Number of entities with a property value."""

    name: str
    value: EdmValue
    entities: int
    distinct: int  # number of values of the property


class Counts(NamedTuple):
    counts: list[Count]
    entities: int


# values are grouped as text: as jsonb, 5 and 5.00 would be equal in spite of their types
_COUNT: Final = """
WITH sample AS MATERIALIZED (
    SELECT pk, props FROM {relation} {sampling} WHERE {condition} LIMIT {limit}
), counted AS (
    SELECT key AS name, (value #>> '{{}}') COLLATE "C" AS value, count(*) AS n
    FROM sample, jsonb_each(props) WHERE {asked} GROUP BY 1, 2
    UNION ALL
    SELECT 'PartitionKey', pk, count(*) FROM sample WHERE {asked_key} GROUP BY pk
), ranked AS (
    SELECT *, count(*) OVER whole AS kinds,
        row_number() OVER (PARTITION BY name ORDER BY n DESC, value) AS rank,
        max(octet_length(value)) OVER whole AS longest
    FROM counted WINDOW whole AS (PARTITION BY name)
)
SELECT name, value, n, kinds FROM ranked
WHERE rank <= {values} AND kinds <= {kinds} AND longest <= {longest}
UNION ALL
SELECT '', '', count(*), 0 FROM sample
ORDER BY name, n DESC, value
"""


def count(
    relation: str, query: EntityQuery, *, names: tuple[str, ...] | None, kinds: int, share: float, limit: int
) -> Statement[Counts]:
    """Count values in up to ``limit`` entities, of ``names`` or of properties with at most ``kinds`` values."""
    binder = Binder()
    walk = walks.walk(query, binder)
    asked = asked_key = "true"
    if names is not None:
        bound = binder.bind(json.dumps([escape(name) for name in names], ensure_ascii=False))
        asked, asked_key = f"{bound}::jsonb ? key", f"{bound}::jsonb ? 'PartitionKey'"
    text = _COUNT.format(
        relation=relation,
        sampling=f"TABLESAMPLE SYSTEM ({share:.6f}) REPEATABLE (0)" if share < 100 else "",
        condition=walk.condition,
        limit=limit,
        asked=asked,
        asked_key=asked_key,
        values=_VALUES,
        kinds=kinds,
        longest=_LONGEST,
    )
    return binder.statement(text, Lane.FILTER, _read)


def _read(result: Result) -> Counts:
    rows = [tuple(text_at(result, row, column) for column in range(4)) for row in range(result.ntuples)]
    counts = [
        # keys are stored without an encoding of their type
        Count(
            unescape(name),
            EdmValue(Edm.STRING, value) if name == "PartitionKey" else unproject(value),
            int(n),
            int(kinds),
        )
        for name, value, n, kinds in rows
        if name
    ]
    return Counts(counts, next(int(n) for name, _, n, _ in rows if not name))
