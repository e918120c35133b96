"""Tokens of a filter with their positions, and the sentences for what cannot be read.

The sentences are those of WCF Data Services. A syntax error names the position where the unexpected token
ends, as the service does.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from storage.domain.errors import InvalidInput


class Kind(Enum):
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    DATETIME = "datetime"
    GUID = "guid"
    BINARY = "binary"
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    COLON = ":"
    SLASH = "/"
    MINUS = "-"
    END = "end"


class Token(NamedTuple):
    kind: Kind
    text: str
    start: int
    end: int


# possessive quantifiers: an unterminated string must not be tried again as a shorter one
_QUOTED: Final = r"'[^']*+(?:''[^']*+)*+'"
# letters, digits and underscore, and beyond ASCII whatever is not space
_NAME_CHARACTER: Final = r"[^\x00-/:-@\[-^`{-\x7f\s]"
_TOKEN = re.compile(
    rf"""
      (?P<number>-?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?[dDlL]?|-(?:INF|Infinity))(?!{_NAME_CHARACTER}|[.'])
    | datetime(?P<datetime>{_QUOTED})
    | guid(?P<guid>{_QUOTED})
    | (?:X|x|binary)(?P<binary>{_QUOTED})
    | (?P<string>{_QUOTED})
    | (?P<name>{_NAME_CHARACTER}++)
    | (?P<mark>[(),:/-])
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of the filter; the last one is of kind END."""
    position = _after_space(text, 0)
    while position < len(text):
        token = _token(text, position)
        yield token
        position = _after_space(text, token.end)
    yield Token(Kind.END, "", len(text), len(text))


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _token(text: str, start: int) -> Token:
    match = _TOKEN.match(text, start)
    if match is None:
        raise _unreadable(text, start)
    group = match.lastgroup or ""
    if group == "name":
        _check_name(text, match[0], start)
    kind = Kind(match[0] if group == "mark" else group)
    return Token(kind, match[0], start, match.end())


def _check_name(text: str, name: str, start: int) -> None:
    if name.isidentifier():
        return
    if name[0] in "0123456789":  # a number that goes on as if it were a name
        raise syntax_error(text, start + len(name))
    for offset, character in enumerate(name):
        if not f"{'_' if offset else ''}{character}".isidentifier():
            raise _invalid_character(text, start + offset)
    raise _invalid_character(text, start)


def _unreadable(text: str, start: int) -> InvalidInput:
    character = text[start]
    if character == "'":
        return InvalidInput(f"There is an unterminated string literal at position {len(text)} in '{text}'.")
    return _invalid_character(text, start)


def _invalid_character(text: str, position: int) -> InvalidInput:
    character = text[position]
    return InvalidInput(
        f"Syntax error: character '{character}' is not valid at position {position} in '{text}'."
    )


def syntax_error(text: str, position: int) -> InvalidInput:
    return InvalidInput(f"Syntax error at position {position} in '{text}'.")
