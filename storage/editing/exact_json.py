"""JSON without loss: a name that an object has twice is told, and numbers keep their digits.

The standard library's parser is used because it keeps what others lose: halves of surrogate pairs, -0.0, and the digits
of whole numbers. By itself it keeps the last of several members with the same name, and rounds other numbers.
"""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from storage.editing.doubles import is_exact


class SpelledNumber(float):
    """A number that Python spells otherwise than its ``text``, such as 1.50 or 1e3."""

    __slots__ = ("text",)

    text: str

    @classmethod
    def read(cls, text: str) -> "SpelledNumber":
        found = cls(text)
        found.text = text
        return found


@dataclass(frozen=True, slots=True)
class InexactNumber:
    """A number that no Double holds exactly; ``nearest`` is infinite beyond their range."""

    text: str

    @property
    def nearest(self) -> float:
        return float(self.text)


def _read_number(text: str) -> float | InexactNumber:
    value = float(text)
    if repr(value) == text:
        return value
    return SpelledNumber.read(text) if is_exact(text, value) else InexactNumber(text)


def _read_whole(text: str) -> int | InexactNumber:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return InexactNumber(text)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


class ExactDecoder:
    """A decoder of JSON values one after the other, with every digit.

    After ``decode``, ``repeated`` is a name that an object in the value has twice. With ``is_strict``, numbers of
    thousands of digits, and NaN and Infinity without quotes, are not JSON.
    """

    def __init__(self, *, is_strict: bool = False) -> None:
        self.repeated: str | None = None
        hooks: dict[str, Any] = {"object_pairs_hook": self._object, "parse_float": _read_number}
        if is_strict:
            hooks["parse_constant"] = _refuse_constant
        long = hooks if is_strict else {**hooks, "parse_int": _read_whole}
        self._decode, self._decode_long = (JSONDecoder(**it).raw_decode for it in (hooks, long))

    def decode(self, text: str, start: int = 0) -> tuple[Any, int]:
        """Decode the JSON value at a position and return it with its end; raises ValueError or RecursionError."""
        self.repeated = None
        try:
            return self._decode(text, start)
        except JSONDecodeError:
            raise
        except ValueError:  # a whole number with more digits than Python converts
            self.repeated = None
            return self._decode_long(text, start)

    def load(self, text: str) -> Any:
        """Return the only value of a text; raises ValueError, RecursionError."""
        start = len(text) - len(text.lstrip(_BLANKS))
        value, end = self.decode(text, start)
        if text[end:].strip(_BLANKS):
            raise JSONDecodeError("Extra data", text, end)
        return value

    def _object(self, members: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(members)
        if len(value) != len(members) and self.repeated is None:
            self.repeated = next(
                name for name, number in Counter(name for name, _ in members).items() if number > 1
            )
        return value


_BLANKS: Final = " \t\r\n"


def write(value: object, *, is_ascii: bool = False) -> str:
    """Return the JSON text of a value that was decoded, with numbers as they were spelled."""
    match value:
        case SpelledNumber() | InexactNumber():
            return value.text
        case Mapping():
            members = (
                f"{write(str(name), is_ascii=is_ascii)}: {write(it, is_ascii=is_ascii)}"
                for name, it in value.items()
            )
            return f"{{{', '.join(members)}}}"
        case list() | tuple():
            return f"[{', '.join(write(it, is_ascii=is_ascii) for it in value)}]"
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
    return json.dumps(value, ensure_ascii=is_ascii, default=str)
