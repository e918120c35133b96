"""Conversions of a value to another type, and what they lose."""

import math
import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never, cast

from storage.domain.values.edm import INT32, INT64, STRING_LIMIT, Edm, EdmValue, utf16_length
from storage.editing import typed_text
from storage.editing.typed_text import InvalidText, TextFault, TextForm


class Loss(StrEnum):
    """What a conversion loses."""

    SPELLING = "how it is written"  # leading zeros, capital letters, a time offset
    FRACTION = "the digits after the point"
    PRECISION = "digits that a Double cannot hold"
    SIGN = "the sign of zero"


@dataclass(frozen=True, slots=True)
class Converted:
    value: EdmValue
    loss: Loss | None = None

    @property
    def is_lossless(self) -> bool:
        return self.loss is None


def convert(value: EdmValue, to: Edm, now: datetime) -> Converted:
    """Convert a value; raises InvalidText if the type has no such value. ``now`` has the zone of times without one."""
    if value.type is to:
        return Converted(value)
    match to:
        case Edm.STRING:
            return _to_string(value)
        case Edm.INT32 | Edm.INT64:
            return _to_integer(value, to, now)
        case Edm.DOUBLE:
            return _to_double(value, now)
        case Edm.BOOLEAN:
            return _to_boolean(value, now)
        case Edm.BINARY:
            return _to_binary(value)
        case Edm.GUID:
            return _to_guid(value, now)
        case Edm.DATETIME:
            return _to_datetime(value, now)
        case _:
            assert_never(to)


def _to_string(value: EdmValue) -> Converted:
    is_binary = value.type is Edm.BINARY
    text = _text_of(cast("bytes", value.value)) if is_binary else typed_text.write(value)
    if (length := utf16_length(text)) > STRING_LIMIT:
        raise InvalidText(TextFault.TOO_LONG, size=2 * length)
    return Converted(EdmValue(Edm.STRING, text))


def _text_of(data: bytes) -> str:
    """Decode bytes as UTF-8, or write them in base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return typed_text.write(EdmValue(Edm.BINARY, data), TextForm.BASE64)


def _read(value: EdmValue, to: Edm, now: datetime) -> Converted:
    text = cast("str", value.value)
    converted = typed_text.read(to, text, now)
    return Converted(converted, None if typed_text.write(converted) == text else Loss.SPELLING)


def _to_integer(value: EdmValue, to: Edm, now: datetime) -> Converted:
    match value:
        case (Edm.STRING, _):
            return _read(value, to, now)
        case (Edm.BOOLEAN | Edm.INT32 | Edm.INT64, int(number)):
            return Converted(_integer(int(number), to))
        case (Edm.DOUBLE, float(number)):
            if not math.isfinite(number):
                raise InvalidText(TextFault.NOT_WHOLE)
            return Converted(_integer(int(number), to), _loss_of_whole(number))
    raise InvalidText(TextFault.NO_MEANING)


def _integer(number: int, to: Edm) -> EdmValue:
    if number not in (INT32 if to is Edm.INT32 else INT64):
        raise InvalidText(TextFault.TOO_LARGE, Edm.INT64 if number in INT64 else None)
    return EdmValue(to, number)


def _loss_of_whole(number: float) -> Loss | None:
    if number != int(number):
        return Loss.FRACTION
    return Loss.SIGN if number == 0 and math.copysign(1, number) < 0 else None


def _to_double(value: EdmValue, now: datetime) -> Converted:
    match value:
        case (Edm.STRING, str(text)):
            converted = _read(value, Edm.DOUBLE, now)
            if converted.loss and typed_text.stored_text(converted.value, text):
                return Converted(converted.value, Loss.PRECISION)
            return converted
        case (Edm.BOOLEAN | Edm.INT32 | Edm.INT64, int(number)):
            double = float(number)
            return Converted(EdmValue(Edm.DOUBLE, double), None if int(double) == number else Loss.PRECISION)
    raise InvalidText(TextFault.NO_MEANING)


def _to_boolean(value: EdmValue, now: datetime) -> Converted:
    match value:
        case (Edm.STRING, _):
            return _read(value, Edm.BOOLEAN, now)
        case (Edm.INT32 | Edm.INT64 | Edm.DOUBLE, (0 | 1) as number):
            is_negative = number == 0 and math.copysign(1, number) < 0
            return Converted(EdmValue(Edm.BOOLEAN, bool(number)), Loss.SIGN if is_negative else None)
    raise InvalidText(TextFault.NO_MEANING)


def _to_binary(value: EdmValue) -> Converted:
    match value:
        case (Edm.STRING, str(text)):
            return Converted(typed_text.read(Edm.BINARY, text, datetime.min, TextForm.TEXT))  # noqa: DTZ901
        case (Edm.GUID, str(text)):
            return Converted(EdmValue(Edm.BINARY, uuid.UUID(text).bytes))
    raise InvalidText(TextFault.NO_MEANING)


def _to_guid(value: EdmValue, now: datetime) -> Converted:
    match value:
        case (Edm.STRING, _):
            return _read(value, Edm.GUID, now)
        case (Edm.BINARY, bytes(data)) if len(data) == 16:
            return Converted(EdmValue(Edm.GUID, str(uuid.UUID(bytes=data))))
    raise InvalidText(TextFault.NO_MEANING)


def _to_datetime(value: EdmValue, now: datetime) -> Converted:
    # words such as "now" are for typing: in a stored text they are not times
    if value.type is Edm.STRING and cast("str", value.value).strip()[:4].isdecimal():
        return _read(value, Edm.DATETIME, now)
    raise InvalidText(TextFault.NOT_DATETIME if value.type is Edm.STRING else TextFault.NO_MEANING)
