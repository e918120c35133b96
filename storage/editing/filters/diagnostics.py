"""Diagnostics of a filter: its errors and probable mistakes, and suggestions for better texts."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from storage.domain.refusals import Refusal
from storage.domain.values.edm import Edm

KnownTypes = Mapping[str, Sequence[Edm]]  # the types of each property of the entities


class Schema(NamedTuple):
    """Known properties of the entities; empty if unknown."""

    types: KnownTypes
    is_whole: bool = False  # whether no entity was left out


NO_SCHEMA: Final = Schema({})


class Severity(Enum):
    ERROR = "error"  # the text is not a filter
    UNFINISHED = "unfinished"  # the text is not a filter, but typing on may make it one
    WARNING = "warning"  # the filter is valid, but probably not meant


class Suggestion(NamedTuple):
    """Replacement for the characters from ``start`` up to ``end``, with the problem that it fixes."""

    start: int
    end: int
    replacement: str
    refusal: Refusal

    def apply(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


class Diagnostic(NamedTuple):
    """Range of a filter with its problem and quick fixes, best first."""

    start: int
    length: int
    refusal: Refusal
    severity: Severity
    fixes: tuple[Suggestion, ...] = ()

    @property
    def end(self) -> int:
        return self.start + self.length


def apply_all(text: str, suggestions: Iterable[Suggestion]) -> str:
    """Apply suggestions, which must not overlap."""
    for suggestion in sorted(suggestions, key=lambda it: it.start, reverse=True):
        text = suggestion.apply(text)
    return text
