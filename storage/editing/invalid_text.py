"""Forms in which a text can represent a value, and reasons for invalid texts."""

from dataclasses import dataclass
from enum import StrEnum

from storage.domain.values.edm import Edm


class TextForm(StrEnum):
    """The form of a text, for types that have several."""

    PLAIN = "plain"
    ESCAPED = "escaped"  # a String as JSON, with quotes: for characters that a form field cannot carry
    HEX = "hex"
    BASE64 = "base64"
    TEXT = "text"  # a Binary as UTF-8


class TextFault(StrEnum):
    """Reason why a text is not a value of a type."""

    NOT_WHOLE = "not a whole number"
    NOT_NUMBER = "not a number"
    TOO_LARGE = "beyond the range of the type"
    NOT_BOOLEAN = "neither true nor false"
    NOT_DATETIME = "not a time"
    OTHER_PATTERN = "not written like the pattern"
    NO_SUCH_TIME = "not on any calendar or clock"
    OUT_OF_RANGE = "before 1601 or after 9999"
    TOO_PRECISE = "more than seven digits of a second"
    DIGITS_LOST = "more digits than a Double holds"
    NOT_GUID = "not a GUID"
    NOT_HEX = "not a hexadecimal digit"
    HALF_BYTE = "an odd number of hexadecimal digits"
    NOT_BASE64 = "not a character of base64"
    BASE64_LENGTH = "base64 that ends too early"
    NOT_UTF8 = "bytes that are not UTF-8"
    NOT_ESCAPED = "not a JSON string"
    SURROGATE = "a lone surrogate"
    TOO_LONG = "longer than a property may be"
    NO_MEANING = "no corresponding value of this type"


@dataclass(frozen=True, slots=True)
class InvalidText(Exception):
    """Invalid typed text: ``position`` counts characters from 1, ``size`` bytes.

    ``suggestion`` is a matching type, ``first_year`` that of the times which the account can have.
    """

    fault: TextFault
    suggestion: Edm | None = None
    position: int = 0
    size: int = 0
    first_year: int = 1601
