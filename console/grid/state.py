"""State of a grid as in its address: query, start of the page, and display."""

from dataclasses import dataclass, field, replace
from datetime import tzinfo
from enum import StrEnum
from typing import Final, Self
from urllib.parse import quote, urlencode

from django.http import QueryDict
from django.utils import timezone

from console.grid import columns, saved_urls, tokens
from console.grid.columns import Columns
from console.grid.saved_urls import LONGEST
from console.grid.tokens import Cursor
from console.models import SavedUrl
from console.site.access import AS_OF
from console.site.addresses import path_of
from storage.domain.entities.moments import Moment, read_moment
from storage.domain.filters.query import EntityQuery, Position, Sort, SortedPosition
from storage.editing.filters.diagnosis import parse_filter
from storage.models import Table

SIZES: Final = (25, 50, 100, 200)
DEFAULT_SIZE: Final = 50
PAUSES: Final = (5, 30)  # seconds
ROWS: Final = "rows"
ALL: Final = "*"  # properties
MOST_SELECTED: Final = 252  # properties, as many as an entity may have
LONGEST_COLUMNS: Final = 6000  # characters of an address


class View(StrEnum):
    GRID = "grid"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class GridState:
    filter: str = ""
    size: int = DEFAULT_SIZE
    starts: tuple[str, ...] = ()  # the starts of all pages so far except the first
    is_cut: bool = False  # whether the starts of earlier pages were dropped because the address was full
    columns: Columns = field(default_factory=Columns)
    has_columns: bool = False  # whether the address has columns
    view: View = View.GRID
    is_utc: bool = False
    pause: int = 0  # seconds between refreshes, 0: never
    is_counted: bool = False
    open: str = ""  # the entity in the drawer
    saved: str = ""  # the slug of the applied saved query
    values: tuple[tuple[str, str], ...] = ()  # values of the parameters of the saved query
    saved_url: SavedUrl | None = None  # for an address that would be too long
    select: tuple[str, ...] = ()  # the properties to read; empty: all, or those with a column
    sort: Sort | None = None  # by a property; None: by the keys
    by: str = ""  # rows: the filter is shown in the builder
    has_facets: bool = False
    as_of: Moment | None = None  # None at present

    @property
    def cursor(self) -> Cursor | None:
        return tokens.decode_cursor(self.starts[-1]) if self.starts else None

    @property
    def rows_before(self) -> int:
        """Return the number of rows on previous pages."""
        return self.cursor.rows if self.cursor else 0

    @property
    def zone(self) -> tzinfo | None:
        """Return the time zone, None for UTC."""
        return None if self.is_utc else timezone.get_current_timezone()

    @property
    def zone_name(self) -> str:
        if self.zone is None:
            return "UTC"
        name = timezone.localtime(timezone=self.zone).tzname() or str(self.zone)
        return f"UTC{name}" if name[0] in "+-" else name

    @property
    def wanted(self) -> EntityQuery:
        """Return the query of the state; raises the error of an invalid filter."""
        return EntityQuery(
            filter=parse_filter(self.filter, timezone.now()) if self.filter else None,
            select=self.select or self.columns.only,
            top=self.size,
            start=self._start if isinstance(self._start, Position) else None,
        )

    @property
    def _start(self) -> Position | SortedPosition | None:
        return self.cursor.position if self.cursor else None

    @property
    def sorted_start(self) -> SortedPosition | None:
        return self._start if isinstance(self._start, SortedPosition) else None

    @property
    def sort_text(self) -> str:
        return f"{'-' if self.sort.descending else ''}{self.sort.property}" if self.sort else ""

    @property
    def is_part(self) -> bool:
        """Return whether the page excludes some entities, by position or filter."""
        return self.as_of is None and bool(self.filter or self.starts)

    @property
    def has_earlier(self) -> bool:
        """Return whether the address has the previous page's start."""
        return len(self.starts) > (1 if self.is_cut else 0)

    def at_start(self) -> Self:
        return replace(self, starts=(), is_cut=False)

    def before(self) -> Self:
        return replace(self, starts=self.starts[:-1])

    def after(self, following: Cursor) -> Self:
        kept = tokens.shorten_cursors([*self._mark, *self.starts, tokens.encode_cursor(following)])
        is_cut = kept[0] == tokens.EARLIER_CUT
        return replace(self, starts=tuple(kept[1:] if is_cut else kept), is_cut=is_cut)

    @property
    def _mark(self) -> tuple[str, ...]:
        return (tokens.EARLIER_CUT,) if self.is_cut else ()

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the fields of the address without defaults, page starts last."""
        named = [
            ("f", self.filter),
            ("s", ",".join(self.select)),
            ("sort", self.sort_text),
            ("top", "" if self.size == DEFAULT_SIZE else str(self.size)),
            ("by", self.by),
            *self.manner,
            ("exact", "1" if self.is_counted else ""),
            ("open", self.open),
            *(("after", start) for start in (*self._mark, *self.starts)),
        ]
        return [(name, value) for name, value in named if value]

    @property
    def columns_text(self) -> str:
        """Return the columns as text for the address; empty if it has none, or if they are too long for it."""
        text = str(self.columns) or "*" if self.has_columns else ""
        return text if len(text) <= LONGEST_COLUMNS // 9 or len(quote(text)) <= LONGEST_COLUMNS else ""

    @property
    def manner(self) -> list[tuple[str, str]]:
        """Return the display settings, which survive a change of query or page size."""
        named = [
            ("cols", self.columns_text),
            ("view", "" if self.view is View.GRID else self.view),
            ("tz", "utc" if self.is_utc else ""),
            ("refresh", str(self.pause or "")),
            ("facets", "1" if self.has_facets else ""),
            (AS_OF, str(self.as_of or "")),
            ("q", self.saved),
            *(("p", f"{name}:{value}") for name, value in self.values),
        ]
        return [(name, value) for name, value in named if value]

    @property
    def address_fields(self) -> list[tuple[str, str]]:
        return (
            self.fields if self.saved_url is None else saved_urls.fields_beside(self.saved_url, self.fields)
        )

    def query(self) -> str:
        return urlencode(self.address_fields)

    def address(self, table: Table) -> str:
        path, query = path_of("entities:index", table.account.name, table.name), self.query()
        return f"{path}?{query}" if query else path

    def shortened(self, table: Table) -> Self:
        """Return the same state, with a saved URL if its address is too long."""
        if len(self.address(table)) <= LONGEST:
            return self
        # without the start of the page, so that all pages of a query share one key, unless even that is too long
        lasting = replace(self.at_start(), open="", is_counted=False, saved_url=None)
        short = replace(self, saved_url=saved_urls.keep(table, lasting.query()))
        if len(short.address(table)) <= LONGEST:
            return short
        return replace(self, saved_url=saved_urls.keep(table, replace(self, saved_url=None).query()))


def read_state(query: QueryDict, table: Table | None = None) -> GridState:
    """Parse the state of an address, ignoring invalid fields; a saved URL must belong to the table."""
    key = query.get(saved_urls.NAME, "")
    saved_url = saved_urls.find(table, key) if key and table is not None else None
    if saved_url is not None:
        query = saved_urls.merge_query(saved_url, query)
    sort = _sort(query.get("sort", ""))
    starts = query.getlist("after")
    view = query.get("view", "")
    return GridState(
        filter=query.get("f", "").strip(),
        size=_one_of(SIZES, query.get("top", ""), DEFAULT_SIZE),
        starts=tuple(token for token in starts if _fits(tokens.decode_cursor(token), sort)),
        is_cut=starts[:1] == [tokens.EARLIER_CUT],
        columns=columns.parse_columns(query.get("cols", "")),
        has_columns="cols" in query,
        view=View(view) if view in list(View) else View.GRID,
        is_utc=query.get("tz") == "utc",
        pause=_one_of(PAUSES, query.get("refresh", ""), 0),
        is_counted=bool(query.get("exact")),
        open=query.get("open", ""),
        saved=query.get("q", ""),
        values=tuple((name, value) for name, _, value in _parameters(query)),
        saved_url=saved_url,
        select=_select(query),
        sort=sort,
        by=ROWS if query.get("by") == ROWS else "",
        has_facets="facets" in query,
        as_of=read_moment(query.get(AS_OF, "")),
    )


def _sort(text: str) -> Sort | None:
    name = text.removeprefix("-")
    return Sort(name, name != text) if name.isidentifier() else None


def _fits(found: Cursor | None, sort: Sort | None) -> bool:
    """Return whether a cursor belongs to the sort order."""
    return found is not None and isinstance(found.position, SortedPosition) is (sort is not None)


def _select(query: QueryDict) -> tuple[str, ...]:
    """Parse selected names, comma-separated or in repeated fields."""
    names = [] if ALL in query.getlist("s") else ",".join(query.getlist("s")).split(",")
    return tuple(dict.fromkeys(name for name in map(str.strip, names) if name.isidentifier()))[:MOST_SELECTED]


def _parameters(query: QueryDict) -> list[tuple[str, str, str]]:
    return [text.partition(":") for text in query.getlist("p") if text.partition(":")[0]]


def _one_of(offered: tuple[int, ...], text: str, default: int) -> int:
    return next((number for number in offered if str(number) == text), default)
