"""Syntax highlighting of filters, including unreadable ones."""

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from storage.domain.filters.ast import IS_SET, MatchKind, Operator
from storage.domain.filters.lexer import Token, TokenKind, tokenize_leniently
from storage.domain.filters.literals import WORDS


class HighlightClass(StrEnum):
    PROPERTY = "property"
    OPERATOR = "operator"  # eq
    CONNECTIVE = "connective"  # and, or, not
    FUNCTION = "function"
    STRING = "string"
    NUMBER = "number"
    CONSTANT = "constant"  # true
    TYPED = "typed"  # datetime'...'
    PLACE = "place"  # {{tenant}}
    MARK = "mark"
    UNREADABLE = "unreadable"


class HighlightedText(NamedTuple):
    """A piece of text; the class is None between tokens."""

    text: str
    paint: HighlightClass | None


_PLACE = re.compile(r"\{\{[^{}']{0,100}\}\}")
_OPERATORS: Final = frozenset(Operator)
_CONNECTIVES: Final = frozenset({"and", "or"})
_FUNCTIONS: Final = frozenset({*MatchKind, IS_SET})
_PAINTS: Final = {
    TokenKind.STRING: HighlightClass.STRING,
    TokenKind.NUMBER: HighlightClass.NUMBER,
    TokenKind.DATETIME: HighlightClass.TYPED,
    TokenKind.GUID: HighlightClass.TYPED,
    TokenKind.BINARY: HighlightClass.TYPED,
    TokenKind.UNREADABLE: HighlightClass.UNREADABLE,
}


def highlight_filter(text: str) -> list[HighlightedText]:
    """Split a filter into pieces that together are its text."""
    found: list[HighlightedText] = []
    position = 0
    places = {place.start(): place for place in _PLACE.finditer(text)}
    for token, paint in classify_tokens(tokenize_leniently(text)):
        if token.start < position:
            continue
        found += _between(text[position : token.start])
        place = places.get(token.start)
        if place is not None:
            found.append(HighlightedText(place[0], HighlightClass.PLACE))
            position = place.end()
        else:
            found += _with_places(token.text, paint)
            position = token.end
    return _joined(found + _between(text[position:]))


def classify_tokens(found: list[Token]) -> Iterator[tuple[Token, HighlightClass]]:
    """Classify tokens by position, because properties may be named eq, and, or contains."""
    is_operand = True
    for token, following in pairwise(found):
        if token.kind is not TokenKind.NAME:
            yield token, _PAINTS.get(token.kind, HighlightClass.MARK)
            is_operand = token.kind in (TokenKind.OPEN, TokenKind.COMMA) or _is_sign(token)
        elif is_operand:
            yield token, _paint_of_operand(token, following)
            is_operand = token.text == "not"
        else:
            yield token, _paint_of_operator(token)
            is_operand = True


def _is_sign(token: Token) -> bool:
    """Return whether the token is an operator of another language, such as = or &&."""
    return token.kind is TokenKind.UNREADABLE and token.text in '=&|<>!"'


def _paint_of_operand(token: Token, following: Token) -> HighlightClass:
    if token.text == "not":
        return HighlightClass.CONNECTIVE
    if following.kind is TokenKind.OPEN and token.text in _FUNCTIONS:
        return HighlightClass.FUNCTION
    return HighlightClass.CONSTANT if token.text in WORDS else HighlightClass.PROPERTY


def _paint_of_operator(token: Token) -> HighlightClass:
    if token.text in _CONNECTIVES:
        return HighlightClass.CONNECTIVE
    return HighlightClass.OPERATOR if token.text in _OPERATORS else HighlightClass.UNREADABLE


def _between(text: str) -> list[HighlightedText]:
    return [HighlightedText(text, None)] if text else []


def _with_places(text: str, paint: HighlightClass) -> list[HighlightedText]:
    """Split a literal at the parameters in its quotes."""
    if paint not in (HighlightClass.STRING, HighlightClass.TYPED) or "{{" not in text:
        return [HighlightedText(text, paint)]
    found: list[HighlightedText] = []
    position = 0
    for place in _PLACE.finditer(text):
        found += [
            HighlightedText(text[position : place.start()], paint),
            HighlightedText(place[0], HighlightClass.PLACE),
        ]
        position = place.end()
    return [*found, HighlightedText(text[position:], paint)]


def _joined(found: list[HighlightedText]) -> list[HighlightedText]:
    """Join adjacent pieces of the same class."""
    joined: list[HighlightedText] = []
    for piece in found:
        if joined and joined[-1].paint is piece.paint:
            joined[-1] = HighlightedText(joined[-1].text + piece.text, piece.paint)
        elif piece.text:
            joined.append(piece)
    return joined
