"""Addition of a condition to a filter, keeping its text."""

import re
from enum import StrEnum
from typing import Final, cast

from storage.domain.filters.ast import And, Comparison, Filter, Operator, Or
from storage.domain.filters.writer import write
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue, read_datetime

ORDERED: Final = frozenset({Edm.STRING, Edm.INT32, Edm.INT64, Edm.DOUBLE, Edm.DATETIME})
_AROUND: Final = 5 * 60 * TICKS_PER_SECOND
_FIRST: Final = read_datetime("1601-01-01T00:00:00Z")
_LAST: Final = read_datetime("9999-12-31T23:59:59.9999999Z")


class ConditionKind(StrEnum):
    """Kind of condition to build from a value in the grid."""

    IS = "is"
    IS_NOT = "is-not"
    GREATER = "greater"
    LESS = "less"
    AROUND = "around"  # five minutes before and after

    @property
    def types(self) -> frozenset[Edm]:
        """Return the types to which the condition applies."""
        match self:
            case ConditionKind.IS | ConditionKind.IS_NOT:
                return frozenset(Edm)
            case ConditionKind.GREATER | ConditionKind.LESS:
                return ORDERED
            case ConditionKind.AROUND:
                return frozenset({Edm.DATETIME})


_HALF = re.compile("[\ud800-\udfff]")
_OPERATORS: Final = {
    ConditionKind.IS: Operator.EQ,
    ConditionKind.IS_NOT: Operator.NE,
    ConditionKind.GREATER: Operator.GT,
    ConditionKind.LESS: Operator.LT,
}


def fits_in_url(value: EdmValue) -> bool:
    """Return whether a value can be in a URL, which cannot encode lone surrogates."""
    return not isinstance(value.value, str) or _HALF.search(value.value) is None


def build_condition(name: str, how: ConditionKind, value: EdmValue) -> Filter:
    if how is ConditionKind.AROUND:
        ticks = cast("int", value.value)
        return And(
            (
                Comparison(name, Operator.GE, EdmValue(Edm.DATETIME, max(ticks - _AROUND, _FIRST))),
                Comparison(name, Operator.LE, EdmValue(Edm.DATETIME, min(ticks + _AROUND, _LAST))),
            )
        )
    return Comparison(name, _OPERATORS[how], value)


def add_condition_text(text: str, root: Filter | None, clause: str) -> str:
    """Add a condition to a filter; ``root`` is the parsed text."""
    if root is None:
        return clause
    return f"({text.strip()}) and {clause}" if isinstance(root, Or) else f"{text.strip()} and {clause}"


def add_condition(text: str, root: Filter | None, wanted: Filter) -> str:
    return add_condition_text(text, root, write(wanted))
