"""What is wrong in a filter, or probably not meant, and texts that would be better in its place."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from storage.domain.values.edm import Edm


class FixReason(StrEnum):
    """What a quick fix corrects."""

    FOREIGN_SIGN = "foreign-sign"  # =, &&, "text", AND
    FUNCTION = "function"  # the service has no functions
    LIST = "list"  # in (...)
    SQL = "sql"  # like, between, is null
    NULL = "null"
    UNCLOSED = "unclosed"
    UNOPENED = "unopened"
    UNQUOTED = "unquoted"
    PREFIX = "prefix"  # datetime, guid
    SPELLING = "spelling"  # of a literal
    INT64_SUFFIX = "int64-suffix"
    STORED_TYPE = "stored-type"
    STORED_NAME = "stored-name"
    OPERATOR = "operator"  # a misspelled one, or that of another language


class FilterFault(StrEnum):
    """Why a text is not a filter; each has a sentence in the console."""

    TOO_LONG = "too-long"
    TOO_DEEP = "too-deep"
    OPERATOR = "operator"  # an unknown one
    SIGN = "sign"  # of another language, such as && or AND
    UNSUPPORTED = "unsupported"  # a function, arithmetic, like, in, ...
    NULL = "null"
    QUOTES = "quotes"  # a string without, or with double ones
    OPEN_STRING = "open-string"
    OPEN_GROUP = "open-group"
    NOT_OPENED = "not-opened"  # a closing parenthesis
    PREFIX = "prefix"  # of a time, GUID or binary
    LETTER_CASE = "letter-case"  # True
    LITERAL = "literal"  # of a known type, but malformed
    CHARACTER = "character"
    OPERANDS = "operands"  # two properties, or two values
    CONDITION = "condition"  # a value in the place of one
    INCOMPLETE = "incomplete"
    UNEXPECTED = "unexpected"

    @property
    def is_unfinished(self) -> bool:
        """Whether typing on may well end it."""
        return self in (FilterFault.OPEN_STRING, FilterFault.OPEN_GROUP, FilterFault.INCOMPLETE)


class Suggestion(NamedTuple):
    """A text in place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    replacement: str
    reason: FixReason

    def apply(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


class LintRule(StrEnum):
    INT64_SUFFIX = "int64-suffix"  # required by the service
    UNKNOWN_PROPERTY = "unknown-property"
    OTHER_TYPE = "other-type"


class Finding(NamedTuple):
    """The characters at fault, and suggestions, the best first.

    In a valid filter ``reason`` is the rule that it breaks, ``name`` the property, ``asked`` the type that it is
    compared with, and ``types`` are those of its values. A text that is not a filter has a ``fault``; there ``name``
    is the word at fault, ``instead`` what should be in its place, if known, and ``asked`` the type of a literal.
    """

    start: int
    end: int
    fixes: tuple[Suggestion, ...]
    reason: LintRule | None = None
    name: str = ""
    asked: Edm | None = None
    types: tuple[Edm, ...] = ()
    fault: FilterFault | None = None
    instead: str = ""

    @property
    def type_names(self) -> str:
        return ", ".join(type_.short_name for type_ in self.types)


def apply_all(text: str, suggestions: Iterable[Suggestion]) -> str:
    """Apply suggestions that do not overlap."""
    for suggestion in sorted(suggestions, reverse=True):
        text = suggestion.apply(text)
    return text
