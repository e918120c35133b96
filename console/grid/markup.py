"""Markup of a grid's headings and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# faster than Django's escape, which also handles lazy translations
from html import escape
from itertools import accumulate
from types import MappingProxyType
from typing import Final

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.grid.cells import MIXED, Cell
from console.grid.columns import TIMESTAMP
from console.grid.time_travel import UNCHANGED, ChangesSince
from console.grid.tokens import encode_key, key_query
from console.site.access import AS_OF
from console.site.glyphs import GLYPHS, mark
from console.site.tags import icon
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.entities.previews import EntityPreview
from storage.domain.filters.query import Sort
from storage.domain.values.edm import Edm
from storage.domain.values.etag import write_etag

SYSTEM: Final = {"PartitionKey": Edm.STRING, "RowKey": Edm.STRING, TIMESTAMP: Edm.DATETIME}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    index: int  # the handle of the rows is column 1
    type: str  # an EDM name, mix, or empty if no entity on the page has it
    width: int = 0  # pixels
    is_chosen: bool = False  # its width, by a user
    full_width: int = 0  # without cutting any value
    is_pinned: bool = False
    place: str = ""  # its class in the list of a narrow screen
    is_number: bool = False
    is_loose: bool = False  # in its default place

    def classes(self, place: str = "") -> str:
        """Return the class attribute of a column's cells; ``place`` is an extra class."""
        found = ["pinned" if self.is_pinned else "", place, "number" if self.is_number else ""]
        text = " ".join(filter(None, found))
        return f' class="{text}"' if text else ""


def draw_widths(columns: Sequence[Column]) -> SafeString:
    return SafeString("".join(f'<col width="{column.width}">' for column in columns))


def draw_headings(columns: Sequence[Column], sort: Sort | None, zone_name: str) -> SafeString:
    return SafeString("\n".join(_heading(column, sort, zone_name) for column in columns))


def _heading(column: Column, sort: Sort | None, zone_name: str) -> str:
    name = escape(column.name)
    markup = (
        f'<th scope="col" aria-colindex="{column.index}" data-property="{name}" data-type="{column.type}"'
    )
    if column.type:
        markup += f' aria-label="{name}, {escape(str(GLYPHS[column.type].name))}"'
    if column.name in SYSTEM:
        markup += f' data-system="{name}"'
    if column.is_chosen:
        markup += f' data-width="{column.width}"'
    elif column.full_width > column.width:
        markup += f' data-full-width="{column.full_width}"'
    markup += column.classes()
    if column.is_loose:
        markup += " data-loose"
    arrow = ""
    if sort is not None and sort.property == column.name:
        markup += f' aria-sort="{"descending" if sort.descending else "ascending"}"'
        arrow = f" {icon('arrow-down' if sort.descending else 'arrow-up')}"
    type_mark = mark(column.type) if column.type else ""
    zone = f" <small>{escape(zone_name)}</small>" if shows_zone(column.type) else ""
    return f'{markup}>{type_mark}<span class="name">{name}</span>{zone}{arrow}</th>'


def shows_zone(type_: str) -> bool:
    return type_ == Edm.DATETIME


@dataclass(frozen=True, slots=True)
class EntityMark:
    """Number beside an entity in a grid, with its description."""

    number: int
    text: str


def draw_rows(
    path: str,
    columns: Sequence[Column],
    previews: Sequence[EntityPreview],
    drawn: Sequence[Sequence[Cell]],
    *,
    first: int,
    as_of: Moment | None = None,
    since: ChangesSince = UNCHANGED,
    marked: Mapping[EntityKey, EntityMark] = MappingProxyType({}),
) -> list[SafeString]:
    """Render rows; ``path`` is the entity address without key, ``first`` the first aria-rowindex.

    The cells of a wide grid beyond its first columns are text, which a script makes cells when the page is shown.
    The script takes names, classes and positions from the headings.
    """
    later = count_first(columns, previews)
    openings = [_opening(column) for column in columns]
    if later:
        openings[later:] = (f'<td class="{it.place}"' if it.place else "<td" for it in columns[later:])
    mixed = {at: column.name for at, column in enumerate(columns) if column.type == MIXED}
    handle = _Handle(
        path, escape(_("Select")), escape(_("Open")), "" if as_of is None else f"&{AS_OF}={as_of}"
    )
    rows = []
    for index, (glance, cells) in enumerate(zip(previews, drawn, strict=True), first):
        marks = [""] * len(columns)
        for at, name in mixed.items():
            if (value := glance.properties.get(name)) is not None:
                marks[at] = f' data-type="{value.type}">{mark(value.type)}'
        starts = openings
        if (now := since.values.get(glance.key)) is not None:
            starts = [
                f"{opening}{_now(now[column.name])}" if column.name in now else opening
                for opening, column in zip(openings, columns, strict=True)
            ]
        parts = [
            f"{opening}{_STATES[state]}{marked or '>'}{markup}</td>"
            for opening, (markup, state), marked in zip(starts, cells, marks, strict=True)
        ]
        if later:
            parts = [*parts[:later], _later(parts[later:])]
        etag = escape(write_etag(glance.timestamp))
        token = encode_key(glance.key)
        gone = f' data-gone title="{escape(_("Deleted since"))}"' if glance.key in since.deleted else ""
        row = (
            f'<tr data-key="{token}" data-etag="{etag}" aria-rowindex="{index}"{gone}>'
            f"{handle.draw(glance.key, token, marked.get(glance.key))}"
        )
        # every stored text in it was escaped when its cell was drawn
        rows.append(SafeString(f"{row}{''.join(parts)}</tr>"))
    return rows


def _now(text: str) -> str:
    """Return the attributes of a cell whose current value differs."""
    return f' data-now title="{escape(_("Now: %(value)s") % {"value": text})}"'


_FEW: Final = 48  # columns that are all drawn at once
_FIRST: Final = 2560  # pixels of columns, more than most screens show


def count_first(columns: Sequence[Column], rows: Sequence[object]) -> int:
    """Return the number of columns whose cells are drawn at once in a wide grid; 0 if all are."""
    if len(columns) <= _FEW or len(rows) < 2:
        return 0
    return sum(end <= _FIRST for end in accumulate(column.width for column in columns))


def _later(cells: Sequence[str]) -> str:
    return f'<script type="text/html">{"".join(cells)}</script>'


_STATES: Final = {
    "": "", **{state: f' data-state="{state}"' for state in ("absent", "empty", "whitespace", "cut")}
}  # fmt: skip


def _opening(column: Column) -> str:
    """Return the opening tag of a column's cells."""
    kind = "system" if column.name in SYSTEM else "property"
    return f'<td aria-colindex="{column.index}"{column.classes(column.place)} data-{kind}="{escape(column.name)}"'


@dataclass(frozen=True, slots=True)
class _Handle:
    """First cell of a row, which selects and opens it."""

    path: str
    select_label: str
    open_label: str
    more: str = ""  # fields of the address

    def draw(self, key: EntityKey, token: str, shown: EntityMark | None = None) -> str:
        href = f"{self.path}?{key_query(key)}{self.more}"
        name = escape(f"{key.partition_key}, {key.row_key}")
        noted = mark = ""
        if shown is not None:
            noted, mark = escape(f" · {shown.text}"), f' data-mark="{shown.number}"'
        return (
            f'<td class="handle" aria-colindex="1"><input type="checkbox" name="key" form="selection"'
            f' value="{token}" aria-label="{self.select_label} {name}">'
            f'<a class="open" data-drawer href="{escape(href)}" title="{self.open_label}{noted}"{mark}'
            f' aria-label="{self.open_label} {name}{noted}"></a></td>'
        )
