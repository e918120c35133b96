"""What the pieces of a filter's text are, for whoever paints it; unreadable text has pieces too."""

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from storage.domain.filters.ast import IS_SET, MatchKind, Operator
from storage.domain.filters.lexer import Kind, Token, lenient_tokens
from storage.domain.filters.literals import WORDS


class Paint(StrEnum):
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


class Piece(NamedTuple):
    """None paints what lies between tokens."""

    text: str
    paint: Paint | None


_PLACE = re.compile(r"\{\{[^{}']{0,100}\}\}")
_OPERATORS: Final = frozenset(Operator)
_CONNECTIVES: Final = frozenset({"and", "or"})
_FUNCTIONS: Final = frozenset({*MatchKind, IS_SET})
_PAINTS: Final = {
    Kind.STRING: Paint.STRING,
    Kind.NUMBER: Paint.NUMBER,
    Kind.DATETIME: Paint.TYPED,
    Kind.GUID: Paint.TYPED,
    Kind.BINARY: Paint.TYPED,
    Kind.UNREADABLE: Paint.UNREADABLE,
}


def pieces(text: str) -> list[Piece]:
    """Together they are the text."""
    found: list[Piece] = []
    position = 0
    places = {place.start(): place for place in _PLACE.finditer(text)}
    for token, paint in painted(lenient_tokens(text)):
        if token.start < position:
            continue
        found += _between(text[position : token.start])
        place = places.get(token.start)
        if place is not None:
            found.append(Piece(place[0], Paint.PLACE))
            position = place.end()
        else:
            found += _with_places(token.text, paint)
            position = token.end
    return _joined(found + _between(text[position:]))


def painted(found: list[Token]) -> Iterator[tuple[Token, Paint]]:
    """A name is what its place makes it: properties may be named eq, and, or contains."""
    is_operand = True
    for token, following in pairwise(found):
        if token.kind is not Kind.NAME:
            yield token, _PAINTS.get(token.kind, Paint.MARK)
            is_operand = token.kind in (Kind.OPEN, Kind.COMMA) or _is_sign(token)
        elif is_operand:
            yield token, _paint_of_operand(token, following)
            is_operand = token.text == "not"
        else:
            yield token, _paint_of_operator(token)
            is_operand = True


def _is_sign(token: Token) -> bool:
    """Whether it is what stands between operands elsewhere: = or &&."""
    return token.kind is Kind.UNREADABLE and token.text in '=&|<>!"'


def _paint_of_operand(token: Token, following: Token) -> Paint:
    if token.text == "not":
        return Paint.CONNECTIVE
    if following.kind is Kind.OPEN and token.text in _FUNCTIONS:
        return Paint.FUNCTION
    return Paint.CONSTANT if token.text in WORDS else Paint.PROPERTY


def _paint_of_operator(token: Token) -> Paint:
    if token.text in _CONNECTIVES:
        return Paint.CONNECTIVE
    return Paint.OPERATOR if token.text in _OPERATORS else Paint.UNREADABLE


def _between(text: str) -> list[Piece]:
    return [Piece(text, None)] if text else []


def _with_places(text: str, paint: Paint) -> list[Piece]:
    """A place in quotes is seen too."""
    if paint not in (Paint.STRING, Paint.TYPED) or "{{" not in text:
        return [Piece(text, paint)]
    found: list[Piece] = []
    position = 0
    for place in _PLACE.finditer(text):
        found += [Piece(text[position : place.start()], paint), Piece(place[0], Paint.PLACE)]
        position = place.end()
    return [*found, Piece(text[position:], paint)]


def _joined(found: list[Piece]) -> list[Piece]:
    """Neighbours of one paint are one piece."""
    joined: list[Piece] = []
    for piece in found:
        if joined and joined[-1].paint is piece.paint:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.paint)
        elif piece.text:
            joined.append(piece)
    return joined
