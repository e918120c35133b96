"""Literals of ``$filter`` per EDM type, and relative times: parsing and serialization."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Self

from storage.domain.errors import InvalidInput
from storage.domain.filters.lexer import Token, TokenKind
from storage.domain.values.edm import (
    FIRST_COSMOS_TICK,
    GUID,
    INT64,
    TICKS_PER_SECOND,
    Edm,
    EdmValue,
    read_datetime,
    write_datetime,
)
from storage.domain.values.ticks import to_ticks

RELATIVE_UNITS: Final[Mapping[str, int]] = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
_RELATIVE = re.compile(r"\{\{\s*now\s*(?:([+-])\s*([0-9]{1,4})\s*([mhdw])\s*)?\}\}", re.ASCII)


class RelativeTime(int):
    """DateTime in ticks that was written relative to now, with the amount and unit of the offset."""

    amount: int
    unit: str

    @classmethod
    def at(cls, now: datetime, amount: int, unit: str) -> Self:
        found = cls(to_ticks(now) + amount * RELATIVE_UNITS[unit] * TICKS_PER_SECOND)
        found.amount, found.unit = amount, unit
        return found

    @property
    def text(self) -> str:
        return f"{{{{now{self.amount:+}{self.unit}}}}}" if self.amount else "{{now}}"


def read_relative(text: str, now: datetime) -> RelativeTime | None:
    """Parse a relative time such as ``{{now-24h}}``; None for any other text."""
    match = _RELATIVE.fullmatch(text)
    if match is None:
        return None
    sign, amount, unit = match.groups()
    return RelativeTime.at(now, int(f"{sign or ''}{amount or 0}"), unit or "m")


LITERALS: Final = frozenset(
    {TokenKind.STRING, TokenKind.NUMBER, TokenKind.DATETIME, TokenKind.GUID, TokenKind.BINARY}
)

TRUE: Final = EdmValue(Edm.BOOLEAN, True)
FALSE: Final = EdmValue(Edm.BOOLEAN, False)

# Names that are literals in the position of an operand. ``True`` is none, but the name of a property: Azure refuses
# what compares two of them, and a client that got an answer here would find out there only.
WORDS: Final = {
    "true": TRUE,
    "false": FALSE,
    "NaN": EdmValue(Edm.DOUBLE, math.nan),
    "INF": EdmValue(Edm.DOUBLE, math.inf),
    "Infinity": EdmValue(Edm.DOUBLE, math.inf),
}

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_INT64_DIGITS: Final = 19


def read_literal(
    token: Token, text: str, now: datetime | None = None, first: int = FIRST_COSMOS_TICK
) -> EdmValue:
    """Parse a literal token; ``text`` is the whole filter, for error messages."""
    match token.kind:
        case TokenKind.STRING:
            return EdmValue(Edm.STRING, _unquoted(token.text))
        case TokenKind.NUMBER:
            return _read_number(token, text)
        case TokenKind.DATETIME:
            quoted = _quoted_part(token)
            relative = read_relative(quoted, now) if now is not None else None
            return EdmValue(Edm.DATETIME, read_datetime(quoted, first) if relative is None else relative)
        case TokenKind.GUID:
            guid = _quoted_part(token).lower()
            if GUID.fullmatch(guid):
                return EdmValue(Edm.GUID, guid)
            raise _unrecognized(Edm.GUID, token, text)
        case TokenKind.BINARY:
            digits = _quoted_part(token)
            if _HEX.fullmatch(digits):
                return EdmValue(Edm.BINARY, bytes.fromhex(digits))
            raise _unrecognized(Edm.BINARY, token, text)
        case TokenKind.NAME:
            return WORDS[token.text]
    raise AssertionError(f"{token.kind} is not a literal")


def is_literal(token: Token) -> bool:
    """Return whether the token is always a literal."""
    return token.kind in LITERALS or (token.kind is TokenKind.NAME and token.text in WORDS)


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
        if math.isinf(double := float(digits)):
            raise _unrecognized(Edm.DOUBLE, token, text)
        return EdmValue(Edm.DOUBLE, double)
    # Azure refuses plain digits beyond Int32: StrictRule.INT32_LITERAL, on which a friendly account does not insist
    type_ = Edm.INT64 if suffix else Edm.INT32
    value = read_int64(digits)
    if value is None:
        raise _unrecognized(type_, token, text)
    return EdmValue(type_, value)


def read_int64(digits: str) -> int | None:
    """Parse an integer of any length, beyond the digits limit of ``int``; None if it does not fit into 64 bits."""
    significant = digits.removeprefix("-").lstrip("0") or "0"
    if not _is_integer(digits) or len(significant) > _INT64_DIGITS:
        return None
    value = int(f"-{significant}" if digits.startswith("-") else significant)
    return value if value in INT64 else None


def _is_integer(digits: str) -> bool:
    return digits.removeprefix("-").isdecimal()


def _unrecognized(type_: Edm, token: Token, text: str) -> InvalidInput:
    # the text of the OData library that the service uses
    return InvalidInput(f"Unrecognized '{type_}' literal '{token.text}' at '{token.start}' in '{text}'.")


def write_literal(value: EdmValue) -> str:
    """Serialize a value as a literal that read_literal accepts."""
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
