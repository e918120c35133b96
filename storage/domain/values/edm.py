"""The eight EDM types, and reading their values from JSON; encoding.py writes them.

https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
"""

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

from storage.domain.errors import InvalidInput, OutOfRangeInput, PropertyValueTooLarge

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
        """The name without its namespace, as in Int64."""
        return self.value.removeprefix("Edm.")


class EdmValue(NamedTuple):
    """A value with its type.

    Guid is a lower-case str; DateTime an int, ticks of 100 ns since 1970-01-01 UTC (negative before).
    A String may hold U+0000 and lone surrogates.
    """

    type: Edm
    value: str | bool | int | float | bytes


# types as text

_EPOCH = date(1970, 1, 1)
_FIRST_TICK: Final = (date(1601, 1, 1) - _EPOCH).days * 86_400 * TICKS_PER_SECOND
_LAST_TICK: Final = ((date(9999, 12, 31) - _EPOCH).days + 1) * 86_400 * TICKS_PER_SECOND - 1
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


def read_datetime(text: str) -> int:
    """Return ticks since 1970. Without a zone it is UTC; digits after the seventh are dropped."""
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
    if not _FIRST_TICK <= ticks <= _LAST_TICK:
        raise OutOfRangeInput
    return ticks


@lru_cache(maxsize=4096)
def read_days(day: str) -> int:
    """Days from 1970 to a date written YYYY-MM-DD; raises OutOfRangeInput, InvalidInput."""
    if day.startswith("0000"):
        raise OutOfRangeInput
    try:
        return (date.fromisoformat(day) - _EPOCH).days
    except ValueError:
        raise InvalidInput(UNREADABLE) from None


def zone_offset(zone: str | None) -> int:
    """Return the seconds east of UTC of a zone written as Z, +02, +0200 or +02:00; None is UTC."""
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 14 or minutes > 59:
        raise InvalidInput(UNREADABLE)
    seconds = (hours * 60 + minutes) * 60
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=4096)
def second_text(seconds: int) -> str:
    """Format a second since 1970 as '2017-08-30T13:20:33'; cached because the rows of a page share few of them."""
    days, rest = divmod(seconds, 86_400)
    day = _EPOCH + timedelta(days=days)
    return f"{day.isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def write_datetime(ticks: int) -> str:
    """Format as '2017-08-30T13:20:33.413914Z', without trailing zeros in the fraction, as Azure does."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    if fraction:
        return f"{second_text(seconds)}.{fraction:07}".rstrip("0") + "Z"
    return second_text(seconds) + "Z"


# JSON → value


def _read_string(json: object) -> str:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    # an astral character is two UTF-16 units; only long strings need the exact count
    if len(json) > STRING_LIMIT // 2 and utf16_length(json) > STRING_LIMIT:
        raise PropertyValueTooLarge
    return json


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, the service's measure of every text."""
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


def _read_datetime(json: object) -> int:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    return read_datetime(json)


def _read_guid(json: object) -> str:
    if isinstance(json, str) and GUID.fullmatch(text := json.lower()):
        return text
    raise InvalidInput(UNREADABLE)


def _read_binary(json: object) -> bytes:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    try:
        value = base64.b64decode(json, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(UNREADABLE) from None
    if len(value) > BINARY_LIMIT:
        raise PropertyValueTooLarge
    return value


_READ: Final[Mapping[str, tuple[Edm, Callable[[object], str | bool | int | float | bytes]]]] = {
    Edm.STRING: (Edm.STRING, _read_string),
    Edm.BOOLEAN: (Edm.BOOLEAN, _read_boolean),
    Edm.INT32: (Edm.INT32, partial(_read_integer, limits=INT32)),
    Edm.INT64: (Edm.INT64, partial(_read_integer, limits=INT64)),
    Edm.DOUBLE: (Edm.DOUBLE, _read_double),
    Edm.DATETIME: (Edm.DATETIME, _read_datetime),
    Edm.GUID: (Edm.GUID, _read_guid),
    Edm.BINARY: (Edm.BINARY, _read_binary),
}


def read(json: object, annotation: object) -> EdmValue:
    """Read a JSON value with its ``odata.type`` (None: not annotated); the caller handles null."""
    if annotation is None:
        known = _UNTYPED.get(type(json))
        if type(json) is int and json not in INT32:
            # an integer beyond Int32 is a Double, as in JavaScript, if a Double holds it exactly [inferred]
            if (double := _read_double(json)) != json:
                raise InvalidInput(UNREADABLE)
            return EdmValue(Edm.DOUBLE, double)
    else:
        known = _READ.get(annotation) if isinstance(annotation, str) else None
    if known is None:
        raise InvalidInput(UNREADABLE)
    type_, read_value = known
    return EdmValue(type_, read_value(json))


_UNTYPED: Final[Mapping[type, tuple[Edm, Callable[[object], str | bool | int | float | bytes]]]] = {
    str: _READ["Edm.String"],
    bool: _READ["Edm.Boolean"],
    int: _READ["Edm.Int32"],
    float: _READ["Edm.Double"],
}
