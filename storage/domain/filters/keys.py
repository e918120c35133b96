"""Key range that a filter needs to scan, and the residual conditions inside it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from storage.domain.filters.ast import Comparison, Constant, Filter, Operator, all_of, conjuncts
from storage.domain.values.edm import Edm

_NEVER_IN_KEYS = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Bound:
    key: str
    inclusive: bool


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """Keys between two bounds, by code point; None means unbounded. PostgreSQL can store every bound."""

    lower: Bound | None = None
    upper: Bound | None = None

    @property
    def is_unbounded(self) -> bool:
        return self.lower is None and self.upper is None

    @property
    def is_empty(self) -> bool:
        if self.lower is None or self.upper is None:
            return False
        if self.lower.key == self.upper.key:
            return not (self.lower.inclusive and self.upper.inclusive)
        return self.lower.key > self.upper.key

    @property
    def single(self) -> str | None:
        """Return the only key in the interval; None unless its bounds are equal and inclusive."""
        if self.lower is None or self.lower != self.upper or not self.lower.inclusive:
            return None
        return self.lower.key

    def narrowed(self, operator: Operator, key: str) -> "KeyInterval":
        """Narrow the interval by a comparison other than ``ne``."""
        storable = to_storable(operator, key)
        if isinstance(storable, bool):
            return self if storable else NO_KEYS
        operator, key = storable
        bound = Bound(key, inclusive=operator in (Operator.EQ, Operator.GE, Operator.LE))
        lower, upper = self.lower, self.upper
        if operator in (Operator.EQ, Operator.GT, Operator.GE) and (
            lower is None or (key, not bound.inclusive) > (lower.key, not lower.inclusive)
        ):
            lower = bound
        if operator in (Operator.EQ, Operator.LT, Operator.LE) and (
            upper is None or (key, bound.inclusive) < (upper.key, upper.inclusive)
        ):
            upper = bound
        return KeyInterval(lower, upper)


ALL_KEYS: Final = KeyInterval()
NO_KEYS: Final = KeyInterval(Bound("", inclusive=False), Bound("", inclusive=False))


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Bounds of a filter's matches: ``partition`` bounds PartitionKey, ``row`` bounds RowKey.

    ``row`` is bounded only inside a single partition, where rows follow each other; elsewhere conditions on RowKey
    stay in ``residual``. An entity matches the filter exactly if its keys lie in both intervals and ``residual``
    holds; None holds for every entity.
    """

    partition: KeyInterval
    row: KeyInterval
    residual: Filter | None

    @property
    def is_empty(self) -> bool:
        """Return whether no entity can match."""
        return self.partition.is_empty or self.row.is_empty


def key_range(root: Filter | None) -> KeyBounds:
    """Derive bounds from the conditions on PartitionKey and RowKey; alternatives (``or``) set none."""
    remaining = conjuncts(root) if root is not None else []
    row = ALL_KEYS
    partition, remaining = interval_of("PartitionKey", remaining)
    if partition.single is not None:
        row, remaining = interval_of("RowKey", remaining)
    conditions = [condition for condition in remaining if condition != Constant(True)]
    return KeyBounds(partition, row, all_of(conditions) if conditions else None)


def interval_of(name: str, conditions: Iterable[Filter]) -> tuple[KeyInterval, list[Filter]]:
    """Return the interval of a key and the residual conditions."""
    interval, remaining = ALL_KEYS, []
    for condition in conditions:
        match condition:
            case Comparison(property, operator, (Edm.STRING, str(key))) if (
                property == name and operator is not Operator.NE
            ):
                interval = interval.narrowed(operator, key)
            case _:
                remaining.append(condition)
    return interval, remaining


def to_storable(operator: Operator, key: str) -> tuple[Operator, str] | bool:
    """Convert a comparison to one with a text that PostgreSQL can store, or to its constant result."""
    match = _NEVER_IN_KEYS.search(key)
    if match is None:
        return operator, key
    following = key[: match.start()] + ("\x01" if match[0] == "\x00" else "\ue000")
    match operator:
        case Operator.EQ | Operator.NE:
            return operator is Operator.NE
        case Operator.GT | Operator.GE:
            return Operator.GE, following
        case Operator.LT | Operator.LE:
            return Operator.LT, following
