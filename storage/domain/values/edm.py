"""The eight EDM types, and parsing their values from JSON; encoding.py serializes them."""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from typing import Final, NamedTuple

from storage.domain.errors import (
    EntityTooLarge,
    InvalidInput,
    OutOfRangeInput,
    PropertyValueTooLarge,
    StorageError,
)
from storage.domain.values.kinds import AccountKind

INT32: Final = range(-(2**31), 2**31)
INT64: Final = range(-(2**63), 2**63)
STRING_LIMIT: Final = 32 * 1024  # UTF-16 code units
BINARY_LIMIT: Final = 64 * 1024  # bytes

TICKS_PER_SECOND: Final = 10_000_000
UNREADABLE: Final = "An error occurred while processing this request."

quote = json.encoder.encode_basestring_ascii  # a str as an ASCII JSON string; lone surrogates survive


class Edm(StrEnum):
    # Enum's own hash is Python code, and every property of every entity is looked up by its type
    __hash__ = str.__hash__

    STRING = "Edm.String"
    BOOLEAN = "Edm.Boolean"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    DOUBLE = "Edm.Double"
    DATETIME = "Edm.DateTime"
    GUID = "Edm.Guid"
    BINARY = "Edm.Binary"

    @property
    def short_name(self) -> str:
        """Return the name without its namespace, such as Int64."""
        return self.value.removeprefix("Edm.")


class EdmValue(NamedTuple):
    """EDM value with its type."""

    type: Edm
    value: str | bool | int | float | bytes


# types as text

_EPOCH = date(1970, 1, 1)
FIRST_TICK: Final = (date(1601, 1, 1) - _EPOCH).days * 86_400 * TICKS_PER_SECOND
FIRST_COSMOS_TICK: Final = (date.min - _EPOCH).days * 86_400 * TICKS_PER_SECOND
FIRST_TICKS: Final = {AccountKind.STORAGE: FIRST_TICK, AccountKind.COSMOS: FIRST_COSMOS_TICK}
LAST_TICK: Final = ((date(9999, 12, 31) - _EPOCH).days + 1) * 86_400 * TICKS_PER_SECOND - 1
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|z|[+-]\d\d:\d\d)?", re.ASCII
)
GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_DOUBLES: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "INF": math.inf,
    "-INF": -math.inf,
}


def read_datetime(text: str, first: int = FIRST_TICK) -> int:
    """Parse a time to ticks since 1970; UTC is the default zone, digits after the seventh are dropped.

    Raises InvalidInput for malformed text and OutOfRangeInput for a time before ``first``.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise InvalidInput(UNREADABLE)
    day, hour, minute, second, fraction, zone = match.groups()
    days = read_days(day)
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        raise InvalidInput(UNREADABLE)
    seconds = ((days * 24 + h) * 60 + m) * 60 + s - zone_offset(zone)
    ticks = seconds * TICKS_PER_SECOND + (int(fraction[:7].ljust(7, "0")) if fraction else 0)
    if not first <= ticks <= LAST_TICK:
        raise OutOfRangeInput
    return ticks


def first_year(first: int) -> int:
    """Return the year of the first time that an account can have."""
    return int(write_datetime(first)[:4])


@lru_cache(maxsize=4096)
def read_days(day: str) -> int:
    """Return the days from 1970 to a date YYYY-MM-DD; raises OutOfRangeInput or InvalidInput."""
    if day.startswith("0000"):
        raise OutOfRangeInput
    try:
        return (date.fromisoformat(day) - _EPOCH).days
    except ValueError:
        raise InvalidInput(UNREADABLE) from None


def zone_offset(zone: str | None) -> int:
    """Return the offset in seconds of a zone such as Z, +02, +0200 or +02:00; None is UTC.

    Raises InvalidInput if it is out of range.
    """
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 14 or minutes > 59:
        raise InvalidInput(UNREADABLE)
    seconds = (hours * 60 + minutes) * 60
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=4096)
def second_text(seconds: int) -> str:
    """Format seconds since 1970 as '2017-08-30T13:20:33'; cached, as rows of a page share most of them."""
    days, rest = divmod(seconds, 86_400)
    day = _EPOCH + timedelta(days=days)
    return f"{day.isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def write_datetime(ticks: int, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Format ticks as '2017-08-30T13:20:33.413914Z', with trailing zeros of the fraction for Cosmos only."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    if kind is AccountKind.COSMOS:
        return f"{second_text(seconds)}.{fraction:07}Z"
    if fraction:
        return f"{second_text(seconds)}.{fraction:07}".rstrip("0") + "Z"
    return second_text(seconds) + "Z"


# JSON → value


def _read_string(json: object, limit: int) -> str:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    # an astral character is two UTF-16 units; only long strings need the exact count
    if len(json) > limit // 2 and (length := utf16_length(json)) > limit:
        raise _too_large(2 * length)
    return json


def _too_large(size: int) -> StorageError:
    """Return the error for an oversized value: EntityTooLarge if it exceeds even the entity limit."""
    return EntityTooLarge() if size >= AccountKind.STORAGE.entity_size_limit else PropertyValueTooLarge()


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units, in which the service measures texts."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _read_boolean(json: object) -> bool:
    if isinstance(json, bool):
        return json
    if isinstance(json, str) and json.lower() in ("true", "false"):
        return json.lower() == "true"
    raise InvalidInput(UNREADABLE)


def _read_integer(json: object, limits: range) -> int:
    if type(json) is int:
        value = json
    elif isinstance(json, str) and _INTEGER.fullmatch(json):
        value = int(json)
    else:
        raise InvalidInput(UNREADABLE)
    if value not in limits:
        raise InvalidInput(UNREADABLE)
    return value


def _read_double(json: object) -> float:
    if isinstance(json, str):
        if json in _SPECIAL_DOUBLES:
            return _SPECIAL_DOUBLES[json]
        if not _DOUBLE.fullmatch(json):
            raise InvalidInput(UNREADABLE)
        value = float(json)
    elif type(json) is float:
        value = json
    elif type(json) is int:
        try:
            value = float(json)
        except OverflowError:
            raise InvalidInput(UNREADABLE) from None
    else:
        raise InvalidInput(UNREADABLE)
    if math.isinf(value):  # too large for a Double
        raise InvalidInput(UNREADABLE)
    return value


def _read_datetime(json: object, first: int) -> int:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    return read_datetime(json, first)


def _read_guid(json: object) -> str:
    if isinstance(json, str) and GUID.fullmatch(text := json.lower()):
        return text
    raise InvalidInput(UNREADABLE)


_WITHOUT_BLANKS: Final = dict.fromkeys(map(ord, " \t\r\n"))  # some clients break lines of base64


def _read_binary(json: object, limit: int) -> bytes:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    try:
        value = base64.b64decode(json.translate(_WITHOUT_BLANKS), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(UNREADABLE) from None
    if len(value) > limit:
        raise _too_large(len(value))
    return value


_Read = Callable[[object], str | bool | int | float | bytes]


def _readers(strings: int, binaries: int, first: int) -> dict[str, tuple[Edm, _Read]]:
    """Return parsers by type, with the limits of strings and binaries and the first tick."""
    readers: dict[Edm, _Read] = {
        Edm.STRING: partial(_read_string, limit=strings),
        Edm.BOOLEAN: _read_boolean,
        Edm.INT32: partial(_read_integer, limits=INT32),
        Edm.INT64: partial(_read_integer, limits=INT64),
        Edm.DOUBLE: _read_double,
        Edm.DATETIME: partial(_read_datetime, first=first),
        Edm.GUID: _read_guid,
        Edm.BINARY: partial(_read_binary, limit=binaries),
    }
    return {type_: (type_, reader) for type_, reader in readers.items()}


# in Cosmos accounts only the entity limits its values [inferred]
_READ: Final[Mapping[AccountKind, Mapping[str, tuple[Edm, _Read]]]] = {
    AccountKind.STORAGE: _readers(STRING_LIMIT, BINARY_LIMIT, FIRST_TICK),
    AccountKind.COSMOS: _readers(
        AccountKind.COSMOS.entity_size_limit, AccountKind.COSMOS.entity_size_limit, FIRST_COSMOS_TICK
    ),
}


def read(json: object, annotation: object, kind: AccountKind = AccountKind.STORAGE) -> EdmValue:
    """Parse a non-null JSON value with its ``odata.type`` annotation, None if there is none."""
    if annotation is None:
        known = _UNTYPED[kind].get(type(json))
        if type(json) is int and json not in INT32:
            # an integer beyond Int32 is a Double, as in JavaScript, if a Double holds it exactly [inferred]
            if (double := _read_double(json)) != json:
                raise InvalidInput(UNREADABLE)
            return EdmValue(Edm.DOUBLE, double)
    else:
        known = _READ[kind].get(annotation) if isinstance(annotation, str) else None
    if known is None:
        raise InvalidInput(UNREADABLE)
    type_, read_value = known
    return EdmValue(type_, read_value(json))


_UNTYPED: Final[Mapping[AccountKind, Mapping[type, tuple[Edm, _Read]]]] = {
    kind: {str: known[Edm.STRING], bool: known[Edm.BOOLEAN], int: known[Edm.INT32], float: known[Edm.DOUBLE]}
    for kind, known in _READ.items()
}
