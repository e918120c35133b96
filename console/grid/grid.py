"""Draws a page of entities as a grid."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import tzinfo
from html import escape
from typing import Final

from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.grid import cells, columns
from console.grid.cells import MIXED, NUMBERS, Cell
from console.grid.columns import TIMESTAMP, ColumnChoice, Columns
from console.grid.state import read_state
from console.grid.tokens import encode_key, key_query
from console.site.glyphs import mark
from storage.domain.entities.entity import KEY_PROPERTIES, StoredEntity, read_stored
from storage.domain.entities.previews import EntityPreview
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import write_etag
from storage.models import Table

_SYSTEM: Final = {"PartitionKey": Edm.STRING, "RowKey": Edm.STRING, TIMESTAMP: Edm.DATETIME}
_WIDTHS: Final = range(88, 361)  # pixels, of columns without a chosen width
_WIDEST_KEY: Final = 240  # pixels; keys stay in view and must leave room
_CHARACTER: Final = 7.8  # pixels, in the font of data
_PADDING: Final = 25


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # an EDM name, mix, or empty if no entity on the page has it
    width: int  # pixels
    is_sized: bool = False  # whether a user chose the width
    is_pinned: bool = False
    pin: int = 0  # its number among the pinned columns, from 1
    is_number: bool = False
    is_loose: bool = False  # in its default place
    is_new: bool = False  # whether the values of this page decided the width
    opening: str = ""  # the start of the tag of its cells

    @property
    def is_system(self) -> bool:
        return self.name in _SYSTEM


@dataclass(frozen=True, slots=True)
class GridRow:
    token: str
    etag: str
    index: int  # the header is row 1
    markup: SafeString  # of all its cells


@dataclass(frozen=True, slots=True)
class Grid:
    columns: Sequence[Column]
    rows: Sequence[GridRow]
    count: int  # of all rows including the header; -1 if unknown
    hidden: Sequence[str]
    has_rest: bool  # whether unnamed columns are visible
    select_width: int = 64

    @property
    def width(self) -> int:
        return self.select_width + sum(column.width for column in self.columns)


@dataclass(frozen=True, slots=True)
class GridOptions:
    """The table of a grid, and how its entities are displayed."""

    table: Table
    columns: Columns
    zone: tzinfo | None = None  # None: UTC
    select: Sequence[str] = ()  # the selected properties; empty: all
    sorted_by: str = ""
    names: Sequence[str] = ()  # the properties of the page in the order of the table
    widths: Mapping[str, int] = field(default_factory=dict)  # pixels, of columns that keep theirs

    @property
    def entity_path(self) -> str:
        return reverse("entities:show", args=(self.table.account.name, self.table.name))

    @property
    def select_label(self) -> str:
        return escape(_("Select"))

    @property
    def open_label(self) -> str:
        return escape(_("Open"))


def build_grid(setting: GridOptions, found: Sequence[EntityPreview], *, before: int, is_last: bool) -> Grid:
    """Draw a grid; by default: the keys, the properties in the order of the table, and the Timestamp."""
    types = _types(found)
    names = (*setting.names, *types, *setting.select)
    shown = _selected(columns.arrange_columns(setting.columns, names), setting.select)
    drawn = [_draw(glance, shown, types, setting.zone) for glance in found]
    made = _columns(setting, shown, types, drawn)
    rows = [
        _row(setting, glance, made, cells_, before + index)
        for index, (glance, cells_) in enumerate(zip(found, drawn, strict=True), 2)
    ]
    # with the header
    count = before + len(rows) + 1 if is_last else -1
    return Grid(made, rows, count, sorted(setting.columns.hidden), setting.columns.rest is not None)


def _selected(shown: Sequence[ColumnChoice], select: Sequence[str]) -> list[ColumnChoice]:
    return [
        choice for choice in shown if not select or choice.name in KEY_PROPERTIES or choice.name in select
    ]


def draw_row(table: Table, stored: StoredEntity, page: QueryDict) -> SafeString:
    """Draw one row again for the grid that a page shows.

    The fields of ``page``: ``next``, the address of the grid, ``column``, the names of its columns, and ``index``,
    the aria-rowindex of the row.
    """
    state = read_state(QueryDict(page.get("next", "").partition("?")[2]), table)
    setting = GridOptions(table, columns.list_columns(state.columns, page.getlist("column")), state.zone)
    entity = read_stored(stored)
    glance = EntityPreview(entity.key, stored.timestamp, entity.properties, {})
    index = page.get("index", "")
    number = int(index) if index.isdecimal() and len(index) < 19 else 2
    (row,) = build_grid(setting, [glance], before=number - 2, is_last=False).rows
    attributes = f'data-key="{row.token}" data-etag="{escape(row.etag)}" aria-rowindex="{row.index}"'
    return SafeString(f"<tr {attributes}>{row.markup}</tr>")


def _types(found: Iterable[EntityPreview]) -> Mapping[str, Set[Edm]]:
    types: defaultdict[str, set[Edm]] = defaultdict(set)
    for glance in found:
        for name, value in glance.properties.items():
            types[name].add(value.type)
    return types


def _draw(
    glance: EntityPreview,
    shown: Sequence[ColumnChoice],
    types: Mapping[str, Set[Edm]],
    zone: tzinfo | None,
) -> list[Cell]:
    none = cells.absent()
    found = []
    for choice in shown:
        value = glance.properties.get(choice.name)
        if value is not None:
            found.append(cells.draw(value, glance.sizes.get(choice.name), zone))
        elif choice.name in _SYSTEM:
            found.append(_draw_system(glance, choice.name, zone))
        else:
            found.append(none)
    return found


def _draw_system(glance: EntityPreview, name: str, zone: tzinfo | None) -> Cell:
    if name == TIMESTAMP:
        return cells.draw_time(glance.timestamp, zone, with_fraction=False)
    return cells.draw(EdmValue(Edm.STRING, glance.key[KEY_PROPERTIES.index(name)]))


def _columns(
    setting: GridOptions,
    shown: Sequence[ColumnChoice],
    types: Mapping[str, Set[Edm]],
    drawn: Sequence[Sequence[Cell]],
) -> list[Column]:
    named = {choice.name for choice in setting.columns.choices}
    places = _list_places([choice.name for choice in shown], types, setting.sorted_by)
    made = []
    for at, choice in enumerate(shown):
        of_name = types.get(choice.name, frozenset())
        is_number = bool(of_name) and of_name <= NUMBERS
        pin = at + 1 if choice.is_pinned else 0
        kept = choice.width or setting.widths.get(choice.name)
        column = Column(
            name=choice.name,
            type=_type(choice.name, of_name),
            width=kept or _fitting(choice.name, max((row[at].width for row in drawn), default=0)),
            is_sized=choice.width is not None,
            is_pinned=choice.is_pinned,
            pin=pin,
            is_number=is_number,
            is_loose=choice.name not in named,
            is_new=kept is None and (bool(of_name) or choice.name in _SYSTEM),
            opening=_opening(at + 2, choice.name, pin, places.get(choice.name, ""), is_number=is_number),
        )
        made.append(column)
    return made


def _type(name: str, types: Set[Edm]) -> str:
    if name in _SYSTEM:
        return _SYSTEM[name]
    if len(types) > 1:
        return MIXED
    return next(iter(types), "")


def _fitting(name: str, characters: int) -> int:
    """Wide enough for the name with its marks and menu, and for the longest value, within limits."""
    pixels = max(characters * _CHARACTER + _PADDING, len(name) * 7 + 70)
    most = _WIDEST_KEY if name in KEY_PROPERTIES else _WIDTHS[-1]
    return min(max(int(pixels), _WIDTHS[0]), most)


def _row(
    setting: GridOptions, glance: EntityPreview, made: Sequence[Column], drawn: Sequence[Cell], index: int
) -> GridRow:
    parts = [_handle(setting, glance)]
    for column, cell in zip(made, drawn, strict=True):
        value = glance.properties.get(column.name)
        parts.append(column.opening)
        if cell.state:
            parts.append(f' data-state="{cell.state}"')
        if value is None:
            parts.append(f">{cell.markup}</td>")
        elif column.type == MIXED:
            parts.append(f' data-type="{value.type}">{mark(value.type)}{cell.markup}</td>')
        else:
            parts.append(f">{cell.markup}</td>")
    # every stored text in it was escaped when its cell was drawn
    return GridRow(encode_key(glance.key), write_etag(glance.timestamp), index, SafeString("".join(parts)))


def _list_places(names: Sequence[str], types: Mapping[str, Set[Edm]], sorted_by: str) -> Mapping[str, str]:
    """The classes of the columns that a narrow screen shows as a list: the keys, three properties and a date.

    The property that sorts the entities is one of them.
    """
    places = dict(zip(KEY_PROPERTIES, ("as-partition", "as-key"), strict=True))
    dates = [name for name in names if Edm.DATETIME in types.get(name, ()) or name == TIMESTAMP]
    date = sorted_by if sorted_by in dates else next(iter(dates), TIMESTAMP)
    others = [name for name in names if name not in _SYSTEM and name != date]
    if sorted_by in others[2:]:
        others[2] = sorted_by
    return places | {date: "as-date"} | dict(zip(others, ("as-first", "as-second", "as-third"), strict=False))


def _opening(at: int, name: str, pin: int, place: str, *, is_number: bool) -> str:
    classes = [f"pinned p{pin}"] if pin else []
    if place:
        classes.append(place)
    if is_number:
        classes.append("number")
    markup = f'<td aria-colindex="{at}"'
    if classes:
        markup += f' class="{" ".join(classes)}"'
    kind = "system" if name in _SYSTEM else "property"
    return f'{markup} data-{kind}="{escape(name)}"'


def _handle(setting: GridOptions, glance: EntityPreview) -> str:
    """The first cell, which selects and opens the row."""
    partition_key, row_key = glance.key
    href = f"{setting.entity_path}?{key_query(glance.key)}"
    name = escape(f"{partition_key}, {row_key}")
    return (
        f'<td class="handle" aria-colindex="1"><input type="checkbox" name="key" form="selection"'
        f' value="{encode_key(glance.key)}" aria-label="{setting.select_label} {name}">'
        f'<a class="open" data-drawer href="{escape(href)}" title="{setting.open_label}"'
        f' aria-label="{setting.open_label} {name}"></a></td>'
    )
