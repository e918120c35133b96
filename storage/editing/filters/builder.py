"""Filter as rows of the query builder, whose operators may combine several conditions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, assert_never

from storage.domain.filters.ast import (
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    MatchKind,
    Not,
    Operator,
    Or,
    all_of,
)
from storage.domain.filters.literals import RelativeTime
from storage.domain.filters.writer import write
from storage.domain.translation import mark as _
from storage.domain.values.edm import Edm, EdmValue

GROUP_DEPTH_LIMIT: Final = 3  # levels of groups, including the outermost


class RowOperator(StrEnum):
    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"
    STARTS_WITH = "starts-with"
    BETWEEN = "between"  # inclusive
    ONE_OF = "one-of"
    IN_THE_LAST = "in-the-last"
    CONTAINS = "contains"
    ENDS_WITH = "ends-with"
    IS_SET = "is-set"
    IS_NOT_SET = "is-not-set"


CONSOLE_OPERATORS: Final = frozenset(
    {RowOperator.CONTAINS, RowOperator.ENDS_WITH, RowOperator.IS_SET, RowOperator.IS_NOT_SET}
)
_COMPARING: Final = tuple(RowOperator(operator) for operator in Operator)
_MATCH_KINDS: Final = {RowOperator.CONTAINS: MatchKind.CONTAINS, RowOperator.ENDS_WITH: MatchKind.ENDS_WITH}
_MATCHING: Final = {kind: operator for operator, kind in _MATCH_KINDS.items()}
_SETTING: Final = (RowOperator.IS_SET, RowOperator.IS_NOT_SET)


class Connective(StrEnum):
    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class FilterRow:
    """Filter condition; ``values`` has none for is (not) set, two for between, one or more for one-of, else one."""

    property: str
    operator: RowOperator
    type: Edm | None
    values: tuple[EdmValue, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RowGroup:
    connective: Connective
    items: tuple["RowGroup | FilterRow", ...]
    negated: bool = False

    @property
    def depth(self) -> int:
        return 1 + max((item.depth for item in self.items if isinstance(item, RowGroup)), default=0)


class Obstacle(StrEnum):
    """Reason why a filter cannot be shown as rows, in English."""

    TOO_DEEP = _("Groups are nested more than three levels deep.")
    CONSTANT = _("The filter contains a bare true or false, which isn't a condition on a property.")
    DOUBLE_NEGATION = _("The filter contains a double negation.")


@dataclass(frozen=True, slots=True)
class NotDrawable:
    reason: Obstacle


NO_CONDITIONS: Final = RowGroup(Connective.AND, ())


def operators_for(type_: Edm) -> tuple[RowOperator, ...]:
    """Return the operators for values of a type, most common first."""
    match type_:
        case Edm.STRING:
            return (*_COMPARING, RowOperator.STARTS_WITH, RowOperator.BETWEEN, RowOperator.ONE_OF,
                    RowOperator.CONTAINS, RowOperator.ENDS_WITH, *_SETTING)  # fmt: skip
        case Edm.DATETIME:
            return (*_COMPARING, RowOperator.IN_THE_LAST, RowOperator.BETWEEN, RowOperator.ONE_OF, *_SETTING)
        case Edm.INT32 | Edm.INT64 | Edm.DOUBLE:
            return (*_COMPARING, RowOperator.BETWEEN, RowOperator.ONE_OF, *_SETTING)
        case Edm.GUID | Edm.BINARY:
            return (*_COMPARING, RowOperator.ONE_OF, *_SETTING)
        case Edm.BOOLEAN:
            return (RowOperator.EQ, RowOperator.NE, *_SETTING)
        case _:
            assert_never(type_)


# rows → filter


def to_text(group: RowGroup) -> str:
    """Convert the rows to a filter text; empty without conditions."""
    root = to_filter(group)
    return "" if root is None else write(root)


def to_filter(group: RowGroup) -> Filter | None:
    """Convert a group to a filter; None if it has no conditions."""
    operands: list[Filter] = []
    for item in group.items:
        match item:
            case RowGroup():
                inner = to_filter(item)
                operands += [] if inner is None else [inner]
            case FilterRow():
                operands += _operands(item, is_flat=group.connective is Connective.AND)
    if not operands:
        return None
    joined = _joined(group.connective, operands)
    return Not(joined) if group.negated else joined


def _joined(connective: Connective, operands: Sequence[Filter]) -> Filter:
    if connective is Connective.AND or len(operands) == 1:
        return all_of(operands)
    return Or(tuple(operands))


def _operands(clause: FilterRow, *, is_flat: bool) -> list[Filter]:
    """Return the operands of a row; both bounds of a range need no parentheses in a conjunction."""
    bounds = _bounds(clause)
    if is_flat and not clause.negated and bounds:
        return bounds
    condition = all_of(bounds) if bounds else _condition(clause)
    return [Not(condition) if clause.negated else condition]


def _bounds(clause: FilterRow) -> list[Filter]:
    match clause.operator, clause.values:
        case RowOperator.BETWEEN, (first, last):
            return [_compared(clause, Operator.GE, first), _compared(clause, Operator.LE, last)]
        case RowOperator.STARTS_WITH, (EdmValue(Edm.STRING, str(prefix)) as first,):
            end = prefix_end(prefix)
            above = [] if end is None else [_compared(clause, Operator.LT, EdmValue(Edm.STRING, end))]
            return [_compared(clause, Operator.GE, first), *above]
    return []


def _condition(clause: FilterRow) -> Filter:
    match clause.operator, clause.values:
        case RowOperator.ONE_OF, values if values:
            return _joined(Connective.OR, [_compared(clause, Operator.EQ, value) for value in values])
        case RowOperator.IN_THE_LAST, (value,):
            return _compared(clause, Operator.GE, value)
        case (RowOperator.CONTAINS | RowOperator.ENDS_WITH) as operator, (EdmValue(Edm.STRING, str(text)),):
            return Match(clause.property, _MATCH_KINDS[operator], text)
        case RowOperator.IS_SET, ():
            return IsSet(clause.property)
        case RowOperator.IS_NOT_SET, ():
            return Not(IsSet(clause.property))
        case operator, (value,) if operator in _COMPARING:
            return _compared(clause, Operator(operator), value)
    raise ValueError(f"{clause.operator} does not take {len(clause.values)} values of {clause.type}")


def _compared(clause: FilterRow, operator: Operator, value: EdmValue) -> Comparison:
    return Comparison(clause.property, operator, value)


# filter → rows


def to_rows(root: Filter | None) -> RowGroup | NotDrawable:
    if root is None:
        return NO_CONDITIONS
    try:
        drawn = _drawn_group(root)
    except _Undrawable as obstacle:
        return NotDrawable(obstacle.reason)
    return drawn


class _Undrawable(Exception):
    def __init__(self, reason: Obstacle) -> None:
        self.reason = reason


def _drawn_group(root: Filter) -> RowGroup:
    """Build the outermost group, which is never negated: a negated filter becomes its only item."""
    if isinstance(root, And) or (isinstance(root, Or) and _one_of(root.operands) is None):
        return _inner(root, depth=0)
    return RowGroup(Connective.AND, (_item(root, depth=1),))


def _items(operands: Sequence[Filter], *, depth: int) -> tuple[RowGroup | FilterRow, ...]:
    """Convert the operands of a conjunction to rows, merging two adjacent bounds of a property into one."""
    items: list[RowGroup | FilterRow] = []
    position = 0
    while position < len(operands):
        pair = _pair(*operands[position : position + 2])
        items.append(pair or _operand(operands[position], depth=depth))
        position += 2 if pair else 1
    return tuple(items)


def _operand(node: Filter, *, depth: int) -> RowGroup | FilterRow:
    """Convert an operand of a conjunction; a nested conjunction stays a group, even of one row."""
    return _inner(node, depth=depth) if isinstance(node, And) else _item(node, depth=depth)


def _item(node: Filter, *, depth: int) -> RowGroup | FilterRow:
    """Convert a filter node to a row or group; ``depth`` is that of the enclosing group."""
    match node:
        case Comparison(name, operator, literal):
            return FilterRow(name, _row_operator(operator, literal), literal.type, (literal,))
        case Match(name, kind, text):
            return FilterRow(name, _MATCHING[kind], Edm.STRING, (EdmValue(Edm.STRING, text),))
        case IsSet(name):
            return FilterRow(name, RowOperator.IS_SET, None, ())
        case Not(operand):
            return _negated(operand, depth=depth)
        case And(operands):
            return _pair(*operands) or _inner(node, depth=depth)
        case Or(operands):
            return _one_of(operands) or _inner(node, depth=depth)
        case Constant():
            raise _Undrawable(Obstacle.CONSTANT)
        case _:
            assert_never(node)


def _negated(operand: Filter, *, depth: int) -> RowGroup | FilterRow:
    if isinstance(operand, IsSet):
        return FilterRow(operand.property, RowOperator.IS_NOT_SET, None, ())
    if isinstance(operand, Not):
        raise _Undrawable(Obstacle.DOUBLE_NEGATION)
    return replace(_item(operand, depth=depth), negated=True)


def _inner(node: And | Or, *, depth: int) -> RowGroup:
    if depth == GROUP_DEPTH_LIMIT:
        raise _Undrawable(Obstacle.TOO_DEEP)
    if isinstance(node, And):
        return RowGroup(Connective.AND, _items(node.operands, depth=depth + 1))
    return RowGroup(Connective.OR, tuple(_item(operand, depth=depth + 1) for operand in node.operands))


def _row_operator(operator: Operator, literal: EdmValue) -> RowOperator:
    is_past = isinstance(literal.value, RelativeTime) and literal.value.amount < 0
    return RowOperator.IN_THE_LAST if is_past and operator is Operator.GE else RowOperator(operator)


def _pair(*operands: Filter) -> FilterRow | None:
    match operands:
        case (Comparison(name, Operator.GE, first), Comparison(other, upper, last)) if (
            name == other and first.type is last.type
        ):
            if upper is Operator.LE and RowOperator.BETWEEN in operators_for(first.type):
                return FilterRow(name, RowOperator.BETWEEN, first.type, (first, last))
            if (
                upper is Operator.LT
                and first.type is Edm.STRING
                and prefix_end(str(first.value)) == last.value
            ):
                return FilterRow(name, RowOperator.STARTS_WITH, Edm.STRING, (first,))
    return None


def _one_of(operands: Sequence[Filter]) -> FilterRow | None:
    equalities = [node for node in operands if isinstance(node, Comparison) and node.operator is Operator.EQ]
    same = all(a.property == b.property and a.literal.type is b.literal.type for a, b in pairwise(equalities))
    if len(equalities) < len(operands) or not same:
        return None
    values = tuple(node.literal for node in equalities)
    type_ = values[0].type
    if RowOperator.ONE_OF not in operators_for(type_):
        return None
    return FilterRow(equalities[0].property, RowOperator.ONE_OF, type_, values)


_LAST: Final = "\U0010ffff"
_SURROGATES: Final = range(0xD800, 0xE000)


def prefix_end(prefix: str) -> str | None:
    """Return the exclusive upper bound of all texts with a prefix, in code-point order; None if there is none.

    The last character is incremented, skipping the surrogates, which neither keys nor URLs can contain; trailing
    U+10FFFF are dropped.
    """
    rest = prefix.rstrip(_LAST)
    if not rest:
        return None
    code = ord(rest[-1]) + 1
    return rest[:-1] + chr(_SURROGATES.stop if code in _SURROGATES else code)
