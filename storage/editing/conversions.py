"""Conversions of a value to another type, and what they lose."""

import math
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from storage.domain.values.edm import INT32, INT64, Edm, EdmValue
from storage.editing import typed_text
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText, TextFault, TextForm


class Loss(StrEnum):
    """Kind of information that a conversion loses."""

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


def convert(value: EdmValue, to: Edm, context: InputContext) -> Converted:
    """Convert a value to a type; raises InvalidText if that is impossible."""
    if value.type is to:
        return Converted(value)
    match to, value:
        case Edm.STRING, _:
            return _to_string(value, context)
        case ((Edm.INT32 | Edm.INT64), (Edm.BOOLEAN | Edm.INT32 | Edm.INT64, int(number))):
            return Converted(_integer(int(number), to))
        case ((Edm.INT32 | Edm.INT64), (Edm.DOUBLE, float(number))):
            if not math.isfinite(number):
                raise InvalidText(TextFault.NOT_WHOLE)
            return Converted(_integer(int(number), to), _loss_of_whole(number))
        case Edm.DOUBLE, (Edm.STRING, str(text)):
            converted = _read(text, to, context)
            is_imprecise = converted.loss and typed_text.stored_text(converted.value, text)
            return Converted(converted.value, Loss.PRECISION) if is_imprecise else converted
        case Edm.DOUBLE, (Edm.BOOLEAN | Edm.INT32 | Edm.INT64, int(number)):
            double = float(number)
            return Converted(EdmValue(to, double), None if int(double) == number else Loss.PRECISION)
        case Edm.BOOLEAN, (Edm.INT32 | Edm.INT64 | Edm.DOUBLE, (0 | 1) as number):
            is_negative = number == 0 and math.copysign(1, number) < 0
            return Converted(EdmValue(to, bool(number)), Loss.SIGN if is_negative else None)
        case Edm.BINARY, (Edm.STRING, str(text)):
            return Converted(typed_text.read(to, text, context, TextForm.TEXT))
        case Edm.BINARY, (Edm.GUID, str(text)):
            return Converted(EdmValue(to, uuid.UUID(text).bytes))
        case Edm.GUID, (Edm.BINARY, bytes(data)) if len(data) == 16:
            return Converted(EdmValue(to, str(uuid.UUID(bytes=data))))
        # words such as "now" are for typing: in a stored text they are not times
        case Edm.DATETIME, (Edm.STRING, str(text)) if not text.strip()[:4].isdecimal():
            raise InvalidText(TextFault.NOT_DATETIME)
        case _, (Edm.STRING, str(text)):
            return _read(text, to, context)
    raise InvalidText(TextFault.NO_MEANING)


def _to_string(value: EdmValue, context: InputContext) -> Converted:
    if value.type is Edm.BINARY:
        data = cast("bytes", value.value)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = typed_text.write(value, TextForm.BASE64)
    else:
        text = typed_text.write(value)
    typed_text.check_length(text, context)
    return Converted(EdmValue(Edm.STRING, text))


def _read(text: str, to: Edm, context: InputContext) -> Converted:
    converted = typed_text.read(to, text, context)
    return Converted(converted, None if typed_text.write(converted) == text else Loss.SPELLING)


def _integer(number: int, to: Edm) -> EdmValue:
    if number not in (INT32 if to is Edm.INT32 else INT64):
        raise InvalidText(TextFault.TOO_LARGE, Edm.INT64 if number in INT64 else None)
    return EdmValue(to, number)


def _loss_of_whole(number: float) -> Loss | None:
    if number != int(number):
        return Loss.FRACTION
    return Loss.SIGN if number == 0 and math.copysign(1, number) < 0 else None
