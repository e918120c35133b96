"""Measurements of a table's partitions, keys and kinds of entities."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm
from storage.domain.values.encoding import unescape
from storage.sql.arrays import texts
from storage.sql.sampling import TYPE, Sampling
from storage.sql.statement import Lane, Result, Statement, integer_at, read_keys, text_at

LARGEST: Final = 20  # partitions that are named
_SIZE: Final = "octet_length(pk) + octet_length(rk) + octet_length(vals)"


class Partition(NamedTuple):
    """Partition with its number of entities, and the bytes of their keys and properties."""

    key: str
    entities: int
    size: int


class SizeClass(NamedTuple):
    """Partitions of ``least`` entities up to ten times as many."""

    least: int
    partitions: int
    entities: int


class Partitions(NamedTuple):
    """Partitions of a table: their numbers, the largest ones, and their sizes in classes."""

    number: int
    entities: int
    size: int  # bytes
    single: int  # partitions of one entity
    largest: Sequence[Partition]
    classes: Sequence[SizeClass]
    examined: int  # partitions that were counted: all of them, or a sample
    is_exact: bool  # False: estimated from a sample


_ALL: Final = f"""
WITH partitions AS MATERIALIZED (
    SELECT pk, count(*) AS entities, sum({_SIZE}) AS size FROM {{relation}} GROUP BY pk
), classes AS (
    SELECT floor(log(entities))::int AS class, count(*) AS partitions, sum(entities) AS entities
    FROM partitions GROUP BY 1
), largest AS (
    SELECT * FROM partitions ORDER BY entities DESC, pk LIMIT {LARGEST}
)
SELECT json_build_object(
    'number', count(*), 'entities', coalesce(sum(entities), 0), 'size', coalesce(sum(size), 0),
    'single', count(*) FILTER (WHERE entities = 1), 'examined', count(*), 'is_exact', true,
    'largest', (SELECT json_agg(json_build_array(pk, entities, size) ORDER BY entities DESC, pk) FROM largest),
    'classes', (SELECT json_agg(json_build_array(class, partitions, entities) ORDER BY class) FROM classes))
FROM partitions
"""

# A row of a random page is in a partition with a probability in proportion to its entities, so a row of a partition of
# n entities stands for 1/n of a partition. Rows of a page are neighbours: many pages are read, and a few rows of each.
# The size of a partition that is too large to be counted is estimated by its share of the rows.
_SAMPLED: Final = f"""
WITH pages AS MATERIALIZED (
    SELECT pk, {_SIZE} AS size, hashtextextended(pk || rk, 0) AS place
    FROM {{relation}} TABLESAMPLE SYSTEM ({{share:.6f}}) REPEATABLE (0)
), chosen AS MATERIALIZED (
    SELECT pk, size FROM pages ORDER BY place LIMIT {{rows}}
), numbered AS MATERIALIZED (
    SELECT pk, {{total}} * count(*) / sum(count(*)) OVER () AS estimated,
        (SELECT count(*) FROM (SELECT FROM {{relation}} AS e WHERE e.pk = chosen.pk LIMIT {{most}}) AS own) AS counted
    FROM chosen GROUP BY pk
), counted AS MATERIALIZED (
    SELECT pk, CASE WHEN counted < {{most}} THEN counted ELSE greatest(counted, round(estimated)) END AS entities
    FROM numbered
), extremes AS (
    SELECT (SELECT pk FROM {{relation}} ORDER BY pk LIMIT 1) = (SELECT pk FROM {{relation}} ORDER BY pk DESC LIMIT 1)
        AS is_one
), weighed AS (
    SELECT c.pk, c.size, n.entities, {{total}}::float8 / count(*) OVER () AS weight
    FROM chosen AS c JOIN counted AS n ON n.pk = c.pk
), classes AS (
    SELECT floor(log(entities))::int AS class, round(sum(weight / entities)) AS partitions,
        round(sum(weight)) AS entities
    FROM weighed GROUP BY 1
), largest AS (
    SELECT pk, entities, round(entities * (SELECT avg(size) FROM weighed AS w WHERE w.pk = n.pk)) AS size
    FROM counted AS n ORDER BY entities DESC, pk LIMIT {LARGEST}
)
SELECT json_build_object(
    'number', CASE WHEN (SELECT is_one FROM extremes) THEN 1 ELSE greatest(2, round(sum(weight / entities))) END,
    'entities', {{total}}, 'size', round(sum(weight * size)),
    'single', round(coalesce(sum(weight) FILTER (WHERE entities = 1), 0)), 'examined', (SELECT count(*) FROM counted),
    'is_exact', (SELECT is_one FROM extremes),
    'largest', (SELECT json_agg(json_build_array(pk, entities, size) ORDER BY entities DESC, pk) FROM largest),
    'classes', (SELECT json_agg(json_build_array(class, partitions, entities) ORDER BY class) FROM classes))
FROM weighed
"""


def partitions(relation: str) -> Statement[Partitions]:
    """Count all partitions."""
    return Statement(_ALL.format(relation=relation), (), Lane.FILTER, _read_partitions)


def sampled_partitions(
    relation: str, total: int, *, share: float, rows: int, most: int
) -> Statement[Partitions]:
    """Estimate the partitions of ``total`` entities from the partitions of random rows, counted up to ``most``."""
    text = _SAMPLED.format(relation=relation, total=int(total), share=share, rows=int(rows), most=int(most))
    return Statement(text, (), Lane.FILTER, _read_partitions)


def _read_partitions(result: Result) -> Partitions:
    written: dict[str, Any] = json.loads(text_at(result, 0, 0))
    return Partitions(
        int(written["number"] or 0),
        int(written["entities"]),
        int(written["size"] or 0),
        int(written["single"]),
        [Partition(key, int(entities), int(size)) for key, entities, size in written["largest"] or ()],
        [SizeClass(10**number, int(n), int(entities)) for number, n, entities in written["classes"] or ()],
        int(written["examined"]),
        bool(written["is_exact"]),
    )


def keys(relation: str, sampling: Sampling) -> Statement[list[EntityKey]]:
    """Return the keys of a sample, or of all entities."""
    return Statement(f"SELECT pk, rk FROM {_sample(relation, sampling)}", (), Lane.FILTER, read_keys)


def keys_at_ends(relation: str, partitions: Sequence[str], number: int) -> Statement[list[EntityKey]]:
    """Return the first and the last keys of some partitions: of numbers without zeroes, their order is wrong."""
    ends = " UNION ALL ".join(
        f"(SELECT pk, rk FROM {relation} AS e WHERE e.pk = given.pk ORDER BY rk {order} LIMIT {int(number)})"
        for order in ("ASC", "DESC")
    )
    text = f"SELECT DISTINCT own.pk, own.rk FROM unnest($1::text[]) AS given (pk), LATERAL ({ends}) AS own"
    return Statement(text, (texts(partitions),), Lane.FILTER, read_keys)


def longest_keys(relation: str) -> Statement[tuple[int, int]]:
    """Return the lengths in characters of the longest PartitionKey and RowKey."""
    text = f"SELECT coalesce(max(length(pk)), 0), coalesce(max(length(rk)), 0) FROM {relation}"
    return Statement(text, (), Lane.FILTER, lambda it: (integer_at(it, 0, 0), integer_at(it, 0, 1)))


def _sample(relation: str, sampling: Sampling) -> str:
    share = f"TABLESAMPLE SYSTEM ({sampling.share:.6f}) REPEATABLE (0)" if sampling.share < 100 else ""
    return f"{relation} {share} LIMIT {sampling.limit}"


class PropertySet(NamedTuple):
    """Entities with the same properties and types, and the key of one of them."""

    properties: tuple[tuple[str, Edm], ...]  # by name
    entities: int
    example: EntityKey


def property_sets(relation: str, sampling: Sampling, most: int) -> Statement[list[PropertySet]]:
    """Group the entities of a sample by their properties and types; return the most frequent groups."""
    text = f"""
        WITH sample AS MATERIALIZED (SELECT pk, rk, props FROM {_sample(relation, sampling)}), typed AS (
            SELECT pk, rk, (SELECT coalesce(json_agg(json_build_array(key, {TYPE}) ORDER BY key)::text, '[]')
                FROM jsonb_each(props)) AS properties
            FROM sample
        )
        SELECT properties, count(*),
            json_build_array((array_agg(pk ORDER BY pk, rk))[1], (array_agg(rk ORDER BY pk, rk))[1])
        FROM typed GROUP BY properties ORDER BY count(*) DESC, properties LIMIT {int(most)}"""

    def read(result: Result) -> list[PropertySet]:
        return [
            PropertySet(
                tuple((unescape(name), Edm(type_)) for name, type_ in json.loads(text_at(result, row, 0))),
                int(text_at(result, row, 1)),
                EntityKey(*json.loads(text_at(result, row, 2))),
            )
            for row in range(result.ntuples)
        ]

    return Statement(text, (), Lane.FILTER, read)
