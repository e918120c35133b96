"""Queries and their results: entities by key or sorted, and tables."""

import re
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Self, TypeVar

from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import StorageError
from storage.domain.filters.ast import (
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    Not,
    Operator,
    Or,
    conjuncts,
    fold,
)
from storage.domain.filters.keys import interval_of, to_storable
from storage.domain.values import dialects
from storage.domain.values.edm import Edm
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key

Row_co = TypeVar("Row_co", covariant=True)

PAGE_LIMIT: Final = 1000  # entities
PAGE_BYTES: Final = 4 * 1024 * 1024  # the entity that exceeds it is the last of its page


class Position(NamedTuple):
    """Key of the next page's first row; if that is deleted, the next greater row follows."""

    partition_key: str
    row_key: str


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """Query over entities from ``start`` (inclusive) to ``end`` (exclusive)."""

    filter: Filter | None = None
    select: tuple[str, ...] | None = None
    top: int = PAGE_LIMIT
    start: Position | None = None
    end: Position | None = None
    annotations: bool = True
    indexed: frozenset[str] = frozenset()
    kind: AccountKind = AccountKind.STORAGE  # how the response writes selected values


@dataclass(frozen=True, slots=True)
class TableQuery:
    """Query over tables; ``start`` is the folded name of the first table of the page."""

    filter: Filter | None = None
    top: int = PAGE_LIMIT
    start: str = ""
    kind: AccountKind = AccountKind.STORAGE


class Page(NamedTuple, Generic[Row_co]):
    """Page of results; it may be empty and still have a next position."""

    entities: list[Row_co]
    next: Position | None


# the table collection

LONGEST_TABLE_NAME: Final = 63
_USUAL: Final = re.compile("[0-9a-z]*")


def names_of_tables(root: Filter) -> tuple[str, str]:
    """Return bounds on the folded names of matching tables, empty for none; not for Cosmos."""
    interval, _ = interval_of("TableName", conjuncts(root))
    lower = _usual_start(interval.lower.key) if interval.lower is not None else ""
    if interval.upper is None:
        return lower, ""
    upper = _usual_start(interval.upper.key)
    return lower, upper if upper == interval.upper.key.lower() else upper + "z" * LONGEST_TABLE_NAME


def _usual_start(text: str) -> str:
    """Return the folded prefix of a text that is valid in table names."""
    return _USUAL.match(text.lower())[0]  # type: ignore[index]  # it matches every text


def matches_table(root: Filter, name: str, kind: AccountKind = AccountKind.STORAGE) -> bool:
    """Return whether a table matches the filter; names are case-sensitive for Cosmos only."""
    folded = _fold(name, kind)

    def visit(node: Filter, operands: list[bool]) -> bool:
        match node:
            case Comparison():
                return _matches(node, folded, kind)
            case Match() | IsSet():
                return False  # not offered for tables
            case Constant(value):
                return value
            case Not():
                return not operands[0]
            case And():
                return all(operands)
            case Or():
                return any(operands)

    return fold(root, visit)


def _fold(name: str, kind: AccountKind) -> str:
    return name if kind is AccountKind.COSMOS else name.lower()


def _matches(comparison: Comparison, folded: str, kind: AccountKind) -> bool:
    literal = comparison.literal
    # any other property or type counts as missing [inferred]
    if comparison.property != "TableName" or literal.type is not Edm.STRING:
        return False
    return comparison.operator.holds(folded, _fold(str(literal.value), kind))


# sorted by a property, which the service does not offer

ABSENT_RANK: Final = 9  # the rank of an entity without the property: last in either direction
SORTED_TEXT_LENGTH: Final = 100  # characters of a text that are compared; then the keys decide
_NUMBER = re.compile(r"-?[0-9]{1,700}(?:\.[0-9]{1,1100})?|NaN", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sort:
    """Sort order by type, then value: booleans, numbers of any type, texts by code point, times, GUIDs, binaries."""

    property: str
    descending: bool = False


class SortedPosition(NamedTuple):
    """Position of the next page's first entity in a sort order."""

    rank: int
    number: str
    text: str
    partition_key: str
    row_key: str

    @classmethod
    def read(cls, stored: object) -> Self | None:
        """Parse a position from a list; None if it is invalid."""
        match stored:
            case [int(rank), str(number), str(text), str(partition_key), str(row_key)]:
                position = cls(rank, number, text, partition_key, row_key)
                return position if position._is_possible() else None
        return None

    def _is_possible(self) -> bool:
        try:
            check_entity_key(self.partition_key, self.row_key, dialects.WIDEST)
        except StorageError:
            return False
        is_text = to_storable(Operator.EQ, self.text) == (Operator.EQ, self.text)
        return 0 <= self.rank <= ABSENT_RANK and is_text and _NUMBER.fullmatch(self.number) is not None


class SortedPage(NamedTuple):
    entities: list[EntityPreview]
    next: SortedPosition | None
