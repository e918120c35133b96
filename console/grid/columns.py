"""Which columns a grid has, in which order and how wide: as it stands in an address, and as it is arranged.

``!PartitionKey:120,!RowKey,-Photo,*,Timestamp``: an exclamation mark pins, a hyphen hides, a colon gives the width in
pixels, and the star stands for all that are not named; without it there are no others.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

KEYS: Final = ("PartitionKey", "RowKey")
TIMESTAMP: Final = "Timestamp"
WIDTHS: Final = range(40, 2001)  # pixels
_REST: Final = "*"
_MOST: Final = 300  # columns; an entity has 252 properties
_ITEM = re.compile(r"([!-]?)([^,:!*\s-]{1,255})(?::([0-9]{1,4}))?")


@dataclass(frozen=True, slots=True)
class Choice:
    """A column as somebody wants it."""

    name: str
    width: int | None = None
    is_pinned: bool = False
    is_hidden: bool = False

    def __str__(self) -> str:
        mark = "-" if self.is_hidden else "!" if self.is_pinned else ""
        width = f":{self.width}" if self.width is not None and not self.is_hidden else ""
        return f"{mark}{self.name}{width}"


_PINNED: Final = [Choice(name, is_pinned=True) for name in KEYS]


@dataclass(frozen=True, slots=True)
class Columns:
    """``rest`` is the place before which the columns stand that are not named; None: they are left out."""

    choices: tuple[Choice, ...] = ()
    rest: int | None = 0

    def __str__(self) -> str:
        items = [str(choice) for choice in self.choices]
        if self.rest is not None:
            items.insert(self.rest, _REST)
        return ",".join(items)

    @property
    def only(self) -> tuple[str, ...] | None:
        """The names of the only ones that are wanted, or None."""
        if self.rest is not None:
            return None
        return tuple(choice.name for choice in self.choices if not choice.is_hidden)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(choice.name for choice in self.choices if choice.is_hidden)


DEFAULT: Final = Columns()


def read(text: str) -> Columns:
    """What cannot be understood is left out."""
    choices: dict[str, Choice] = {}
    rest = None
    for item in text.split(",")[: _MOST + 1]:
        if item == _REST:
            rest = len(choices)
        elif (found := _ITEM.fullmatch(item)) is not None and found[2].isidentifier():
            choices.setdefault(found[2], _choice(found[1], found[2], found[3]))
    if not choices:
        return DEFAULT
    return Columns(tuple(choices.values()), rest)


def _choice(mark: str, name: str, width: str | None) -> Choice:
    # a key is never hidden: without it nobody knows what a row is
    is_hidden = mark == "-" and name not in KEYS
    pixels = None if width is None else min(max(int(width), WIDTHS[0]), WIDTHS[-1])
    return Choice(name, None if is_hidden else pixels, mark == "!", is_hidden)


def arrange(columns: Columns, seen: Iterable[str]) -> list[Choice]:
    """The columns that are shown, in their order, pinned ones first; ``seen`` are the properties there are."""
    named = {choice.name for choice in columns.choices}
    shown = [choice for choice in columns.choices if not choice.is_hidden]
    keys = [choice for choice in _PINNED if choice.name not in named]
    if columns.rest is not None:
        place = sum(not choice.is_hidden for choice in columns.choices[: columns.rest])
        shown[place:place] = [Choice(name) for name in dict.fromkeys((*seen, TIMESTAMP)) if name not in named]
    return sorted([*keys, *shown], key=lambda choice: not choice.is_pinned)


def described(shown: Sequence[Choice], hidden: Iterable[str], *, loose: Collection[str] | None) -> Columns:
    """What has to be said so that arrange shows these; ``loose`` None: and no others.

    ``loose`` are the columns that stand where they would stand anyway: at the end they need not be named.
    """
    if loose is None:
        return Columns(tuple(shown), None)
    named = list(shown)
    while named and named[-1] == Choice(named[-1].name) and named[-1].name in loose:
        named.pop()
    if named[: len(_PINNED)] == _PINNED:
        named = named[len(_PINNED) :]
    gone = [Choice(name, is_hidden=True) for name in hidden if name not in KEYS]
    return Columns((*named, *gone), len(named) + len(gone))


def moved(shown: Sequence[Choice], name: str, by: int) -> list[Choice]:
    """One place to the left or to the right, among those that are pinned alike."""
    found = list(shown)
    place = next((at for at, choice in enumerate(found) if choice.name == name), None)
    if place is None:
        return found
    other = place + by
    if 0 <= other < len(found) and found[other].is_pinned == found[place].is_pinned:
        found[place], found[other] = found[other], found[place]
    return found


def listed(columns: Columns, names: Iterable[str]) -> Columns:
    """These and no others, in this order; pinned as they are in ``columns``."""
    pinned = {choice.name for choice in arrange(columns, ()) if choice.is_pinned}
    return Columns(tuple(Choice(name, is_pinned=name in pinned) for name in names), None)
