"""Rendering of a page of entities as a grid."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Self

from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString

from console.grid import cells, columns, markup, widths
from console.grid.cells import MIXED, NUMBERS, Cell
from console.grid.columns import TIMESTAMP, ColumnChoice
from console.grid.markup import SYSTEM, Column, EntityMark
from console.grid.state import GridState, read_state
from console.grid.time_travel import UNCHANGED, ChangesSince
from storage.domain.entities.entity import KEY_PROPERTIES, EntityKey, StoredEntity, read_stored
from storage.domain.entities.previews import EntityPreview
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.numbers import read_number
from storage.models import Table


@dataclass(frozen=True, slots=True)
class Grid:
    columns: Sequence[Column]
    widths: SafeString  # the markup of the columns, with the chosen widths
    headings: SafeString
    rows: Sequence[SafeString]
    count: int  # the number of all rows including the header; -1 if unknown
    hidden: Sequence[str]
    has_rest: bool  # whether unnamed columns are visible
    all_columns: int  # the number of columns with those beyond the limit of a grid
    select_width: int = 52

    @property
    def width(self) -> int:
        """Return the width of all columns, in pixels."""
        return self.select_width + sum(column.width for column in self.columns)

    @property
    def is_cut(self) -> bool:
        """Return whether there are more columns than a grid can show."""
        return self.all_columns > len(self.columns)

    @property
    def first_columns(self) -> int:
        """Return the number of columns without a script, if there are more."""
        return markup.count_first(self.columns, self.rows)


@dataclass(frozen=True, slots=True)
class GridOptions:
    """The table of a grid, and how its entities are displayed."""

    table: Table
    state: GridState
    names: Sequence[str] = ()  # the properties of the page in the order of the table
    usual: Mapping[str, Edm] = field(default_factory=dict)  # the types of those without a value on the page
    since: ChangesSince = UNCHANGED  # differences between the past and now
    marks: Mapping[EntityKey, EntityMark] = field(default_factory=dict)


def build_grid(
    setting: GridOptions, previews: Sequence[EntityPreview], *, before: int, is_last: bool
) -> Grid:
    """Render a grid; by default keys, properties in table order, and Timestamp."""
    state, types = setting.state, _types(previews)
    arranged = _arrange(setting, types)
    chosen = [*state.columns.names, *([state.sort.property] if state.sort else ())]
    shown = columns.limit_columns(arranged, chosen)
    made, rows = _rows(setting, previews, shown, types, first=before + 2)
    return Grid(
        made,
        markup.draw_widths(made),
        markup.draw_headings(made, state.sort, state.zone_name),
        rows,
        before + len(previews) + 1 if is_last else -1,
        sorted(state.columns.hidden),
        state.columns.rest is not None,
        len(arranged),
    )


def _arrange(setting: GridOptions, names: Iterable[str]) -> list[ColumnChoice]:
    """Return all visible columns; ``names`` are the properties of the rows."""
    state = setting.state
    seen = (*setting.names, *names, *state.select)
    return _selected(columns.arrange_columns(state.columns, seen), state.select)


def _rows(
    setting: GridOptions,
    previews: Sequence[EntityPreview],
    shown: Sequence[ColumnChoice],
    types: Mapping[str, Set[Edm]],
    *,
    first: int,
) -> tuple[list[Column], Sequence[SafeString]]:
    """Render the rows; return them with their columns. ``first`` is the first aria-rowindex."""
    state = setting.state
    drawn = [_draw(glance, shown, state.zone) for glance in previews]
    made = _columns(setting, shown, types, list(zip(*drawn, strict=True)))
    path = reverse("entities:show", args=(setting.table.account.name, setting.table.name))
    rows = markup.draw_rows(
        path,
        made,
        previews,
        drawn,
        first=first,
        as_of=state.as_of,
        since=setting.since,
        marked=setting.marks,
    )
    return made, rows


def _selected(shown: Sequence[ColumnChoice], select: Sequence[str]) -> list[ColumnChoice]:
    return [
        choice for choice in shown if not select or choice.name in KEY_PROPERTIES or choice.name in select
    ]


@dataclass(frozen=True, slots=True)
class ShownGrid:
    """Grid that the page shows, as identified by its forms."""

    options: GridOptions
    index: (
        int | None
    )  # the aria-rowindex of the form's row; None on a page without a grid, where no row is drawn

    @classmethod
    def read(cls, table: Table, address: str, form: QueryDict) -> Self:
        """Build the grid from its address and the form fields ``column``, its column names, and ``index``."""
        state = read_state(QueryDict(address.partition("?")[2]), table)
        shown = columns.list_columns(state.columns, form.getlist("column"))
        options = GridOptions(table, GridState(columns=shown, is_utc=state.is_utc))
        return cls(options, read_number(form.get("index", "")))

    @property
    def is_utc(self) -> bool:
        return self.options.state.is_utc

    def draw_row(self, stored: StoredEntity) -> SafeString:
        """Render the row with the entity as stored now."""
        if self.index is None:
            return SafeString("")
        entity = read_stored(stored)
        glance = EntityPreview(entity.key, stored.timestamp, entity.properties, {})
        shown = columns.arrange_columns(self.options.state.columns, ())
        _, (row,) = _rows(self.options, [glance], shown, _types([glance]), first=self.index)
        return row


def _types(previews: Iterable[EntityPreview]) -> Mapping[str, Set[Edm]]:
    types: defaultdict[str, set[Edm]] = defaultdict(set)
    for glance in previews:
        for name, value in glance.properties.items():
            types[name].add(value.type)
    return types


def _draw(glance: EntityPreview, shown: Sequence[ColumnChoice], zone: tzinfo | None) -> list[Cell]:
    none = cells.absent()
    _key, _timestamp, properties, sizes = glance
    drawn = []
    for choice in shown:
        value = properties.get(choice.name)
        if value is not None:
            drawn.append(cells.draw(value, sizes.get(choice.name), zone))
        elif choice.name in SYSTEM:
            drawn.append(_draw_system(glance, choice.name, zone))
        else:
            drawn.append(none)
    return drawn


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
    """Build the columns; ``drawn`` are the cells of each."""
    named = {choice.name for choice in setting.state.columns.choices}
    sorted_by = setting.state.sort.property if setting.state.sort else ""
    places = _list_places([choice.name for choice in shown], types, sorted_by)
    made = []
    for at, choice in enumerate(shown):
        of_name = types.get(choice.name, frozenset())
        shown_types = of_name or {setting.usual[name] for name in (choice.name,) if name in setting.usual}
        type_ = _type(choice.name, shown_types)
        fitting, full = widths.fit_content(drawn[at] if drawn else (), type_)
        zone = setting.state.zone_name if markup.shows_zone(type_) else ""
        heading = widths.fit_heading(choice.name, type_, zone, is_sorted=choice.name == sorted_by)
        column = Column(
            name=choice.name,
            index=at + 2,
            type=type_,
            width=choice.width or max(fitting, heading),
            is_chosen=bool(choice.width),
            full_width=full,
            is_pinned=choice.is_pinned,
            place=places.get(choice.name, ""),
            is_number=bool(shown_types) and shown_types <= NUMBERS,
            is_loose=choice.name not in named,
        )
        made.append(column)
    return made


def _type(name: str, types: Set[Edm]) -> str:
    if name in SYSTEM:
        return SYSTEM[name]
    if len(types) > 1:
        return MIXED
    return next(iter(types), "")


def _list_places(names: Sequence[str], types: Mapping[str, Set[Edm]], sorted_by: str) -> Mapping[str, str]:
    """Return CSS classes for the columns that narrow screens show as a list: the keys, three properties and a date.

    The sorting property is among them.
    """
    places = dict(zip(KEY_PROPERTIES, ("as-partition", "as-key"), strict=True))
    dates = [name for name in names if Edm.DATETIME in types.get(name, ()) or name == TIMESTAMP]
    date = sorted_by if sorted_by in dates else next(iter(dates), TIMESTAMP)
    others = [name for name in names if name not in SYSTEM and name != date]
    others.sort(key=lambda name: name not in types)  # those without a value last
    if sorted_by in others[2:]:
        others[2] = sorted_by
    return places | {date: "as-date"} | dict(zip(others, ("as-first", "as-second", "as-third"), strict=False))
