"""Widths of a grid's columns, so that a browser lays a page out once: its data has one width for all characters."""

import re
from collections.abc import Iterable
from html import unescape
from typing import Final
from unicodedata import east_asian_width

from console.grid.cells import Cell
from console.site.glyphs import GLYPHS

_CHARACTER: Final = 8  # pixels; a fraction less on fine screens
_PADDING: Final = 25  # pixels of both sides, and one for rounding
_LEAST: Final = 72
_CUT_AFTER: Final = 40  # characters; as in grid.css
_MARK: Final = 7  # pixels of a character in the mark of a type
# pixels of the letters of headings
_LETTERS: Final = {
    letter: width
    for width, letters in {
        4: " !.:;I\\ijl'(),/[]`t",
        5: "1fr{|}",
        7: '*=?EFJLachknsuvxyz-^_"',
        9: "+ACDGHNTUVXY",
        12: "%@WMmOQw",
    }.items()
    for letter in letters
}
_TAG: Final = re.compile("<[^>]*>")


def fit_content(cells: Iterable[Cell], type_: str) -> tuple[int, int]:
    """Return the width of a column that cuts long values, and the width that cuts none."""
    characters = max((_count(cell.markup) for cell in cells if cell.state != "absent"), default=0)
    more = _PADDING + (_width_of_mark(type_) if type_ == "mix" else 0)
    return min(characters, _CUT_AFTER) * _CHARACTER + more, characters * _CHARACTER + more


def fit_heading(name: str, type_: str, zone: str, *, is_sorted: bool) -> int:
    """Return the width of a heading; ``zone`` is shown after its name."""
    text = name + (f" {zone}" if zone else "")
    letters = sum(_LETTERS.get(letter, 8 if letter.isascii() else 13) for letter in text)
    return max(_LEAST, _PADDING + _width_of_mark(type_) + letters + (20 if is_sorted else 0))


def _width_of_mark(type_: str) -> int:
    return len(GLYPHS[type_].text) * _MARK + (14 if type_ == "mix" else 6) if type_ else 0


def _count(markup: str) -> int:
    """Count the characters; East Asian ones take the place of two."""
    text = unescape(_TAG.sub("", markup)) if "<" in markup or "&" in markup else markup
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
