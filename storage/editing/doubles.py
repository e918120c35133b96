"""Conversion of decimal numbers to Doubles, and its losses."""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Final

# Programs write up to 17 digits so that a Double is read back as it was, though fewer may do
_DIGITS: Final = 17
_SURELY_EXACT: Final = 15  # characters, with at most as many digits
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII).fullmatch
_SMALLEST_NORMAL: Final = 2.2250738585072014e-308


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number of any size."""
    return _NUMBER(text) is not None


def is_exact(text: str, value: float) -> bool:
    """Return whether a Double represents a decimal number exactly."""
    if len(text) <= _SURELY_EXACT and _SMALLEST_NORMAL < abs(value) < math.inf:
        return True
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent beyond the range of decimals
        return False
    if not math.isfinite(value):
        return False
    if number in (Decimal(repr(value)), Decimal(value)):
        return True
    digits = len(number.as_tuple().digits)
    return digits <= _DIGITS and Decimal(f"{value:.{digits - 1}e}") == number
