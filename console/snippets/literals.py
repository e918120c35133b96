"""String and property literals of each language, safely quoted and without invisible characters."""

import json
import math
import re
from typing import Final

from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue, write_datetime

_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_NO_ARGUMENT: Final = re.compile("[\x00\ud800-\udfff]")


def quote_json(text: str) -> str:
    """Quote a string literal for JavaScript, C#, Go and JSON."""
    return write_json(text)


def write_json(value: object, indent: int | None = None) -> str:
    """Serialize JSON, which is also a JavaScript literal."""
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def quote_shell(text: str) -> str:
    """Quote a shell word; invisible characters are escaped for bash and zsh."""
    if _UNSEEN.search(text) is None and text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    return "$'" + "".join(map(_escape_ansi, text)) + "'"


def _escape_ansi(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and _UNSEEN.search(character) is None:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _plain(value: EdmValue) -> str:
    """Return the JSON of a value without quotes."""
    return encoding.write(value).strip('"')


def write_python(value: EdmValue) -> str:
    match value:
        case (Edm.INT64, int(number)):
            return f"EntityProperty({number}, EdmType.INT64)"
        case (Edm.DATETIME, int(ticks)):
            # a datetime would lose the seventh digit
            return f"EntityProperty({write_datetime(ticks)!r}, EdmType.DATETIME)"
        case (Edm.GUID, str(text)):
            return f"UUID({text!r})"
        case (Edm.DOUBLE, float(number)) if number != number or abs(number) == float("inf"):
            return f'float("{number!r}")'
    return repr(value.value)


def write_javascript(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quote_json(text)
        case (Edm.BOOLEAN | Edm.INT32, _):
            return encoding.write(value)
    # a number of JavaScript has one type and 53 bits, its Date three digits after the second
    return f'{{ type: "{value.type.short_name}", value: "{_plain(value)}" }}'


def write_csharp(value: EdmValue) -> str:
    match value:
        case (Edm.STRING, str(text)):
            return quote_json(text)
        case (Edm.INT64, int(number)):
            return f"{number}L" if number > -(2**63) else "long.MinValue"
        case (Edm.DOUBLE, float(number)):
            return f'"{_plain(value)}"' if is_special_in_csharp(value) else f"{number!r}d"
        case (Edm.DATETIME, _):
            return f'DateTimeOffset.Parse("{_plain(value)}")'
        case (Edm.GUID, _):
            return f'Guid.Parse("{_plain(value)}")'
        case (Edm.BINARY, _):
            return f'Convert.FromBase64String("{_plain(value)}")'
    return encoding.write(value)


def is_special_in_csharp(value: EdmValue) -> bool:
    """Return whether Azure.Data.Tables cannot send a Double: infinities fail, and -0.0 becomes 0."""
    return is_negative_zero(value) or (isinstance(value.value, float) and not math.isfinite(value.value))


def is_negative_zero(value: EdmValue) -> bool:
    """Return whether a value is the Double -0.0, which equals 0.0."""
    number = value.value
    return isinstance(number, float) and number == 0 and math.copysign(1, number) < 0


def write_arguments(name: str, value: EdmValue) -> list[str]:
    """Return a property as Azure CLI arguments; empty if it cannot be passed on a command line."""
    if value.type is Edm.STRING and _NO_ARGUMENT.search(str(value.value)):
        return []
    words = [f"{name}={value.value if isinstance(value.value, str) else _plain(value)}"]
    if value.type is not Edm.STRING:
        words.append(f"{name}@odata.type={value.type.value}")
    return words
