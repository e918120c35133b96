"""Values as users type and read them; ``read`` is the exact inverse of ``write``."""

import json
import math
import re
from collections.abc import Mapping
from datetime import tzinfo
from decimal import Decimal, InvalidOperation
from typing import Final, assert_never, cast

from storage.domain.values import edm, encoding
from storage.domain.values.edm import INT32, INT64, STRING_LIMIT, Edm, EdmValue, utf16_length
from storage.editing import doubles, typed_bytes, typed_times
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText as InvalidText
from storage.editing.invalid_text import TextFault as TextFault
from storage.editing.invalid_text import TextForm as TextForm

FORMS: Final[Mapping[Edm, tuple[TextForm, ...]]] = {
    Edm.STRING: (TextForm.PLAIN, TextForm.ESCAPED),
    Edm.BINARY: (TextForm.HEX, TextForm.BASE64, TextForm.TEXT),
}


def read(type_: Edm, text: str, context: InputContext, form: TextForm | None = None) -> EdmValue:
    """Parse typed text; ``form`` defaults to the type's first."""
    match type_:
        case Edm.STRING:
            return EdmValue(type_, _read_string(text, form or TextForm.PLAIN, context))
        case Edm.BINARY:
            return EdmValue(type_, typed_bytes.read(text, form or TextForm.HEX, context))
        case Edm.INT32 | Edm.INT64:
            return EdmValue(type_, _read_integer(type_, text))
        case Edm.DOUBLE:
            return EdmValue(type_, _read_double(text))
        case Edm.BOOLEAN:
            return EdmValue(type_, _read_boolean(text))
        case Edm.DATETIME:
            return EdmValue(type_, typed_times.read(text, context))
        case Edm.GUID:
            return EdmValue(type_, _read_guid(text))
        case _:
            assert_never(type_)


def read_exactly(type_: Edm, text: str, context: InputContext, form: TextForm | None = None) -> EdmValue:
    """Parse a file's text like ``read``, but raise InvalidText for rounded Doubles and for times in words."""
    if type_ is Edm.DATETIME and not text.strip()[:4].isdecimal():
        raise InvalidText(TextFault.NOT_DATETIME, Edm.STRING)  # words such as "now" are for typing
    value = read(type_, text, context, form)
    if type_ is not Edm.DOUBLE or not math.isfinite(number := cast("float", value.value)):
        return value
    if not doubles.is_exact(_without_spaces(text), number):
        raise InvalidText(TextFault.DIGITS_LOST, Edm.STRING)
    return value


def write(value: EdmValue, form: TextForm | None = None, zone: tzinfo | None = None) -> str:
    """Format a value, with times in ``zone`` or UTC; raises InvalidText only for text bytes that are not UTF-8."""
    match value:
        case (Edm.STRING, str(text)):
            return edm.quote(text) if form is TextForm.ESCAPED else text
        case (Edm.BINARY, bytes(data)):
            return typed_bytes.write(data, form or TextForm.HEX)
        case (Edm.DATETIME, int(ticks)) if zone is not None:
            return typed_times.write(ticks, zone)
    return encoding.write(value).strip('"')


def field_form(value: EdmValue) -> TextForm | None:
    """Return the form in which a form field can edit the value losslessly; None if the type has only one."""
    match value:
        case (Edm.STRING, str(text)):
            return TextForm.ESCAPED if _LOST_IN_FIELDS.search(text) else TextForm.PLAIN
        case (Edm.BINARY, _):
            return TextForm.HEX
    return None


def stored_text(value: EdmValue, text: str) -> str:
    """Return the stored spelling of a number or time if it differs from the typed text; else an empty string."""
    written = write(value)
    match value.type:
        case Edm.DOUBLE if math.isfinite(cast("float", value.value)):
            return "" if _is_same_number(_without_spaces(text), written) else written
        case Edm.DATETIME:
            return "" if text.strip().upper().replace(" ", "T") == written else written
    return ""


def _is_same_number(one: str, other: str) -> bool:
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:  # an exponent beyond the range of decimals
        return False


# browsers normalize line endings, turn U+0000 into U+FFFD, and cannot carry lone surrogates
_LOST_IN_FIELDS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_string(text: str, form: TextForm, context: InputContext) -> str:
    if form is TextForm.ESCAPED:
        text = _read_escaped(text)
    elif half := _SURROGATE.search(text):
        raise InvalidText(TextFault.SURROGATE, position=half.start() + 1)
    check_length(text, context)
    return text


def check_length(text: str, context: InputContext) -> None:
    """Raise InvalidText if a string is too long; in Cosmos accounts only the entity limits it."""
    if not context.is_cosmos and (length := utf16_length(text)) > STRING_LIMIT:
        raise InvalidText(TextFault.TOO_LONG, size=2 * length)


def _read_escaped(text: str) -> str:
    try:
        value = json.loads(text.strip())
    except json.JSONDecodeError as error:
        raise InvalidText(TextFault.NOT_ESCAPED, position=error.pos + 1) from None
    except (RecursionError, ValueError):  # a number with more digits than Python converts
        raise InvalidText(TextFault.NOT_ESCAPED, position=1) from None
    if not isinstance(value, str):
        raise InvalidText(TextFault.NOT_ESCAPED, position=1)
    return value


# numbers

_SPACES = re.compile(r"[\s_\u2009\u200a\u202f\u2060]+")
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST_NUMBER: Final = 400  # digits; Python's conversions are slow far beyond
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
        raise InvalidText(TextFault.NOT_WHOLE, Edm.DOUBLE if is_number else Edm.STRING)
    if len(digits) > _LONGEST_NUMBER:
        raise InvalidText(TextFault.TOO_LARGE, Edm.STRING)
    value = int(digits)
    if value not in (INT32 if type_ is Edm.INT32 else INT64):
        raise InvalidText(TextFault.TOO_LARGE, _type_for(value))
    return value


def _type_for(value: int) -> Edm:
    """Return the smallest type that holds a whole number exactly."""
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
        raise InvalidText(TextFault.NOT_NUMBER, Edm.STRING)
    value = float(digits)
    if math.isinf(value) or len(digits) > _LONGEST_NUMBER:
        raise InvalidText(TextFault.TOO_LARGE, Edm.STRING)
    return value


def _read_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise InvalidText(TextFault.NOT_BOOLEAN, Edm.STRING)
    return word == "true"


_GUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def _read_guid(text: str) -> str:
    word = text.strip().lower()
    if word.startswith("{") and word.endswith("}"):
        word = word[1:-1]
    if not _GUID.fullmatch(word):
        raise InvalidText(TextFault.NOT_GUID, Edm.STRING)
    digits = word.replace("-", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
