"""What is wrong in a text that is no filter, and what to put in its place: mostly what other languages would say."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import lenient_tokens
from storage.domain.filters.parser import CONSOLE_LIMIT, Dialect, parse
from storage.editing.filters import faults, foreign, foreign_calls, unquoted
from storage.editing.filters.mending import Fix as Fix
from storage.editing.filters.mending import Patient
from storage.editing.filters.mending import Repair as Repair

_RULES: Final[Sequence[Callable[[Patient], Iterator[Repair]]]] = (
    foreign.signs,
    foreign_calls.calls,
    foreign_calls.infixes,
    foreign_calls.nulls,
    unquoted.prefixes,
    unquoted.spelling,
    unquoted.unquoted,
    unquoted.unclosed,
)


class Diagnosis(NamedTuple):
    """Which characters are at fault, and what may be done about it, the best first."""

    start: int
    end: int
    repairs: tuple[Repair, ...]


def diagnose(text: str, error: StorageError, now: datetime) -> Diagnosis:
    """``error`` is what reading the text raised."""
    if len(text) > CONSOLE_LIMIT:
        return Diagnosis(0, len(text), ())
    tokens = lenient_tokens(text)
    start, end = error.span or faults.span(tokens) or (0, len(text))
    at = next((index for index, token in enumerate(tokens) if token.end > start), len(tokens) - 1)
    patient = Patient(text, tokens, at, now)
    found = list(dict.fromkeys(repair for rule in _RULES for repair in rule(patient)))
    curing = [repair for repair in found if _is_filter(repair.applied(text), now)]
    # one step of several is better than none
    return Diagnosis(start, end, tuple(curing or found[:1]))


def _is_filter(text: str, now: datetime) -> bool:
    try:
        return parse(text, Dialect.CONSOLE, now) is not None
    except StorageError:
        return False
