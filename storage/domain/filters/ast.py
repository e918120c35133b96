"""Syntax tree of a filter, and its traversals."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from storage.domain.values.edm import Edm, EdmValue

T = TypeVar("T")

# discrete comparisons in a filter; here there may be any number
# https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities#supported-query-options
COMPARISONS_ON_AZURE: Final = 15


class Operator(StrEnum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"

    @property
    def mirrored(self) -> "Operator":
        """Return the equivalent operator for swapped operands."""
        return _MIRRORED.get(self, self)

    def holds(self, left: Any, right: Any) -> bool:
        return bool(_PYTHON[self](left, right))


_MIRRORED: Final = {
    Operator.GT: Operator.LT,
    Operator.LT: Operator.GT,
    Operator.GE: Operator.LE,
    Operator.LE: Operator.GE,
}
_PYTHON: Final[dict[Operator, Callable[[Any, Any], Any]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a property with a literal of the type in which it was written.

    An Int32 literal may hold any 64-bit integer: digits without ``L`` compare with all three numeric types.
    """

    property: str
    operator: Operator
    literal: EdmValue


IS_SET: Final = "isset"


class MatchKind(StrEnum):
    """Position at which a text must occur in a String; the values are function names."""

    CONTAINS = "contains"
    ENDS_WITH = "endswith"


@dataclass(frozen=True, slots=True)
class Match:
    """String match: contains the text or ends with it; only the console's dialect has it."""

    property: str
    kind: MatchKind
    text: str


@dataclass(frozen=True, slots=True)
class IsSet:
    """Condition that the entity has the property, of any type; only in the console's dialect."""

    property: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more operands; a nested And keeps its parentheses."""

    operands: tuple["Filter", ...]

    def __post_init__(self) -> None:
        _check_operands(self.operands)


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more operands; a nested Or keeps its parentheses."""

    operands: tuple["Filter", ...]

    def __post_init__(self) -> None:
        _check_operands(self.operands)


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Filter"


@dataclass(frozen=True, slots=True)
class Constant:
    """Literal ``true`` or ``false`` as a condition."""

    value: bool


Filter: TypeAlias = Comparison | Match | IsSet | And | Or | Not | Constant


def _check_operands(operands: tuple[Filter, ...]) -> None:
    if len(operands) < 2:
        raise ValueError("a connective needs two operands")


def operands_of(node: Filter) -> tuple[Filter, ...]:
    match node:
        case And(operands) | Or(operands):
            return operands
        case Not(operand):
            return (operand,)
        case _:
            return ()


def fold(root: Filter, visit: Callable[[Filter, list[T]], T]) -> T:
    """Fold a tree bottom-up, passing each node the results of its operands."""
    results: list[T] = []
    pending = [(root, False)]
    while pending:
        node, visited = pending.pop()
        operands = operands_of(node)
        if visited or not operands:
            split = len(results) - len(operands)
            results[split:] = [visit(node, results[split:])]
        else:
            pending.append((node, True))
            pending.extend((operand, False) for operand in reversed(operands))
    return results[0]


def walk(root: Filter) -> Iterator[Filter]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(operands_of(node)))


def conjuncts(root: Filter) -> list[Filter]:
    """Return the conditions that must all hold, regardless of grouping."""
    parts: list[Filter] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending.extend(reversed(node.operands))
        else:
            parts.append(node)
    return parts


def equals(name: str, text: str) -> Filter:
    """Return the condition that a String property or a key is a text."""
    return Comparison(name, Operator.EQ, EdmValue(Edm.STRING, text))


def all_of(conditions: Sequence[Filter]) -> Filter:
    """Combine conditions into a conjunction."""
    return And(tuple(conditions)) if len(conditions) > 1 else conditions[0]


def any_of(conditions: Sequence[Filter]) -> Filter:
    """Combine conditions into a disjunction."""
    return Or(tuple(conditions)) if len(conditions) > 1 else conditions[0]


def mentioned_properties(root: Filter) -> set[str]:
    """Return the names of all properties in the filter."""
    return {node.property for node in walk(root) if isinstance(node, Comparison | Match | IsSet)}


def count_comparisons(root: Filter) -> int:
    """Return the number of comparisons; Azure documents a limit of COMPARISONS_ON_AZURE."""
    return sum(isinstance(node, Comparison | Match | IsSet) for node in walk(root))


def is_console_only(root: Filter) -> bool:
    """Return whether the filter has conditions that the service does not support."""
    return any(isinstance(node, Match | IsSet) for node in walk(root))
