"""Columns of a grid: their notation in addresses, their arrangement, and saved layouts.

``!PartitionKey:120,!RowKey,-Photo,*,Timestamp``: an exclamation mark pins, a hyphen hides, a colon gives the width in
pixels, and the star stands for all columns without a name here; without a star they are left out.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from django.db.models import Q

from console.models import ColumnLayout, User
from storage.domain.entities.entity import KEY_PROPERTIES
from storage.models import Account, Table

TIMESTAMP: Final = "Timestamp"
WIDTHS: Final = range(40, 2001)  # pixels
_REST: Final = "*"
MOST_COLUMNS: Final = (
    300  # an entity has 252 properties; browsers take seconds for each step in a far wider grid
)
_ITEM = re.compile(r"([!-]?)([^,:!*\s-]{1,255})(?::([0-9]{1,4}))?")


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Column settings chosen by a user."""

    name: str
    width: int | None = None
    is_pinned: bool = False
    is_hidden: bool = False

    def __str__(self) -> str:
        mark = "-" if self.is_hidden else "!" if self.is_pinned else ""
        width = f":{self.width}" if self.width is not None and not self.is_hidden else ""
        return f"{mark}{self.name}{width}"


_PINNED: Final = [ColumnChoice(name, is_pinned=True) for name in KEY_PROPERTIES]


@dataclass(frozen=True, slots=True)
class Columns:
    """Chosen columns of a grid."""

    choices: tuple[ColumnChoice, ...] = ()
    rest: int | None = 0  # the index at which all other columns are inserted; None leaves them out

    def __str__(self) -> str:
        items = [str(choice) for choice in self.choices]
        if self.rest is not None:
            items.insert(self.rest, _REST)
        return ",".join(items)

    @property
    def only(self) -> tuple[str, ...] | None:
        """Return the names of the visible columns if all others are left out, otherwise None."""
        if self.rest is not None:
            return None
        return tuple(choice.name for choice in self.choices if not choice.is_hidden)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(choice.name for choice in self.choices)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(choice.name for choice in self.choices if choice.is_hidden)


DEFAULT: Final = Columns()


def parse_columns(text: str) -> Columns:
    """Parse the columns in an address, ignoring invalid ones."""
    choices: dict[str, ColumnChoice] = {}
    rest = None
    for item in text.split(",")[: MOST_COLUMNS + 1]:
        if item == _REST:
            rest = len(choices)
        elif (match := _ITEM.fullmatch(item)) is not None and match[2].isidentifier():
            choices.setdefault(match[2], _choice(match[1], match[2], match[3]))
    if not choices:
        return DEFAULT
    return Columns(tuple(choices.values()), rest)


def _choice(mark: str, name: str, width: str | None) -> ColumnChoice:
    # keys are never hidden: they identify the row
    is_hidden = mark == "-" and name not in KEY_PROPERTIES
    pixels = None if width is None else min(max(int(width), WIDTHS[0]), WIDTHS[-1])
    return ColumnChoice(name, None if is_hidden else pixels, mark == "!", is_hidden)


def arrange_columns(columns: Columns, seen: Iterable[str]) -> list[ColumnChoice]:
    """Return the visible columns in order, pinned ones first; ``seen`` are the properties of the entities."""
    named = {choice.name for choice in columns.choices}
    shown = [choice for choice in columns.choices if not choice.is_hidden]
    keys = [choice for choice in _PINNED if choice.name not in named]
    if columns.rest is not None:
        place = sum(not choice.is_hidden for choice in columns.choices[: columns.rest])
        shown[place:place] = [
            ColumnChoice(name) for name in dict.fromkeys((*seen, TIMESTAMP)) if name not in named
        ]
    return sorted([*keys, *shown], key=lambda choice: not choice.is_pinned)


def limit_columns(arranged: Sequence[ColumnChoice], chosen: Iterable[str]) -> list[ColumnChoice]:
    """Return the columns that a grid can show: keys, chosen ones and Timestamp, and the first of the others."""
    kept = {*KEY_PROPERTIES, *chosen, TIMESTAMP}
    others = [choice.name for choice in arranged if choice.name not in kept]
    gone = {*others[max(0, MOST_COLUMNS - (len(arranged) - len(others))) :]}
    return [choice for choice in arranged if choice.name not in gone]


def describe_columns(
    shown: Sequence[ColumnChoice], hidden: Iterable[str], *, loose: Collection[str] | None
) -> Columns:
    """Return the shortest notation that arrange_columns expands to these columns."""
    if loose is None:
        return Columns(tuple(shown), None)
    named = list(shown)
    while named and named[-1] == ColumnChoice(named[-1].name) and named[-1].name in loose:
        named.pop()
    if named[: len(_PINNED)] == _PINNED:
        named = named[len(_PINNED) :]
    gone = [ColumnChoice(name, is_hidden=True) for name in hidden if name not in KEY_PROPERTIES]
    return Columns((*named, *gone), len(named) + len(gone))


def move_column(shown: Sequence[ColumnChoice], name: str, by: int) -> list[ColumnChoice]:
    """Move a column by one place, within the pinned or within the other columns."""
    moved = list(shown)
    place = next((at for at, choice in enumerate(moved) if choice.name == name), None)
    if place is None:
        return moved
    other = place + by
    if 0 <= other < len(moved) and moved[other].is_pinned == moved[place].is_pinned:
        moved[place], moved[other] = moved[other], moved[place]
    return moved


def list_columns(columns: Columns, names: Iterable[str]) -> Columns:
    """Return exactly these columns in order, pinned as in ``columns``."""
    pinned = {choice.name for choice in arrange_columns(columns, ()) if choice.is_pinned}
    return Columns(tuple(ColumnChoice(name, is_pinned=name in pinned) for name in names), None)


# layouts that users save

LAST = ""  # the name of the layout with the columns that a user last saw in a table


def last_columns(user: User, table: Table) -> str:
    """Return the columns for an address without any: the user's last ones, or the closest layout."""
    layouts = _of(user, table.account)
    for layout in layouts:
        if layout.user_id is not None and layout.name == LAST and layout.tables == table.name:
            return layout_text(layout)
    named = fitting_layouts(layouts, table)
    return layout_text(named[0]) if named else ""


def layouts_for(user: User, table: Table) -> list[ColumnLayout]:
    """Return the named layouts for a table, closest first."""
    return fitting_layouts(_of(user, table.account), table)


def fitting_layouts(layouts: Sequence[ColumnLayout], table: Table) -> list[ColumnLayout]:
    fits = [
        layout
        for layout in layouts
        if layout.name != LAST and fnmatchcase(table.name.lower(), layout.tables.lower())
    ]
    # exact table names first, then longer patterns, then personal layouts before shared ones
    return sorted(fits, key=lambda it: ("*" in it.tables, -len(it.tables), it.user_id is None, it.name))


def remember_columns(user: User, table: Table, columns: str) -> None:
    save_layout(user, table.account, LAST, table.name, columns)


def forget_columns(user: User, table: Table) -> None:
    ColumnLayout.objects.filter(user=user, account=table.account, name=LAST, tables=table.name).delete()


def save_layout(user: User | None, account: Account, name: str, tables: str, columns: str) -> None:
    """Save a layout, replacing one of the same name and tables; a layout without ``user`` is shared."""
    ColumnLayout.objects.bulk_create(
        [ColumnLayout(user=user, account=account, name=name, tables=tables, columns=columns.split(","))],
        update_conflicts=True,
        unique_fields=("account", "user", "name", "tables"),
        update_fields=("columns", "updated_at"),
    )


def layout_text(layout: ColumnLayout) -> str:
    """Return the columns of a layout in address notation."""
    return ",".join(layout.columns)


def _of(user: User, account: Account) -> list[ColumnLayout]:
    return list(ColumnLayout.objects.filter(Q(user=user) | Q(user=None), account=account))
