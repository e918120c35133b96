"""Lexer of filters: tokens with positions, and errors for unreadable text."""

import re
from enum import Enum
from typing import Final, NamedTuple

from storage.domain.errors import InvalidInput


class TokenKind(Enum):
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
    UNREADABLE = "unreadable"


class Token(NamedTuple):
    kind: TokenKind
    text: str
    start: int
    end: int


# possessive quantifiers: an unterminated string must not be tried again as a shorter one
QUOTED: Final = r"'[^']*+(?:''[^']*+)*+'"
# letters, digits and underscore; beyond ASCII everything but whitespace
_NAME_CHARACTER: Final = r"[^\x00-/:-@\[-^`{-\x7f\s]"
_TOKEN = re.compile(
    rf"""
    (?: (?P<number>-?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?[dDlL]?
                  |-(?:INF|Infinity))(?!{_NAME_CHARACTER}|[.'])
      | (?P<datetime>datetime{QUOTED})
      | (?P<guid>guid{QUOTED})
      | (?P<binary>(?:X|x|binary){QUOTED})
      | (?P<string>{QUOTED})
      | (?P<name>{_NAME_CHARACTER}++)
      | (?P<mark>[(),:/-])
    )\s*+
    """,
    re.VERBOSE,
)
_KINDS: Final = {kind.value: kind for kind in TokenKind}


def tokenize(text: str) -> list[Token]:
    """Tokenize a filter, ending with an END token; raises InvalidInput for the first unreadable token."""
    tokens = tokenize_leniently(text)
    for token in tokens:
        if token.kind is TokenKind.UNREADABLE:
            raise _refusal(text, token)
    return tokens


def tokenize_leniently(text: str) -> list[Token]:
    """Tokenize a filter without errors: unreadable characters become tokens, an open string extends to the end."""
    tokens: list[Token] = []
    position = len(text) - len(text.lstrip())
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is not None:
            group = match.lastgroup or ""
            read, end = match[group], match.end()
            is_readable = group != "name" or read.isidentifier()
            kind = _KINDS[read if group == "mark" else group] if is_readable else TokenKind.UNREADABLE
        else:
            end = len(text) if text[position] == "'" else position + 1
            read, kind = text[position:end], TokenKind.UNREADABLE
        if not read.isspace():
            tokens.append(Token(kind, read, position, position + len(read)))
        position = end
    return [*tokens, Token(TokenKind.END, "", len(text), len(text))]


def _refusal(text: str, token: Token) -> InvalidInput:
    if token.text.startswith("'"):
        unterminated = f"There is an unterminated string literal at position {len(text)} in '{text}'."
        return InvalidInput(unterminated).at(token.start, token.end)
    if token.text[0] in "0123456789":  # a number that continues like a name
        return syntax_error(text, token.end, (token.start, token.end))
    for offset, character in enumerate(token.text):
        if not f"{'_' if offset else ''}{character}".isidentifier():
            return _invalid_character(text, token.start + offset)
    return _invalid_character(text, token.start)


def _invalid_character(text: str, position: int) -> InvalidInput:
    character = text[position]
    sentence = f"Syntax error: character '{character}' is not valid at position {position} in '{text}'."
    return InvalidInput(sentence).at(position, position + 1)


def syntax_error(text: str, position: int, span: tuple[int, int]) -> InvalidInput:
    return InvalidInput(f"Syntax error at position {position} in '{text}'.").at(*span)
