"""Counts of matching entities and their properties."""

from typing import Final, NamedTuple

from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm
from storage.domain.values.encoding import unescape
from storage.sql import explained, walks
from storage.sql.sampling import TYPE, Sampling, typed
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at
from storage.sql.walks import Binder


def count(relation: str, query: EntityQuery) -> Statement[int]:
    binder = Binder()
    walk = walks.walk(query, binder)
    text = f"SELECT count(*) FROM {relation} WHERE {walk.condition}"
    return binder.statement(text, Lane.FILTER, lambda result: integer_at(result, 0, 0))


def estimate(relation: str, query: EntityQuery) -> Statement[int]:
    """Return the statement for the planner's estimate of the number of entities."""
    binder = Binder()
    return planned_rows(relation, walks.walk(query, binder).condition, binder)


def planned_rows(relation: str, condition: str, binder: Binder) -> Statement[int]:
    """Return the statement for the planner's row estimate of a condition."""
    return binder.statement(
        f"EXPLAIN (FORMAT json) SELECT 1 FROM {relation} WHERE {condition}",
        Lane.FILTER,
        lambda result: explained.read(result).rows,
    )


def names(relation: str, query: EntityQuery) -> Statement[list[str]]:
    """Return the statement for the property names of all matching entities."""
    binder = Binder()
    walk = walks.walk(query, binder)
    text = f"SELECT DISTINCT name FROM {relation}, jsonb_object_keys(props) AS name WHERE {walk.condition}"
    return binder.statement(
        text,
        Lane.FILTER,
        lambda result: [unescape(text_at(result, row, 0)) for row in range(result.ntuples)],
    )


class TypeUse(NamedTuple):
    """Type of a property; for DateTime, also whether all are whole microseconds between 1678 and 2261."""

    name: str
    type: Edm
    is_micro: bool = True
    is_near: bool = True


_TYPES: Final = """
SELECT name, type,
    bool_and(type <> 'Edm.DateTime' OR right(value #>> '{{}}', 1) = '0'),
    bool_and(type <> 'Edm.DateTime' OR value #>> '{{}}' BETWEEN 't1678' AND 't2262')
FROM (
    SELECT key AS name, value, {type} AS type FROM {relation}, jsonb_each(props) WHERE {condition}
) AS typed
GROUP BY name, type
"""


def types(relation: str, query: EntityQuery) -> Statement[list[TypeUse]]:
    """Return the statement for the property types of all matching entities."""
    binder = Binder()
    walk = walks.walk(query, binder)

    def read(result: Result) -> list[TypeUse]:
        return [
            TypeUse(
                unescape(text_at(result, row, 0)),
                Edm(text_at(result, row, 1)),
                *(text_at(result, row, column) == "t" for column in (2, 3)),
            )
            for row in range(result.ntuples)
        ]

    text = _TYPES.format(relation=relation, condition=walk.condition, type=TYPE)
    return binder.statement(text, Lane.FILTER, read)


class Occurrence(NamedTuple):
    """Number of sampled entities in which a property has a type."""

    name: str
    type: Edm
    entities: int


class Sample(NamedTuple):
    occurrences: list[Occurrence]
    entities: int


def sample(relation: str, sampling: Sampling) -> Statement[Sample]:
    """Count properties by type in a sample."""
    text = f"""{typed(relation, sampling, "props", "key AS name")})
        SELECT name, type, count(*) FROM typed GROUP BY name, type
        UNION ALL SELECT '', 'Edm.String', count(*) FROM sample"""

    def read(result: Result) -> Sample:
        rows = [
            Occurrence(
                unescape(text_at(result, row, 0)), Edm(text_at(result, row, 1)), integer_at(result, row, 2)
            )
            for row in range(result.ntuples)
        ]
        return Sample([row for row in rows if row.name], next(row.entities for row in rows if not row.name))

    return Statement(text, (), Lane.FILTER, read)
