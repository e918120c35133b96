"""Patterns of times, such as ``dd.MM.yyyy HH:mm``, which a text must match exactly."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from storage.domain.errors import OutOfRangeInput, StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.values import edm
from storage.editing.invalid_text import InvalidText, TextFault

_FIRST_OF_CENTURY: Final = 1970  # a year of two digits is from 1970 to 2069
_LETTERS: Final[Mapping[str, str]] = {
    "d": r"\d{1,2}",
    "dd": r"\d\d",
    "M": r"\d{1,2}",
    "MM": r"\d\d",
    "yy": r"\d\d",
    "yyyy": r"\d{4}",
    "H": r"\d{1,2}",
    "HH": r"\d\d",
    "m": r"\d{1,2}",
    "mm": r"\d\d",
    "s": r"\d{1,2}",
    "ss": r"\d\d",
    **{"f" * count: rf"\d{{{count}}}" for count in range(1, 8)},
    "z": r"Z|[+-]\d\d(?::?\d\d)?",
}
_NEEDS: Final = {"m": "H", "s": "m", "f": "s"}
# a text in apostrophes, doubled within it, letters of a part, or any other character
_PIECE: Final = re.compile(
    r"'(?P<text>(?:[^']|'')*)(?P<end>'?)|(?P<letters>([A-Za-z])\4*)|(?P<other>.)", re.DOTALL
)


class InvalidPattern(Refused):
    """A pattern is invalid from ``start`` to ``end``; positions count from one."""

    def __init__(self, reason: Reason, end: int, *, position: int, **facts: object) -> None:
        super().__init__(reason, position=position, **facts)
        self.start = position - 1
        self.end = end


@dataclass(frozen=True, slots=True)
class TimePattern:
    """Pattern of times, as a regular expression with a group for each part."""

    expression: re.Pattern[str]

    def read(self, text: str, first: int) -> int:
        """Return the ticks of a time, in UTC without an offset; raises InvalidText, also before ``first``."""
        match = self.expression.fullmatch(text)
        if match is None:
            raise InvalidText(TextFault.OTHER_PATTERN)
        parts = match.groupdict(default="0")
        year = int(parts["y"])
        if len(parts["y"]) == 2:
            year += _FIRST_OF_CENTURY // 100 * 100 + (100 if year < _FIRST_OF_CENTURY % 100 else 0)
        day = f"{year:04}-{parts['M']:0>2}-{parts['d']:0>2}"
        clock = ":".join(f"{parts.get(it, '0'):0>2}" for it in "Hms")
        try:
            ticks = edm.read_datetime(f"{day}T{clock}.{parts.get('f', '0')}Z", first)
            ticks -= edm.zone_offset(parts.get("z", "Z")) * edm.TICKS_PER_SECOND
            return edm.read_datetime(edm.write_datetime(ticks), first)
        except (OutOfRangeInput, OverflowError):
            raise InvalidText(TextFault.OUT_OF_RANGE, first_year=edm.first_year(first)) from None
        except StorageError:
            raise InvalidText(TextFault.NO_SUCH_TIME) from None


@lru_cache(maxsize=64)
def read_pattern(pattern: str) -> TimePattern:
    """Read a pattern; raises InvalidPattern."""
    parts: dict[str, str] = {}
    written: list[str] = []
    # whether the part before has one digit or two, which digits after it would make unclear
    ends_open = False
    for piece in _PIECE.finditer(pattern):
        start, end, letters = *piece.span(), piece["letters"]
        if not letters:
            if piece["text"] is not None and not piece["end"]:
                raise InvalidPattern(Reason.PATTERN_APOSTROPHE, end, position=start + 1)
            text = piece["other"] or piece["text"].replace("''", "'") or "'"
            written.append(re.escape(text))
            ends_open = False
            continue
        digits = _LETTERS.get(letters)
        if digits is None:
            raise InvalidPattern(Reason.PATTERN_LETTERS, end, position=start + 1, letters=letters)
        name = letters[0]
        if name in parts:
            raise InvalidPattern(Reason.PATTERN_TWICE, end, position=start + 1, letters=letters)
        if ends_open and name != "z":
            raise InvalidPattern(Reason.PATTERN_UNCLEAR, end, position=start + 1, letters=letters)
        parts[name] = letters
        written.append(f"(?P<{name}>{digits})")
        ends_open = len(letters) == 1 and name not in "fz"
    for name in "yMd":
        if name not in parts:
            raise InvalidPattern(Reason.PATTERN_DAY, len(pattern), position=1)
    for name, needed in _NEEDS.items():
        if name in parts and needed not in parts:
            raise InvalidPattern(
                Reason.PATTERN_NEEDS, len(pattern), position=1, letters=parts[name], needed=needed
            )
    return TimePattern(re.compile("".join(written), re.ASCII))
