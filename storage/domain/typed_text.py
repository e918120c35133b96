"""The text of a value as people type and read it; ``read`` of what ``write`` gives is the value again, to the bit."""

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, assert_never, cast

from storage.domain import edm, encoding
from storage.domain.edm import BINARY_LIMIT, INT32, INT64, STRING_LIMIT, Edm, EdmValue, utf16_length
from storage.domain.errors import OutOfRangeInput, StorageError


class Form(StrEnum):
    """In what way a text stands for a value, where there are several."""

    PLAIN = "plain"
    ESCAPED = "escaped"  # a String as JSON writes it, with its quotes: for what no field of a page can carry
    HEX = "hex"
    BASE64 = "base64"
    TEXT = "text"  # a Binary as UTF-8


class Fault(StrEnum):
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

    fault: Fault
    suggestion: Edm | None = None
    position: int = 0
    size: int = 0


FORMS: Final[Mapping[Edm, tuple[Form, ...]]] = {
    Edm.STRING: (Form.PLAIN, Form.ESCAPED),
    Edm.BINARY: (Form.HEX, Form.BASE64, Form.TEXT),
}


def read(type_: Edm, text: str, now: datetime, form: Form | None = None) -> EdmValue:
    """``now`` knows its zone, which is that of times without one; no form means the first of the type."""
    match type_:
        case Edm.STRING:
            return EdmValue(type_, _read_string(text, form or Form.PLAIN))
        case Edm.BINARY:
            return EdmValue(type_, _read_binary(text, form or Form.HEX))
        case Edm.INT32 | Edm.INT64:
            return EdmValue(type_, _read_integer(type_, text))
        case Edm.DOUBLE:
            return EdmValue(type_, _read_double(text))
        case Edm.BOOLEAN:
            return EdmValue(type_, _read_boolean(text))
        case Edm.DATETIME:
            return EdmValue(type_, _read_datetime(text, now))
        case Edm.GUID:
            return EdmValue(type_, _read_guid(text))
        case _:
            assert_never(type_)


def write(value: EdmValue, form: Form | None = None) -> str:
    """Raises InvalidText only where the form cannot hold the value: bytes that are not UTF-8 as text."""
    match value:
        case (Edm.STRING, str(text)):
            return edm.quote(text) if form is Form.ESCAPED else text
        case (Edm.BINARY, bytes(data)):
            return _write_binary(data, form or Form.HEX)
    return encoding.write(value).strip('"')


def form_of(value: EdmValue) -> Form | None:
    """The form in which a field of a page shows a value and gives it back unchanged; None if there is only one."""
    match value:
        case (Edm.STRING, str(text)):
            return Form.ESCAPED if _LOST_IN_FIELDS.search(text) else Form.PLAIN
        case (Edm.BINARY, _):
            return Form.HEX
    return None


def stored_as(value: EdmValue, text: str) -> str:
    """What will be read later, if a number or time differs from what was typed; else nothing."""
    written = write(value)
    match value.type:
        case Edm.DOUBLE if math.isfinite(cast("float", value.value)):
            return "" if Decimal(_without_spaces(text)) == Decimal(written) else written
        case Edm.DATETIME:
            return "" if text.strip().upper().replace(" ", "T") == written else written
    return ""


# a browser turns every kind of line end into its own and U+0000 into U+FFFD, and has no halves of characters
_LOST_IN_FIELDS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_string(text: str, form: Form) -> str:
    if form is Form.ESCAPED:
        text = _read_escaped(text)
    elif half := _SURROGATE.search(text):
        raise InvalidText(Fault.SURROGATE, position=half.start() + 1)
    if (length := utf16_length(text)) > STRING_LIMIT:
        raise InvalidText(Fault.TOO_LONG, size=2 * length)
    return text


def _read_escaped(text: str) -> str:
    try:
        value = json.loads(text.strip())
    except json.JSONDecodeError as error:
        raise InvalidText(Fault.NOT_ESCAPED, position=error.pos + 1) from None
    except RecursionError:
        raise InvalidText(Fault.NOT_ESCAPED, position=1) from None
    if not isinstance(value, str):
        raise InvalidText(Fault.NOT_ESCAPED, position=1)
    return value


# numbers

_SPACES = re.compile(r"[\s_\u2009\u200a\u202f\u2060]+")
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST_NUMBER: Final = 400  # of digits; Python's own conversions are slow far beyond
_SPECIAL: Final = {
    "nan": math.nan,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
}


def _without_spaces(text: str) -> str:
    return _SPACES.sub("", text)


def _read_integer(type_: Edm, text: str) -> int:
    digits = _without_spaces(text)
    if not _WHOLE.fullmatch(digits):
        is_number = _DECIMAL.fullmatch(digits) or digits.lower() in _SPECIAL
        raise InvalidText(Fault.NOT_WHOLE, Edm.DOUBLE if is_number else Edm.STRING)
    if len(digits) > _LONGEST_NUMBER:
        raise InvalidText(Fault.TOO_LARGE, Edm.STRING)
    value = int(digits)
    if value not in (INT32 if type_ is Edm.INT32 else INT64):
        raise InvalidText(Fault.TOO_LARGE, _type_for(value))
    return value


def _type_for(value: int) -> Edm:
    """The smallest type that holds a whole number exactly."""
    if value in INT64:
        return Edm.INT64
    try:
        return Edm.DOUBLE if int(float(value)) == value else Edm.STRING
    except OverflowError:
        return Edm.STRING


def _read_double(text: str) -> float:
    digits = _without_spaces(text)
    if (special := _SPECIAL.get(digits.lower())) is not None:
        return special
    if not _DECIMAL.fullmatch(digits):
        raise InvalidText(Fault.NOT_NUMBER, Edm.STRING)
    value = float(digits)
    if math.isinf(value) or len(digits) > _LONGEST_NUMBER:
        raise InvalidText(Fault.TOO_LARGE, Edm.STRING)
    return value


def _read_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise InvalidText(Fault.NOT_BOOLEAN, Edm.STRING)
    return word == "true"


# times

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_AGO = re.compile(r"(?:now)?\s*([+-])\s*(\d{1,7})\s*([smhdw])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}


def _read_datetime(text: str, now: datetime) -> int:
    word = text.strip().lower()
    if word in _DAYS:
        day = now.date() + timedelta(_DAYS[word])
        return _read_iso(day.isoformat(), now)
    if word == "now":
        return ticks(now)
    if ago := _AGO.fullmatch(word):
        length = timedelta(**{_UNITS[ago[3]]: int(ago[2])}) // timedelta(microseconds=1) * 10
        return _in_range(ticks(now) + (length if ago[1] == "+" else -length))
    return _read_iso(text.strip(), now)


def ticks(moment: datetime) -> int:
    """An instant as DateTime keeps it."""
    naive = moment.replace(tzinfo=None) - datetime(1970, 1, 1)  # noqa: DTZ001
    return (naive - (moment.utcoffset() or timedelta())) // timedelta(microseconds=1) * 10


def moment(ticks: int) -> datetime:
    """A DateTime as Python has it, which keeps six of its digits."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)


def _read_iso(text: str, now: datetime) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise InvalidText(Fault.NOT_DATETIME, Edm.STRING)
    day, hour, minute, second, fraction, zone = found.groups()
    if fraction and len(fraction) > 7:
        raise InvalidText(Fault.TOO_PRECISE)
    clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}"
    try:
        utc = edm.read_datetime(f"{day}T{clock}.{fraction or 0}Z")
    except OutOfRangeInput:
        raise InvalidText(Fault.OUT_OF_RANGE) from None
    except StorageError:
        raise InvalidText(Fault.NO_SUCH_TIME) from None
    seconds = _offset(zone) if zone else _offset_there(f"{day}T{clock}", now)
    return _in_range(utc - seconds * edm.TICKS_PER_SECOND)


def _offset(zone: str) -> int:
    """Seconds east of UTC."""
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 14 or minutes > 59:
        raise InvalidText(Fault.NO_SUCH_TIME)
    seconds = (hours * 60 + minutes) * 60
    return -seconds if zone[0] == "-" else seconds


def _offset_there(clock: str, now: datetime) -> int:
    offset = datetime.fromisoformat(clock).replace(tzinfo=now.tzinfo).utcoffset()
    return round((offset or timedelta()).total_seconds())


def _in_range(value: int) -> int:
    try:
        edm.read_datetime(edm.write_datetime(value))
    except (StorageError, OverflowError):
        raise InvalidText(Fault.OUT_OF_RANGE) from None
    return value


# GUIDs and bytes

_GUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def _read_guid(text: str) -> str:
    word = text.strip().lower()
    if word.startswith("{") and word.endswith("}"):
        word = word[1:-1]
    if not _GUID.fullmatch(word):
        raise InvalidText(Fault.NOT_GUID, Edm.STRING)
    digits = word.replace("-", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _read_binary(text: str, form: Form) -> bytes:
    data = _BYTES[form](text)
    if len(data) > BINARY_LIMIT:
        raise InvalidText(Fault.TOO_LONG, size=len(data))
    return data


def _read_hex(text: str) -> bytes:
    start = 2 if text[:2].lower() == "0x" else 0
    digits = []
    for position, character in enumerate(text[start:], start + 1):
        if character in _HEX:
            digits.append(character)
        elif not character.isspace():
            raise InvalidText(Fault.NOT_HEX, position=position)
    if len(digits) % 2:
        raise InvalidText(Fault.HALF_BYTE)
    return bytes.fromhex("".join(digits))


def _read_base64(text: str) -> bytes:
    """With the alphabet of addresses too, and with or without the padding."""
    content = text.rstrip("= \t\r\n")
    digits = []
    for position, character in enumerate(content, 1):
        if character in _BASE64:
            digits.append(character)
        elif not character.isspace():
            raise InvalidText(Fault.NOT_BASE64, position=position)
    if len(digits) % 4 == 1:
        raise InvalidText(Fault.BASE64_LENGTH)
    joined = "".join(digits).replace("-", "+").replace("_", "/")
    return base64.b64decode(joined + "=" * (-len(joined) % 4))


def _read_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(Fault.SURROGATE, position=error.start + 1) from None


_BYTES: Final[Mapping[Form, Callable[[str], bytes]]] = {
    Form.HEX: _read_hex,
    Form.BASE64: _read_base64,
    Form.TEXT: _read_utf8,
}


def _write_binary(data: bytes, form: Form) -> str:
    if form is Form.BASE64:
        return base64.b64encode(data).decode()
    if form is Form.HEX:
        return data.hex()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidText(Fault.NOT_UTF8, position=error.start + 1) from None
