"""The literals of ``$filter``, one per EDM type: text to value and back."""

import math
import re
from datetime import datetime
from typing import Final

from storage.domain.errors import InvalidInput
from storage.domain.filters.lexer import Kind, Token
from storage.domain.filters.times import RelativeTime, read_relative
from storage.domain.values.edm import INT64, Edm, EdmValue, read_datetime, write_datetime

LITERALS: Final = frozenset({Kind.STRING, Kind.NUMBER, Kind.DATETIME, Kind.GUID, Kind.BINARY})

TRUE: Final = EdmValue(Edm.BOOLEAN, True)
FALSE: Final = EdmValue(Edm.BOOLEAN, False)

# names that are literals wherever an operand may stand
WORDS: Final = {
    "true": TRUE,
    "false": FALSE,
    "NaN": EdmValue(Edm.DOUBLE, math.nan),
    "INF": EdmValue(Edm.DOUBLE, math.inf),
    "Infinity": EdmValue(Edm.DOUBLE, math.inf),
}

_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_INT64_DIGITS: Final = 19


def read_literal(token: Token, text: str, now: datetime | None = None) -> EdmValue:
    """The value of a literal token; ``text`` is the whole filter, for the sentence of an error.

    Where ``now`` is given, a DateTime may be said relative to it.
    """
    match token.kind:
        case Kind.STRING:
            return EdmValue(Edm.STRING, _unquoted(token.text))
        case Kind.NUMBER:
            return _read_number(token, text)
        case Kind.DATETIME:
            quoted = _quoted_part(token)
            relative = read_relative(quoted, now) if now is not None else None
            return EdmValue(Edm.DATETIME, read_datetime(quoted) if relative is None else relative)
        case Kind.GUID:
            guid = _quoted_part(token).lower()
            if _GUID.fullmatch(guid):
                return EdmValue(Edm.GUID, guid)
            raise _unrecognized(Edm.GUID, token, text)
        case Kind.BINARY:
            digits = _quoted_part(token)
            if _HEX.fullmatch(digits):
                return EdmValue(Edm.BINARY, bytes.fromhex(digits))
            raise _unrecognized(Edm.BINARY, token, text)
        case Kind.NAME:
            return WORDS[token.text]
    raise AssertionError(f"{token.kind} is no literal")


def is_literal(token: Token) -> bool:
    """Whether an operand of this text is a value, whatever stands around it."""
    return token.kind in LITERALS or (token.kind is Kind.NAME and token.text in WORDS)


def _quoted_part(token: Token) -> str:
    return _unquoted(token.text[token.text.index("'") :])


def _unquoted(quoted: str) -> str:
    return quoted[1:-1].replace("''", "'")


def _read_number(token: Token, text: str) -> EdmValue:
    digits = token.text.rstrip("dDlL")
    suffix = token.text[len(digits) :].upper()
    if digits.startswith("-INF") or digits == "-Infinity":
        return EdmValue(Edm.DOUBLE, -math.inf)
    if suffix == "D" or (not suffix and not _is_integer(digits)):
        return EdmValue(Edm.DOUBLE, _read_double(digits, token, text))
    # the service refuses plain digits beyond Int32; 64 bits break no client and spare it the L
    type_ = Edm.INT64 if suffix else Edm.INT32
    return EdmValue(type_, _read_integer(digits, type_, token, text))


def _is_integer(digits: str) -> bool:
    return digits.removeprefix("-").isdigit()


def _read_double(digits: str, token: Token, text: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _unrecognized(Edm.DOUBLE, token, text)
    return value


def _read_integer(digits: str, type_: Edm, token: Token, text: str) -> int:
    # counted first: Python refuses to convert thousands of digits
    if _is_integer(digits) and len(digits.lstrip("-0")) <= _INT64_DIGITS and (value := int(digits)) in INT64:
        return value
    raise _unrecognized(type_, token, text)


def _unrecognized(type_: Edm, token: Token, text: str) -> InvalidInput:
    return InvalidInput(
        f"Unrecognized '{type_}' literal '{token.text}' at position {token.start} in '{text}'."
    )


def write_literal(value: EdmValue) -> str:
    """The inverse of read_literal."""
    match value:
        case EdmValue(Edm.STRING, str(text)):
            return "'" + text.replace("'", "''") + "'"
        case EdmValue(Edm.BOOLEAN, bool(truth)):
            return "true" if truth else "false"
        case EdmValue(Edm.INT64, int(number)):
            return f"{number}L"
        case EdmValue(Edm.DOUBLE, float(number)):
            return _write_double(number)
        case EdmValue(Edm.DATETIME, RelativeTime() as moment):
            return f"datetime'{moment.text}'"
        case EdmValue(Edm.DATETIME, int(ticks)):
            return f"datetime'{write_datetime(ticks)}'"
        case EdmValue(Edm.GUID, str(guid)):
            return f"guid'{guid}'"
        case EdmValue(Edm.BINARY, bytes(octets)):
            return f"X'{octets.hex()}'"
        case _:
            return str(value.value)


def _write_double(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return repr(number)
