"""Type detection for a column of texts, with the reason; lossless, so values that would be respelled are Strings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from storage.domain.values.edm import Edm
from storage.editing import typed_text
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextForm

# the most specific first
GUESSES: Final = (Edm.INT32, Edm.INT64, Edm.DOUBLE, Edm.BOOLEAN, Edm.DATETIME, Edm.GUID)
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity", re.ASCII)
_LEADING_ZEROS = re.compile(r"-?0[0-9]+", re.ASCII)
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", re.ASCII)
# as programs write them: ISO 8601, pandas, PostgreSQL, Cassandra
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)", re.ASCII)
_ZONE_NAME = re.compile(r".*\d ?(?:UTC|GMT)", re.ASCII)


class GuessReason(StrEnum):
    """Reason for the type of a column; all but the first are reasons for a String."""

    FITS = "all values look like it"
    EMPTY = "no values"
    LEADING_ZEROS = "numbers with leading zeros"
    TOO_MANY_DIGITS = "numbers that no numeric type holds exactly"
    NO_ZONE = "dates or times without a time zone"
    TWO_READINGS = "numbers that can be read in two ways"
    MIXED = "values of several types"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Guess:
    """Guessed type with its reason and the decisive value."""

    type: Edm
    reason: GuessReason
    example: str = ""


def guess(values: Sequence[str], context: InputContext) -> Guess:
    """Guess the common type of texts."""
    if not values:
        return Guess(Edm.STRING, GuessReason.EMPTY)
    for type_ in GUESSES:
        if all(looks_like(type_, value, context) for value in values):
            return Guess(type_, GuessReason.FITS, values[0])
    examples: dict[GuessReason, str] = {}
    for value in values:
        if (reason := _reason(value, context)) is not None:
            examples.setdefault(reason, value)
    reason = next((it for it in GuessReason if it in examples), GuessReason.TEXT)
    return Guess(Edm.STRING, reason, examples.get(reason, values[0]))


def fits(type_: Edm, text: str, context: InputContext) -> bool:
    """Return whether a text is a value of a type without losing digits."""
    try:
        typed_text.read_exactly(type_, text, context, TextForm.BASE64 if type_ is Edm.BINARY else None)
    except InvalidText:
        return False
    return True


def is_plain_number(text: str) -> bool:
    """Return whether a text is a number as programs write it."""
    return _NUMBER.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number without leading zeros."""
    return _WHOLE.fullmatch(text) is not None


def is_identifier(text: str, context: InputContext) -> bool:
    """Return whether digits are more likely an identifier: leading zeros, or more digits than a number holds."""
    return _LEADING_ZEROS.fullmatch(text) is not None or _has_too_many_digits(text, context)


def _has_too_many_digits(text: str, context: InputContext) -> bool:
    return is_plain_number(text) and not any(looks_like(type_, text, context) for type_ in GUESSES[:3])


def _reason(text: str, context: InputContext) -> GuessReason | None:
    """Return why a text keeps its column from having a narrower type than String."""
    if _LEADING_ZEROS.fullmatch(text):
        return GuessReason.LEADING_ZEROS
    if _has_too_many_digits(text, context):
        return GuessReason.TOO_MANY_DIGITS
    if _LOCAL_TIME.fullmatch(text) and not _INSTANT.fullmatch(text) and not _ZONE_NAME.fullmatch(text):
        return GuessReason.NO_ZONE
    return GuessReason.MIXED if any(looks_like(type_, text, context) for type_ in GUESSES) else None


def looks_like(type_: Edm, text: str, context: InputContext) -> bool:
    """Return whether a text has the usual spelling of a type."""
    match type_:
        case Edm.INT32 | Edm.INT64:
            return _WHOLE.fullmatch(text) is not None and text != "-0" and fits(type_, text, context)
        case Edm.DOUBLE:
            return _NUMBER.fullmatch(text) is not None and _is_exact(text, context)
        case Edm.DATETIME:
            return _INSTANT.fullmatch(text) is not None and fits(type_, text, context)
        case Edm.GUID:
            return text.count("-") == 4 and fits(type_, text, context)
    return fits(type_, text, context)


def _is_exact(text: str, context: InputContext) -> bool:
    """Return whether a Double represents a number exactly; whole numbers beyond Int64 count as identifiers."""
    if _WHOLE.fullmatch(text) and len(text) > 15:
        return False
    try:
        return not typed_text.stored_text(typed_text.read(Edm.DOUBLE, text, context), text)
    except InvalidText:
        return False
