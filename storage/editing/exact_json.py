"""Lossless JSON: reports duplicate names, and keeps all digits of numbers."""

import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from storage.editing.doubles import is_exact


class SpelledNumber(float):
    """Number whose original ``text`` Python would print differently, such as 1.50 or 1e3."""

    __slots__ = ("text",)

    text: str

    @classmethod
    def read(cls, text: str) -> "SpelledNumber":
        found = cls(text)
        found.text = text
        return found


@dataclass(frozen=True, slots=True)
class InexactNumber:
    """Number that no Double represents exactly; ``nearest`` is infinite beyond their range."""

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
    """Decoder of consecutive JSON values with all digits."""

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
        """Decode a text with a single JSON value; raises ValueError or RecursionError."""
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
    """Serialize a decoded value to JSON, with numbers in their original spelling."""
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
