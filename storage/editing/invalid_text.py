"""In what ways a text may stand for a value, and why it may not."""

from dataclasses import dataclass
from enum import StrEnum

from storage.domain.values.edm import Edm


class TextForm(StrEnum):
    """In what way a text stands for a value, where there are several."""

    PLAIN = "plain"
    ESCAPED = "escaped"  # a String as JSON writes it, with its quotes: for what no field of a page can carry
    HEX = "hex"
    BASE64 = "base64"
    TEXT = "text"  # a Binary as UTF-8


class TextFault(StrEnum):
    """Why a text is not a value of a type."""

    NOT_WHOLE = "not a whole number"
    NOT_NUMBER = "not a number"
    TOO_LARGE = "beyond the range of the type"
    NOT_BOOLEAN = "neither true nor false"
    NOT_DATETIME = "not a time"
    NO_SUCH_TIME = "not on any calendar or clock"
    OUT_OF_RANGE = "before 1601 or after 9999"
    TOO_PRECISE = "more than seven digits of a second"
    NOT_GUID = "not a GUID"
    NOT_HEX = "not a hexadecimal digit"
    HALF_BYTE = "an odd number of hexadecimal digits"
    NOT_BASE64 = "not a character of base64"
    BASE64_LENGTH = "base64 that ends too early"
    NOT_UTF8 = "bytes that are not UTF-8"
    NOT_ESCAPED = "not a JSON string"
    SURROGATE = "half of a character"
    TOO_LONG = "longer than a property may be"
    NO_MEANING = "no value of this type means the same"


@dataclass(frozen=True, slots=True)
class InvalidText(Exception):
    """``position`` counts characters from one; ``size`` is in bytes; ``suggestion`` is a type that would take it."""

    fault: TextFault
    suggestion: Edm | None = None
    position: int = 0
    size: int = 0
