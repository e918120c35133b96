"""Which values of a filter may become places, so that they are asked for at each run."""

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from storage.domain.errors import StorageError
from storage.domain.filters.ast import Operator
from storage.domain.filters.lexer import Kind, Token, tokens
from storage.domain.filters.literals import is_literal

_NAME: Final = re.compile(r"[^\W\d]\w*")
_LONGEST: Final = 60
_OPERATORS: Final = frozenset(Operator)
_QUOTED: Final = frozenset({Kind.STRING, Kind.DATETIME, Kind.GUID, Kind.BINARY})


class Offer(NamedTuple):
    """A literal of the text, what it is compared with, and the name of the place it may become."""

    compared: str
    literal: str
    name: str
    start: int

    @property
    def place(self) -> str:
        before, quote, _ = self.literal.partition("'")
        return f"{before}'{{{{{self.name}}}}}'" if quote else f"{{{{{self.name}}}}}"

    @property
    def value(self) -> str:
        """By which the place says the same again."""
        _, quote, rest = self.literal.partition("'")
        return rest[:-1].replace("''", "'") if quote else self.literal


def offers(text: str) -> list[Offer]:
    """None of what cannot be read, nor of what has places already."""
    found: list[Offer] = []
    for compared, literal in _compared(text):
        name = _free_name(compared.text, {offer.name for offer in found})
        found.append(Offer(compared.text, literal.text, name, literal.start))
    return found


def with_places(text: str, names: Collection[str]) -> str:
    """With places for the offers of these names."""
    for offer in reversed(offers(text)):
        if offer.name in names:
            text = text[: offer.start] + offer.place + text[offer.start + len(offer.literal) :]
    return text


def _compared(text: str) -> Iterator[tuple[Token, Token]]:
    try:
        found = tokens(text)
    except StorageError:
        return
    for left, between, right in zip(found, found[1:], found[2:], strict=False):
        is_compared = between.kind is Kind.COMMA or between.text in _OPERATORS
        if left.kind is Kind.NAME and is_compared and is_literal(right) and "{{" not in right.text:
            yield left, right


def _free_name(property_name: str, taken: Collection[str]) -> str:
    start = property_name[:_LONGEST] if _NAME.fullmatch(property_name) else "value"
    names = (start, *(f"{start}{number}" for number in range(2, len(taken) + 4)))
    return next(name for name in names if name not in taken and name != "now")
