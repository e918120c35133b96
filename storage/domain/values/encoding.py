"""Values as exact JSON text, and as typed, comparable members of the jsonb projection."""

import base64
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, cast

from storage.domain.values.edm import (
    FIRST_COSMOS_TICK,
    TICKS_PER_SECOND,
    Edm,
    EdmValue,
    quote,
    read_datetime,
    second_text,
    write_datetime,
)
from storage.domain.values.kinds import AccountKind


def _write_double(value: float) -> str:
    """Serialize a Double as JSON, never as a bare integer, which clients would parse as Int32."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value).replace("e", "E")


def needs_annotation(value: EdmValue) -> bool:
    """Return whether the value needs a type annotation, as its JSON is ambiguous."""
    type_, content = value
    return type_ in ANNOTATED or (type_ is Edm.DOUBLE and not math.isfinite(content))  # type: ignore[arg-type]


# types that the JSON value alone never tells
ANNOTATED: Final = frozenset({Edm.INT64, Edm.DATETIME, Edm.GUID, Edm.BINARY})


def write(value: EdmValue, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Serialize a value as ASCII JSON, exactly as in responses."""
    return encoders(kind)[value.type](value.value)[0]


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
    """Escape characters that PostgreSQL cannot store, preserving code-point order."""
    if _ESCAPED_CHARACTER.search(text) is None:
        return text
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Reverse ``escape``."""
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
    """Serialize a value for the jsonb projection, in which every member encodes its type."""
    return ENCODE[value.type](value.value)[1]


def unproject(text: str) -> EdmValue:
    """Reverse ``project``; ``text`` is the result of ``->>``, without quotes around strings."""
    if text in ("true", "false"):
        return EdmValue(Edm.BOOLEAN, text == "true")
    if text[0].isdigit() or text[0] == "-":
        return _unproject_number(text)
    letter, rest = text[0], text[1:]
    match letter:
        case "s":
            return EdmValue(Edm.STRING, unescape(rest))
        case "t":
            return EdmValue(Edm.DATETIME, read_datetime(rest, FIRST_COSMOS_TICK))
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
    if "\\u" in text:  # may contain characters that the projection escapes differently
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
    second = second_text(seconds)
    if not fraction:
        return f'"{second}Z"', f'"t{second}.0000000"'
    digits = f"{fraction:07}"
    return f'"{second}.{digits.rstrip("0")}Z"', f'"t{second}.{digits}"'


def _encode_boolean(value: bool) -> tuple[str, str]:
    return ("true", "true") if value else ("false", "false")


# the results of write and project in one call, because inserts spend most of their time here
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


def _encode_cosmos_datetime(value: int) -> tuple[str, str]:
    text = write_datetime(value, AccountKind.COSMOS)
    return f'"{text}"', f'"t{text[:-1]}"'


_ENCODE_COSMOS: Final = {**ENCODE, Edm.DATETIME: _encode_cosmos_datetime}


def encoders(kind: AccountKind) -> Mapping[Edm, Callable[..., tuple[str, str]]]:
    """Return the encoders by type for this kind of account."""
    return _ENCODE_COSMOS if kind is AccountKind.COSMOS else ENCODE


def write_column(
    member: bytes, column: list[bytes | None], *, annotations: bool, kind: AccountKind = AccountKind.STORAGE
) -> list[bytes]:
    """Serialize a column of a page like write_projected, faster for strings or plain numbers."""
    if None not in column:
        values = cast("list[bytes]", column)
        kinds = {value[:1] for value in values}
        everything = b"".join(values)
        if kinds == {b"s"} and len(everything.translate(None, _CAREFUL)) == len(everything):
            return [b',%b:"%b"' % (member, value[1:]) for value in values]
        if kinds <= _NUMBER_STARTS and b".0" not in everything and max(map(len, values), default=0) < 12:
            return [b",%b:%b" % (member, value) for value in values]
    return [write_projected(member, value, annotations=annotations, kind=kind) for value in column]


_NUMBER_STARTS: Final = {b"%d" % digit for digit in range(10)} | {b"-"}
# bytes that occur in escaped rows, and thereby everything that escape() produces
_CAREFUL: Final = bytes(range(32)) + b'"\\' + bytes(range(0x7F, 0x100))


def write_projected(
    member: bytes, projected: bytes | None, *, annotations: bool, kind: AccountKind = AccountKind.STORAGE
) -> bytes:
    """Write a selected property for a response from its projection; a missing one is null, or omitted in Cosmos.

    ``member`` is the quoted name. Common types are copied unparsed, because a page holds thousands of them.
    """
    if projected is None:
        return b",%b:null" % member if kind is AccountKind.STORAGE else b""
    first = projected[0]
    if first == 115:  # s
        if len(projected.translate(None, _CAREFUL)) == len(projected):
            return b',%b:"%b"' % (member, projected[1:])
    elif first < 58:  # a digit or a minus
        # with an exponent a Double has 19 characters and more, or begins with zeros; an Int64 ends with .00
        if projected[-3:] != b".00" and len(projected) < 19 and b"0.0000" not in projected[:7]:
            return b",%b:%b" % (member, projected if projected != b"0.000" else b"-0.0")
    elif projected == b"true" or projected == b"false":
        return b",%b:%b" % (member, projected)
    return _write_unprojected(member, unproject(projected.decode()), annotations=annotations, kind=kind)


def _write_unprojected(member: bytes, value: EdmValue, *, annotations: bool, kind: AccountKind) -> bytes:
    written = write(value, kind).encode()
    if annotations and needs_annotation(value):
        return b',%b@odata.type":"%b",%b:%b' % (member[:-1], value.type.encode(), member, written)
    return b",%b:%b" % (member, written)
