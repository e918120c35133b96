"""Lossless parsing of JSON values from users, where the service would round or truncate."""

import math
import re
from decimal import Decimal
from typing import Final, cast

from storage.domain.errors import StorageError
from storage.domain.values import edm
from storage.domain.values.edm import INT32, INT64, Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.editing import doubles
from storage.editing.exact_json import InexactNumber, SpelledNumber, write
from storage.editing.invalid_text import InvalidText, TextFault

_RANGES: Final = {Edm.INT32: INT32, Edm.INT64: INT64}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_LONGEST_WHOLE: Final = 100  # digits; Python's conversions are slow far beyond
# digits of a second beyond the precision of DateTime
_FRACTION: Final = re.compile(r"([.,][0-9]{7})([0-9]+)", re.ASCII)


def read(value: object, type_: Edm | None, kind: AccountKind = AccountKind.STORAGE) -> EdmValue:
    """Convert a decoded JSON scalar to an EDM value; without ``type_``, its JSON type decides.

    A whole number beyond Int32 becomes an Int64, though the service makes it a Double: identifiers must keep
    every digit. Raises InvalidText or StorageError.
    """
    if type_ is None and not isinstance(value, str | bool):
        return _read_number(value)
    known = type_ or type_without_annotation(value)
    if known is Edm.DOUBLE:
        return _read_double(value)
    if known is Edm.DATETIME and isinstance(value, str):
        check_fraction(value)
    if known in _RANGES:
        _check_range(_RANGES[known], value)
    return edm.read(float(value) if type(value) is SpelledNumber else value, known, kind)


def type_without_annotation(value: object) -> Edm:
    """Return the type of an unannotated JSON value; Double for any number."""
    if isinstance(value, bool):
        return Edm.BOOLEAN
    return Edm.STRING if isinstance(value, str) else Edm.DOUBLE


def check_fraction(text: str) -> None:
    """Raise InvalidText if a time has more fraction digits than a DateTime."""
    found = _FRACTION.search(text)
    if found is not None and found[2].strip("0"):
        raise InvalidText(TextFault.TOO_PRECISE)


def cut_fraction(text: str) -> str:
    """Truncate the fraction of a time to the digits of a DateTime, as the service does."""
    return _FRACTION.sub(r"\1", text)


def _read_number(value: object) -> EdmValue:
    if isinstance(value, int) and value in INT64:
        return EdmValue(Edm.INT32 if value in INT32 else Edm.INT64, value)
    number = _read_double(value)
    # a whole number of many digits is an identifier, even if it happens to be the value of a Double
    if isinstance(value, int) and Decimal(repr(number.value)) != value:
        raise InvalidText(TextFault.DIGITS_LOST)
    return number


def _read_double(value: object) -> EdmValue:
    match value:
        case float():
            return EdmValue(Edm.DOUBLE, float(value))
        case int() if not isinstance(value, bool):
            try:
                number, is_same = float(value), float(value) == value
            except OverflowError:
                raise InvalidText(TextFault.TOO_LARGE) from None
        case str():
            number, is_same = _read_double_text(value)
        case InexactNumber():
            number, is_same = value.nearest, False
            if math.isinf(number):
                raise InvalidText(TextFault.TOO_LARGE)
        case _:
            raise InvalidText(TextFault.NOT_NUMBER)
    if not is_same:
        raise InvalidText(TextFault.DIGITS_LOST)
    return EdmValue(Edm.DOUBLE, number)


def _read_double_text(text: str) -> tuple[float, bool]:
    """Return the nearest Double of a text, and whether it is exact."""
    try:
        number = cast("float", edm.read(text, Edm.DOUBLE).value)
    except StorageError:
        if doubles.is_number(text):
            raise InvalidText(TextFault.TOO_LARGE) from None
        raise
    return number, not math.isfinite(number) or doubles.is_exact(text, number)


def _check_range(limits: range, value: object) -> None:
    """Raise InvalidText if a whole number, or its text, exceeds the range of a type."""
    text = value if isinstance(value, str) else write(value)
    if _WHOLE(text) and (len(text) > _LONGEST_WHOLE or int(text) not in limits):
        raise InvalidText(TextFault.TOO_LARGE)
