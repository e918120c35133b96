"""Queries of tables by the shape of their filters, and by client, counted per day.

Each process looks at the first queries of a table between two writes and scales their counts to all, so that a query
costs nothing more.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

from django.db.models import Sum

from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.filters.ast import Comparison, Filter, Operator, fold
from storage.domain.filters.writer import write
from storage.domain.requests.cleaning import LEFT_OUT, clean_agent
from storage.domain.values.edm import EdmValue
from storage.domain.values.stored import read_member
from storage.metrics.ledger import Ledger
from storage.metrics.series import table_ids
from storage.models import QueryShape
from storage.sql import background
from storage.sql.django import storable_text

KEPT: Final = timedelta(days=14)
LONGEST: Final = 1024  # characters of a shape
_CLIENT: Final = 128  # characters
_SHAPES: Final = 200  # of a table on a day that one process counts
_SAMPLE: Final = 32  # queries of a table looked at between two writes


class SampledQuery(NamedTuple):
    """Query that is looked at: its filter, its client, and the number of entities that it returned."""

    filter: Filter | None
    agent: bytes
    entities: int
    is_first: bool = True  # False for a further page of a query, which has a continuation token


@dataclass(slots=True)
class QuerySample:
    """Queries of a table since the last write: their number, and the first of them."""

    number: int = 0
    first: list[SampledQuery] = field(default_factory=list)

    def add(self, root: Filter | None, agent: bytes, entities: int, *, is_first: bool = True) -> None:
        self.number += 1
        if len(self.first) < _SAMPLE:
            self.first.append(SampledQuery(root, agent, entities, is_first))


class _Count(NamedTuple):
    requests: float
    entities: float
    shape: str
    path: str
    client: str


Key = tuple[int, str, date, str]  # account, name of a table, day, digest


def shape_of(root: Filter | None) -> str:
    """Return a filter with … for each value; an empty text without a filter."""
    if root is None:
        return ""
    text = write(root, _hide)
    # a bare name, which means the same as a comparison with true, may be a value without quotation marks
    for name in fold(root, _names_of_truth):
        text = text.replace(f"{name} eq {LEFT_OUT}", f"{LEFT_OUT} eq {LEFT_OUT}")
    return storable_text(text, LONGEST)


def _names_of_truth(node: Filter, operands: list[frozenset[str]]) -> frozenset[str]:
    is_truth = isinstance(node, Comparison) and node.operator is Operator.EQ and node.literal.value is True
    own = frozenset({node.property}) if is_truth and isinstance(node, Comparison) else frozenset[str]()
    return own.union(*operands)


def _hide(_: EdmValue) -> str:
    return LEFT_OUT


class QueryShapes(Ledger[Key, _Count]):
    """Unwritten counts of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._known: defaultdict[tuple[int, str, date], set[str]] = defaultdict(set)

    def add(self, moment: datetime, sampled: Mapping[tuple[int, str], QuerySample]) -> None:
        for (account_id, table), queries in sampled.items():
            if table:
                scale = queries.number / len(queries.first)
                for query in queries.first:
                    self._add(account_id, table, moment.date(), query, scale)

    def _add(self, account_id: int, table: str, day: date, query: SampledQuery, scale: float) -> None:
        shape, path = shape_of(query.filter), plan_access(query.filter).path.value
        client = storable_text(clean_agent(query.agent).decode("latin-1"), _CLIENT)
        known = self._known[account_id, table, day]
        digest = _digest(shape, client)
        if digest not in known and len(known) >= _SHAPES:
            # clients can invent any number of them
            shape, client = LEFT_OUT, ""
            digest = _digest(shape, client, path)
        known.add(digest)
        key = (account_id, table, day, digest)
        count = self._counted.get(key) or _Count(0, 0, shape, path, client)
        self._count(
            key,
            count._replace(
                requests=count.requests + (scale if query.is_first else 0),
                entities=count.entities + scale * query.entities,
            ),
        )

    def forget(self, now: datetime) -> None:
        for place in [place for place in self._known if place[2] < now.date()]:
            del self._known[place]

    def _store(self, counted: Mapping[Key, _Count]) -> None:
        ids = table_ids({key[:2] for key in counted})
        keys = {"account_id": "bigint", "table_id": "bigint", "day": "date", "digest": "text"}
        numbers = {"requests": "bigint", "entities": "bigint"}
        latest = {"shape": "text", "path": "text", "client": "text"}
        totals: dict[tuple[object, ...], _Count] = {}
        for (account_id, name, day, digest), count in counted.items():
            if (account_id, name) not in ids:
                continue
            # a table may have been addressed by several spellings
            key = (account_id, ids[account_id, name], day, digest)
            other = totals.get(key)
            totals[key] = count if other is None else _sum(count, other)
        rows = [
            (*key, round(count.requests), round(count.entities), count.shape, count.path, count.client)
            for key, count in totals.items()
        ]
        if rows:
            background.add_up("storage_queryshape", keys, numbers, rows, latest)


def _digest(*texts: str) -> str:
    return blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _sum(count: _Count, other: _Count) -> _Count:
    return count._replace(requests=count.requests + other.requests, entities=count.entities + other.entities)


# reading


@dataclass(frozen=True, slots=True)
class ShapeCount:
    """Queries of a table with one shape, each with all its pages.

    ``clients`` are User-Agents with their numbers, the most frequent first.
    """

    shape: str
    path: AccessPath
    requests: int
    entities: int
    clients: tuple[tuple[str, int], ...]

    @property
    def is_rest(self) -> bool:
        """Return whether it counts queries of many shapes together."""
        return self.shape == LEFT_OUT


def read(table_id: int, since: date) -> list[ShapeCount]:
    """Return the shapes of a table's queries since a day, the most frequent first."""
    rows = QueryShape.objects.filter(table_id=table_id, day__gte=since)
    totals = rows.values_list("shape", "path", "client").annotate(Sum("requests"), Sum("entities"))
    by_shape: defaultdict[tuple[str, str], list[tuple[str, int, int]]] = defaultdict(list)
    for shape, path, client, requests, entities in totals:
        by_shape[shape, path].append((client, requests, entities))
    counts = [
        ShapeCount(
            shape,
            read_member(AccessPath, path),
            sum(requests for _, requests, _ in uses),
            sum(entities for _, _, entities in uses),
            tuple(sorted(((client, requests) for client, requests, _ in uses), key=lambda it: -it[1])),
        )
        for (shape, path), uses in by_shape.items()
    ]
    return sorted(counts, key=lambda it: (-it.requests, it.shape))


def tidy(now: datetime) -> None:
    """Delete counts of days that are not kept."""
    QueryShape.objects.filter(day__lt=(now - KEPT).date()).delete()
