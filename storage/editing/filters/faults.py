"""Which characters are at fault in what is well-formed and yet no filter."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.domain.filters.ast import Operator
from storage.domain.filters.lexer import Kind, Token
from storage.domain.filters.literals import LITERALS, WORDS
from storage.editing.filters.mending import Patient


def span(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Of the first function, null, list, or comparison of unfit sides."""
    patient = Patient("", list(tokens), 0, datetime.min)  # noqa: DTZ901
    for index, token in enumerate(tokens):
        last = _last_of_fault(patient, index)
        if last is not None:
            return token.start, tokens[last].end
    return None


def _last_of_fault(patient: Patient, index: int) -> int | None:
    name = patient.name(index)
    if name == "null":
        return index
    if name and patient.kinds(index + 1, 1) == [Kind.OPEN] and name not in _BEFORE_GROUP:
        return patient.close(index + 1) or len(patient.tokens) - 1
    if name in _UNSUPPORTED and patient.kinds(index - 1, 1) not in ([], [Kind.OPEN]):
        return index
    if patient.kinds(index, 1) in ([Kind.SLASH], [Kind.MINUS]):
        return index
    is_call = patient.kinds(index + 3, 1) == [Kind.OPEN]
    is_relation = patient.name(index + 1) in RELATIONS and index + 2 < len(patient.tokens)
    if is_relation and not is_call and _is_value(patient, index) is _is_value(patient, index + 2) is not None:
        return index + 2
    return index if _stands_alone(patient, index) else None


RELATIONS: Final = frozenset(Operator)
_UNSUPPORTED: Final = frozenset({"in", "has", "add", "sub", "mul", "div", "mod"})
_BEFORE_GROUP: Final = frozenset({"and", "or", "not", *RELATIONS, *_UNSUPPORTED})


def _is_value(patient: Patient, index: int) -> bool | None:
    """Whether a literal stands there, or a name; None for anything else."""
    token = patient.tokens[index]
    if token.kind in LITERALS or patient.name(index) in WORDS:
        return True
    return False if token.kind is Kind.NAME else None


def _stands_alone(patient: Patient, index: int) -> bool:
    is_compared = patient.name(index - 1) in RELATIONS or patient.name(index + 1) in RELATIONS
    return patient.tokens[index].kind in LITERALS and not is_compared
