"""A text that is no filter, and a repair of it."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from storage.domain.filters.lexer import Kind, Token
from storage.domain.filters.literals import write_literal
from storage.domain.values.edm import Edm, EdmValue


class Fix(StrEnum):
    """Why the repair says the same, in the words of a filter."""

    FOREIGN_SIGN = "foreign-sign"  # =, &&, "text", AND
    FUNCTION = "function"  # the service has none
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


class Repair(NamedTuple):
    """``replacement`` in the place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    replacement: str
    reason: Fix

    def applied(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


class Patient(NamedTuple):
    """``at`` is the index of the token at fault."""

    text: str
    tokens: list[Token]
    at: int
    now: datetime

    def kinds(self, start: int, count: int) -> list[Kind]:
        return [token.kind for token in self.tokens[max(0, start) : start + count]] if start >= 0 else []

    def name(self, index: int) -> str:
        """Of a name; nothing where there is none."""
        if not 0 <= index < len(self.tokens) or self.tokens[index].kind is not Kind.NAME:
            return ""
        return self.tokens[index].text

    def repair(self, first: int, last: int, replacement: str, reason: Fix) -> Repair:
        """``replacement`` for the tokens from ``first`` to ``last``, both included."""
        return Repair(self.tokens[first].start, self.tokens[last].end, replacement, reason)

    def close(self, opening: int) -> int | None:
        """The index of the parenthesis that closes the one at ``opening``."""
        depth = 0
        for index in range(opening, len(self.tokens)):
            depth += {Kind.OPEN: 1, Kind.CLOSE: -1}.get(self.tokens[index].kind, 0)
            if depth == 0:
                return index
        return None


def quoted(text: str) -> str:
    return write_literal(EdmValue(Edm.STRING, text))
