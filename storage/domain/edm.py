"""The eight EDM types: how a value is read from JSON, written to JSON, and projected into jsonb.

https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, cast

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


class EdmValue(NamedTuple):
    """A value with its type.

    Guid is a lower-case str; DateTime an int, ticks of 100 ns since 1970-01-01 UTC (negative before).
    A String may hold U+0000 and lone surrogates.
    """

    type: Edm
    value: str | bool | int | float | bytes


# text of DateTime, Guid and Double

_EPOCH = date(1970, 1, 1)
_FIRST_TICK: Final = (date(1601, 1, 1) - _EPOCH).days * 86_400 * TICKS_PER_SECOND
_LAST_TICK: Final = ((date(9999, 12, 31) - _EPOCH).days + 1) * 86_400 * TICKS_PER_SECOND - 1
_DATETIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|z|[+-]\d\d:\d\d)?", re.ASCII
)
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
    """Ticks since 1970; no zone means UTC, digits beyond the seventh are cut (nothing can hold them)."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise InvalidInput(UNREADABLE)
    day, hour, minute, second, fraction, zone = match.groups()
    days = _days(day)
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        raise InvalidInput(UNREADABLE)
    seconds = ((days * 24 + h) * 60 + m) * 60 + s - _offset(zone)
    ticks = seconds * TICKS_PER_SECOND + (int(fraction[:7].ljust(7, "0")) if fraction else 0)
    if not _FIRST_TICK <= ticks <= _LAST_TICK:
        raise OutOfRangeInput
    return ticks


@lru_cache(maxsize=4096)
def _days(day: str) -> int:
    """Days from 1970 to a date written YYYY-MM-DD."""
    if day.startswith("0000"):
        raise OutOfRangeInput
    try:
        return (date.fromisoformat(day) - _EPOCH).days
    except ValueError:
        raise InvalidInput(UNREADABLE) from None


def _offset(zone: str | None) -> int:
    """Seconds east of UTC."""
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 14 or minutes > 59:
        raise InvalidInput(UNREADABLE)
    seconds = (hours * 60 + minutes) * 60
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    """A second since 1970 as '2017-08-30T13:20:33'; the rows of a page share few of them."""
    days, rest = divmod(seconds, 86_400)
    day = _EPOCH + timedelta(days=days)
    return f"{day.isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def write_datetime(ticks: int) -> str:
    """'2017-08-30T13:20:33.413914Z': trailing zeros of the fraction trimmed, as the service does."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    if fraction:
        return f"{_second(seconds)}.{fraction:07}".rstrip("0") + "Z"
    return _second(seconds) + "Z"


def _write_double(value: float) -> str:
    """JSON for a Double: never a bare integer, which clients would take for an Int32."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value).replace("e", "E")


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


def _read_int32(json: object) -> int:
    return _read_integer(json, INT32)


def _read_int64(json: object) -> int:
    return _read_integer(json, INT64)


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
    if math.isinf(value):  # a number too large for a double is not stored as something else
        raise InvalidInput(UNREADABLE)
    return value


def _read_datetime(json: object) -> int:
    if not isinstance(json, str):
        raise InvalidInput(UNREADABLE)
    return read_datetime(json)


def _read_guid(json: object) -> str:
    if isinstance(json, str) and _GUID.fullmatch(text := json.lower()):
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
    Edm.INT32: (Edm.INT32, _read_int32),
    Edm.INT64: (Edm.INT64, _read_int64),
    Edm.DOUBLE: (Edm.DOUBLE, _read_double),
    Edm.DATETIME: (Edm.DATETIME, _read_datetime),
    Edm.GUID: (Edm.GUID, _read_guid),
    Edm.BINARY: (Edm.BINARY, _read_binary),
}


def read(json: object, annotation: object) -> EdmValue:
    """A JSON value and its ``odata.type``, None if it has none; null is the caller's business."""
    if annotation is None:
        known = _UNTYPED.get(type(json))
        if type(json) is int and json not in INT32:
            return EdmValue(Edm.DOUBLE, _read_bare_integer(json))
    else:
        known = _READ.get(annotation) if isinstance(annotation, str) else None
    if known is None:
        raise InvalidInput(UNREADABLE)
    type_, read_value = known
    return EdmValue(type_, read_value(json))


def _read_bare_integer(json: object) -> float:
    """An integer beyond Int32 is a Double, as JavaScript means it, if a Double is exactly it [inferred]."""
    value = _read_double(json)
    if value != json:
        raise InvalidInput(UNREADABLE)
    return value


_UNTYPED: Final[Mapping[type, tuple[Edm, Callable[[object], str | bool | int | float | bytes]]]] = {
    str: _READ["Edm.String"],
    bool: _READ["Edm.Boolean"],
    int: _READ["Edm.Int32"],
    float: _READ["Edm.Double"],
}


# value → JSON


def annotated(value: EdmValue) -> bool:
    """Whether the type must be said beside the JSON value: clients cannot tell it otherwise."""
    type_, content = value
    return type_ in ANNOTATED or (type_ is Edm.DOUBLE and not math.isfinite(content))  # type: ignore[arg-type]


ANNOTATED: Final = frozenset({Edm.INT64, Edm.DATETIME, Edm.GUID, Edm.BINARY})


def write(value: EdmValue) -> str:
    """The value as ASCII JSON text, exactly as every answer will carry it."""
    return ENCODE[value.type](value.value)[0]


# value ↔ jsonb projection

# PostgreSQL text holds neither U+0000 nor lone surrogates. The escape is injective and keeps code-point order:
# U+0000 → U+0001 U+0001, U+0001 → U+0001 U+0002, and between U+D7FF and U+E000 → U+E000 and a smaller follower.
_ESCAPES: Final = {
    0x0000: "\x01\x01",
    0x0001: "\x01\x02",
    0xE000: "\ue000\u0802",
    **{code: "\ue000" + chr(code - 0xD800 + 2) for code in range(0xD800, 0xE000)},
}
_UNESCAPES: Final = {text: chr(code) for code, text in _ESCAPES.items()}
_ESCAPED_CHARACTER = re.compile("[\x00\x01\ud800-\udfff\ue000]")
_ESCAPED_PAIR = re.compile("[\x01\ue000].", re.DOTALL)


def escape(text: str) -> str:
    """Text that PostgreSQL can hold, in the order of the original by code point."""
    if _ESCAPED_CHARACTER.search(text) is None:
        return text
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """The inverse of escape."""
    if "\x01" not in text and "\ue000" not in text:
        return text
    return _ESCAPED_PAIR.sub(lambda pair: _UNESCAPES[pair[0]], text)


def _project_double(value: float) -> str:
    if math.isnan(value):
        return '"n"'
    if math.isinf(value):
        return "1e400" if value > 0 else "-1e400"
    if value == 0 and math.copysign(1, value) < 0:
        return "0.000"
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else text + ".0"


def project(value: EdmValue) -> str:
    """JSON text of the value in the jsonb projection: every member tells its own type.

    A letter leads strings (s String, t DateTime, g Guid, b Binary, n NaN); the scale tells numbers apart, which
    compare by value all the same: 5 is an Int32, 5.00 an Int64, 5.0 a Double, 0.000 the Double -0.0.
    """
    return ENCODE[value.type](value.value)[1]


def unproject(text: str) -> EdmValue:
    """The inverse of project, from the member as PostgreSQL's ``->>`` gives it: a string without its quotes."""
    if text in ("true", "false"):
        return EdmValue(Edm.BOOLEAN, text == "true")
    if text[0].isdigit() or text[0] == "-":
        return _unproject_number(text)
    letter, rest = text[0], text[1:]
    match letter:
        case "s":
            return EdmValue(Edm.STRING, unescape(rest))
        case "t":
            return EdmValue(Edm.DATETIME, read_datetime(rest))
        case "g":
            return EdmValue(Edm.GUID, rest)
        case "b":
            return EdmValue(Edm.BINARY, bytes.fromhex(rest))
        case "n":
            return EdmValue(Edm.DOUBLE, math.nan)
    raise ValueError(f"not a projected value: {text!r}")


def _unproject_number(text: str) -> EdmValue:
    if "." not in text:
        if len(text) < 12:
            return EdmValue(Edm.INT32, int(text))
        # PostgreSQL prints 1e400 as a one and four hundred zeros
        return EdmValue(Edm.DOUBLE, -math.inf if text[0] == "-" else math.inf)
    if text == "0.000":
        return EdmValue(Edm.DOUBLE, -0.0)
    if text.endswith(".00"):
        return EdmValue(Edm.INT64, int(text[:-3]))
    return EdmValue(Edm.DOUBLE, float(text))


def _encode_string(value: str) -> tuple[str, str]:
    text = quote(value)
    if "\\u" in text:  # it may hold what the projection escapes in its own way
        return text, quote("s" + escape(value))
    return text, '"s' + text[1:]


def _encode_int32(value: int) -> tuple[str, str]:
    text = str(value)
    return text, text


def _encode_double(value: float) -> tuple[str, str]:
    text = repr(value)
    if value == 0 or "e" in text or "n" in text:
        return _write_double(value), _project_double(value)
    return text, text


def _encode_datetime(value: int) -> tuple[str, str]:
    seconds, fraction = divmod(value, TICKS_PER_SECOND)
    second = _second(seconds)
    if not fraction:
        return f'"{second}Z"', f'"t{second}.0000000"'
    digits = f"{fraction:07}"
    return f'"{second}.{digits.rstrip("0")}Z"', f'"t{second}.{digits}"'


def _encode_boolean(value: bool) -> tuple[str, str]:
    return ("true", "true") if value else ("false", "false")


# both texts of a value at once, as write and project make them: a write spends most of its time here
ENCODE: Final[Mapping[Edm, Callable[..., tuple[str, str]]]] = {
    Edm.STRING: _encode_string,
    Edm.BOOLEAN: _encode_boolean,
    Edm.INT32: _encode_int32,
    Edm.INT64: lambda value: (f'"{value}"', f"{value}.00"),
    Edm.DOUBLE: _encode_double,
    Edm.DATETIME: _encode_datetime,
    Edm.GUID: lambda value: (f'"{value}"', f'"g{value}"'),
    Edm.BINARY: lambda value: (f'"{base64.b64encode(value).decode()}"', f'"b{value.hex()}"'),
}


def write_column(member: bytes, column: list[bytes | None], *, annotations: bool) -> list[bytes]:
    """write_projected for the rows of a page, which mostly have values of one type: strings, or plain numbers."""
    if None not in column:
        values = cast("list[bytes]", column)
        kinds = {value[:1] for value in values}
        everything = b"".join(values)
        if kinds == {b"s"} and len(everything.translate(None, _CAREFUL)) == len(everything):
            return [b',%b:"%b"' % (member, value[1:]) for value in values]
        if kinds <= _NUMBER_STARTS and b".0" not in everything and max(map(len, values), default=0) < 12:
            return [b",%b:%b" % (member, value) for value in values]
    return [write_projected(member, value, annotations=annotations) for value in column]


_NUMBER_STARTS: Final = {b"%d" % digit for digit in range(10)} | {b"-"}
# what JSON escapes, and the first byte of what escape() makes
_CAREFUL: Final = bytes(range(32)) + b'"\\\xee'


def write_projected(member: bytes, projected: bytes | None, *, annotations: bool) -> bytes:
    """A selected property as it goes into an answer, from its projection; null when the entity lacks it.

    ``member`` is the quoted name. The common types are cut out of the text, since a page holds thousands of them.
    """
    if projected is None:
        return b",%b:null" % member
    first = projected[0]
    if first == 115:  # s
        if len(projected.translate(None, _CAREFUL)) == len(projected):
            return b',%b:"%b"' % (member, projected[1:])
    elif first < 58:  # a digit or a minus
        if projected[-3:] != b".00" and len(projected) < 20:
            return b",%b:%b" % (member, projected if projected != b"0.000" else b"-0.0")
    elif projected == b"true" or projected == b"false":
        return b",%b:%b" % (member, projected)
    return _write_unprojected(member, unproject(projected.decode()), annotations=annotations)


def _write_unprojected(member: bytes, value: EdmValue, *, annotations: bool) -> bytes:
    written = write(value).encode()
    if annotations and annotated(value):
        return b',%b@odata.type":"%b",%b:%b' % (member[:-1], value.type.encode(), member, written)
    return b",%b:%b" % (member, written)
