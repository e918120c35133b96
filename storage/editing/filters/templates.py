"""Filters with places to fill: ``{{tenant}}`` by a value, ``datetime'{{now-24h}}'`` by the time at which it is run.

In quotes a value is text whose apostrophes are doubled; outside of them it must be one literal. So no value can say
more than the place it is put in.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import Kind, tokens
from storage.domain.filters.literals import is_literal, read_literal
from storage.domain.filters.times import read_relative
from storage.domain.values.edm import write_datetime

_PLACE = re.compile(r"\{\{\s*(?!now\s*\}\})([^\W\d]\w{0,63})\s*\}\}")
_QUOTED: Final = r"'[^']*+(?:''[^']*+)*+'"
_QUOTED_OR_PLACE = re.compile(rf"(?P<quoted>{_QUOTED})|{_PLACE.pattern}")
_DATETIME = re.compile(rf"(?P<before>datetime)(?P<quoted>{_QUOTED})|{_QUOTED}")


class Fault(StrEnum):
    MISSING = "missing"
    NOT_A_LITERAL = "not-a-literal"


class Unfilled(ValueError):
    """A place that cannot be filled."""

    def __init__(self, name: str, fault: Fault) -> None:
        super().__init__(name, fault)
        self.name = name
        self.fault = fault


def parameters(text: str) -> tuple[str, ...]:
    """The names of the places, each once, in the order of the text."""
    found: dict[str, None] = {}
    for match in _QUOTED_OR_PLACE.finditer(text):
        names = _PLACE.findall(match["quoted"]) if match["quoted"] else [match[2]]
        found.update(dict.fromkeys(names))
    return tuple(found)


def fill(text: str, values: Mapping[str, str]) -> str:
    """With a value in each place; relative times stay as they are. Raises Unfilled."""

    def filled(match: re.Match[str]) -> str:
        if match["quoted"]:
            return _PLACE.sub(lambda place: _value(values, place[1]).replace("'", "''"), match["quoted"])
        return _apart(match, _literal(match[2], _value(values, match[2])))

    return _QUOTED_OR_PLACE.sub(filled, text)


def absolute(text: str, now: datetime) -> str:
    """With the times that it means now."""
    return _DATETIME.sub(_at(now), text)


def resolve(text: str, now: datetime, values: Mapping[str, str]) -> str:
    """What is to be run. A value in the place of a DateTime may be relative itself; raises Unfilled."""
    return absolute(fill(text, values), now)


def is_relative(text: str) -> bool:
    """Whether it means something else at another time."""
    long_ago = datetime(2000, 1, 1)  # noqa: DTZ001  any time will do
    return absolute(text, long_ago) != text


def _value(values: Mapping[str, str], name: str) -> str:
    if name not in values:
        raise Unfilled(name, Fault.MISSING)
    return values[name]


def _literal(name: str, value: str) -> str:
    try:
        literal, *rest = tokens(value)
        if is_literal(literal) and [token.kind for token in rest] == [Kind.END]:
            read_literal(literal, value)
            return literal.text
    except StorageError:
        pass
    raise Unfilled(name, Fault.NOT_A_LITERAL)


def _apart(place: re.Match[str], literal: str) -> str:
    """Kept from growing together with what stands beside it: two texts would be one with an apostrophe."""
    before, after = place.string[: place.start()][-1:], place.string[place.end() :][:1]
    left = " " if before and before not in " \t\r\n(," else ""
    right = " " if after and after not in " \t\r\n)," else ""
    return f"{left}{literal}{right}"


def _at(now: datetime) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        moment = read_relative(match["quoted"][1:-1], now) if match["quoted"] else None
        return match[0] if moment is None else f"datetime'{write_datetime(moment)}'"

    return replaced
