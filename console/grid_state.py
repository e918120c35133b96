"""What the address of a grid says: the query, where its page starts, and how it is shown."""

from dataclasses import dataclass, field, replace
from datetime import tzinfo
from enum import StrEnum
from typing import Final, Self
from urllib.parse import quote

from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from console import columns, cursor
from console.columns import Columns
from console.cursor import Cursor
from storage.domain.filters import parse
from storage.domain.query import EntityQuery
from storage.models import Account, Table

SIZES: Final = (25, 50, 100, 200)
DEFAULT_SIZE: Final = 50
PAUSES: Final = (5, 30)  # seconds
LONGEST_COLUMNS: Final = 6000  # characters of an address


class View(StrEnum):
    GRID = "grid"
    JSON = "json"
    FORM = "form"  # one entity at a time


@dataclass(frozen=True, slots=True)
class State:
    filter: str = ""
    size: int = DEFAULT_SIZE
    starts: tuple[str, ...] = ()  # of each page so far but the first
    is_cut: bool = False  # whether starts of earlier pages no longer fit into the address
    columns: Columns = field(default_factory=Columns)
    has_columns: bool = False  # whether the address says so
    view: View = View.GRID
    is_utc: bool = False
    pause: int = 0  # seconds between looking anew, 0: never
    is_counted: bool = False
    open: str = ""  # the entity in the drawer

    @property
    def cursor(self) -> Cursor | None:
        return cursor.read(self.starts[-1]) if self.starts else None

    @property
    def zone(self) -> tzinfo | None:
        """None: UTC."""
        return None if self.is_utc else timezone.get_current_timezone()

    @property
    def top(self) -> int:
        return 1 if self.view is View.FORM else self.size

    @property
    def wanted(self) -> EntityQuery:
        """Raises the error of a filter that cannot be read."""
        return EntityQuery(
            filter=parse(self.filter) if self.filter else None,
            select=self.columns.only,
            top=self.top,
            start=self.cursor.position if self.cursor else None,
        )

    @property
    def has_earlier(self) -> bool:
        """Whether the address knows where the page before starts."""
        return len(self.starts) > (1 if self.is_cut else 0)

    def at_start(self) -> Self:
        return replace(self, starts=(), is_cut=False)

    def before(self) -> Self:
        return replace(self, starts=self.starts[:-1])

    def after(self, following: Cursor) -> Self:
        kept = cursor.shortened([*self._mark, *self.starts, cursor.write(following)])
        is_cut = kept[0] == cursor.CUT
        return replace(self, starts=tuple(kept[1:] if is_cut else kept), is_cut=is_cut)

    @property
    def _mark(self) -> tuple[str, ...]:
        return (cursor.CUT,) if self.is_cut else ()

    @property
    def fields(self) -> list[tuple[str, str]]:
        """What is to be said in an address, but for what goes without saying; where a page starts comes last."""
        named = [
            ("f", self.filter),
            ("top", "" if self.size == DEFAULT_SIZE else str(self.size)),
            *self.manner,
            ("exact", "1" if self.is_counted else ""),
            ("open", self.open),
            *(("after", start) for start in (*self._mark, *self.starts)),
        ]
        return [(name, value) for name, value in named if value]

    @property
    def columns_text(self) -> str:
        """Nothing where nobody said so, or where it is too long for an address: then those of last time are shown."""
        text = str(self.columns) or "*" if self.has_columns else ""
        return text if len(text) <= LONGEST_COLUMNS // 9 or len(quote(text)) <= LONGEST_COLUMNS else ""

    @property
    def manner(self) -> list[tuple[str, str]]:
        """How it is shown: what another query, and the size of a page, leave as it is."""
        named = [
            ("cols", self.columns_text),
            ("view", "" if self.view is View.GRID else self.view),
            ("tz", "utc" if self.is_utc else ""),
            ("refresh", str(self.pause or "")),
        ]
        return [(name, value) for name, value in named if value]

    def query(self) -> str:
        found = QueryDict(mutable=True)
        for name, value in self.fields:
            found.appendlist(name, value)
        return found.urlencode()

    def address(self, account: Account, table: Table) -> str:
        path = reverse("entities", args=(account.name, table.name))
        query = self.query()
        return f"{path}?{query}" if query else path


def read(query: QueryDict) -> State:
    """What is not understood is as if it were not there."""
    starts = query.getlist("after")
    view = query.get("view", "")
    return State(
        filter=query.get("f", "").strip(),
        size=_one_of(SIZES, query.get("top", ""), DEFAULT_SIZE),
        starts=tuple(token for token in starts if cursor.read(token)),
        is_cut=starts[:1] == [cursor.CUT],
        columns=columns.read(query.get("cols", "")),
        has_columns="cols" in query,
        view=View(view) if view in list(View) else View.GRID,
        is_utc=query.get("tz") == "utc",
        pause=_one_of(PAUSES, query.get("refresh", ""), 0),
        is_counted="exact" in query,
        open=query.get("open", ""),
    )


def _one_of(offered: tuple[int, ...], text: str, default: int) -> int:
    return next((number for number in offered if str(number) == text), default)
