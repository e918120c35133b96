"""Syntax highlighting of filters, including unreadable ones."""

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby, pairwise
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
    """Split a filter into highlighted pieces that concatenate to its text."""
    paints: list[HighlightClass | None] = [None] * len(text)
    starts = set()
    for token, paint in classify_tokens(tokenize_leniently(text)):
        paints[token.start : token.end] = [paint] * (token.end - token.start)
        starts.add(token.start)
    for place in _PLACE.finditer(text):
        if place.start() in starts or paints[place.start()] in (HighlightClass.STRING, HighlightClass.TYPED):
            paints[place.start() : place.end()] = [HighlightClass.PLACE] * len(place[0])
    painted = zip(text, paints, strict=True)
    return [
        HighlightedText("".join(character for character, _ in piece), paint)
        for paint, piece in groupby(painted, key=lambda pair: pair[1])
    ]


def classify_tokens(tokens: list[Token]) -> Iterator[tuple[Token, HighlightClass]]:
    """Classify tokens by position, as properties may be named eq, and, or contains."""
    is_operand = True
    for token, following in pairwise(tokens):
        if token.kind is not TokenKind.NAME:
            yield token, _PAINTS.get(token.kind, HighlightClass.MARK)
            # after an operator of another language too, such as = or &&
            is_sign = token.kind is TokenKind.UNREADABLE and token.text in '=&|<>!"'
            is_operand = token.kind in (TokenKind.OPEN, TokenKind.COMMA) or is_sign
        elif is_operand:
            yield token, _paint_of_operand(token, following)
            is_operand = token.text == "not"
        else:
            yield token, _paint_of_operator(token)
            is_operand = True


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
