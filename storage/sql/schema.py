"""Statistics of sampled properties by type: number, distinct values and sizes."""

import json
from typing import Final, NamedTuple

from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.encoding import unescape, unproject
from storage.sql.sampling import Sampling, typed
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at

KEYS: Final = ("PartitionKey", "RowKey")
_LONGEST: Final = 100  # bytes of a value that serves as an example
_EXAMPLES: Final = 3


class TypeCount(NamedTuple):
    """A type of a property in the sample.

    ``distinct`` counts different values and ``once`` those of a single entity; ``average_size`` and ``largest`` are the
    bytes of the values as text; ``examples`` are the most frequent values that are short.
    """

    name: str
    type: Edm
    entities: int
    distinct: int
    once: int
    average_size: int
    largest: int
    examples: tuple[EdmValue, ...]


class SchemaCounts(NamedTuple):
    types: list[TypeCount]
    entities: int


# values are told apart by a hash of their text: as jsonb, 5 and 5.00 would be equal in spite of their types
_COUNT: Final = """
    UNION ALL SELECT 'PartitionKey', pk, 'Edm.String' FROM sample
    UNION ALL SELECT 'RowKey', rk, 'Edm.String' FROM sample
), counted AS (
    SELECT name, type, count(*) AS n, sum(octet_length(value)) AS bytes, max(octet_length(value)) AS largest,
        min(value) FILTER (WHERE octet_length(value) <= {longest}) AS example
    FROM typed GROUP BY name, type, hashtextextended(value, 0)
)
SELECT name, type, sum(n)::bigint, count(*), count(*) FILTER (WHERE n = 1), (sum(bytes) / sum(n))::bigint, max(largest),
    to_json(coalesce(
        (array_agg(example ORDER BY n DESC, example) FILTER (WHERE example IS NOT NULL))[1:{examples}], '{{}}'))
FROM counted GROUP BY name, type
UNION ALL
SELECT '', 'Edm.String', count(*), 0, 0, 0, 0, '[]' FROM sample
"""
_FIELDS: Final = """key AS name, (value #>> '{}') COLLATE "C" AS value"""


def count(relation: str, sampling: Sampling) -> Statement[SchemaCounts]:
    """Return the statement that counts properties in a sample; the keys count as properties."""
    begin = typed(relation, sampling, "pk, rk, props", _FIELDS)
    text = begin + _COUNT.format(longest=_LONGEST, examples=_EXAMPLES)
    return Statement(text, (), Lane.FILTER, _read)


def _read(result: Result) -> SchemaCounts:
    rows = [_read_row(result, row) for row in range(result.ntuples)]
    return SchemaCounts([row for row in rows if row.name], next(row.entities for row in rows if not row.name))


def _read_row(result: Result, row: int) -> TypeCount:
    name = text_at(result, row, 0)
    examples: list[str] = json.loads(text_at(result, row, 7))
    entities, distinct, once, average, largest = (integer_at(result, row, column) for column in range(2, 7))
    return TypeCount(
        unescape(name),
        Edm(text_at(result, row, 1)),
        entities,
        distinct,
        once,
        average,
        largest,
        # keys are stored without an encoding of their type
        tuple(EdmValue(Edm.STRING, text) if name in KEYS else unproject(text) for text in examples),
    )
