"""Page of a table's entities, as a grid, as JSON or one by one, with links and statistics."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple, assert_never

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from console.entities.cell_changes import is_staging
from console.entities.entity_page import sample
from console.grid import cells, documents
from console.grid.cells import Cell
from console.grid.grid import Grid, GridOptions, build_grid
from console.grid.property_order import order_properties
from console.grid.state import PAUSES, SIZES, GridState, View
from console.grid.time_travel import UNCHANGED, ChangesSince, compare_with_now, field_text
from console.grid.tokens import Cursor
from console.queries.builder import draw_builder
from console.queries.frame import TableFrame
from console.queries.reading import Reading, read_filter
from console.queries.saved import get_applied
from console.queries.values import example_filter, list_cell_filters
from console.site.access import AS_OF, account_context, role_of, user_of
from console.site.layout import allowed
from console.site.refusals import describe_refusal
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import OperationTimedOut, ServerBusy, StorageError, TableNotFound
from storage.domain.filters.query import EntityQuery, Page, Position, SortedPage, SortedPosition
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.ticks import to_datetime
from storage.entities import entities
from storage.entities.entities import Total
from storage.history import feed, past
from storage.history.feed import Feed, NoHistory
from storage.history.past import Past
from storage.models import Table
from storage.tables.table_list import Overview, describe

SNIPPET: Final = """\
import os
from azure.data.tables import TableClient

table = TableClient.from_connection_string(os.environ["TABLES_CONNECTION_STRING"], "%s")
table.create_entity({"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace"})
"""


class Answer(NamedTuple):
    """Result of a query: a page of entities, by key or sorted, or the error."""

    entities: Sequence[EntityPreview] = ()
    next: Position | SortedPosition | None = None
    past: Past | None = None  # None for the present
    error: str = ""
    milliseconds: int = 0
    live_token: str = (
        ""  # where the changes begin that the page does not show yet; empty if none are recorded
    )


def read_answer(table: Table, state: GridState) -> Answer:
    is_live = state.view is View.GRID and state.as_of is None
    token = _live_token(table) if is_live else ""  # made before the page is read, so that no change is missed
    began = time.perf_counter()
    then, error = find_past(table, state)
    if error:
        return Answer(error=error)
    try:
        page, following = _read_page(table, state, then)
        previews = [_selected(glance, state.select) for glance in page]
    except StorageError as refused:
        return Answer(past=then, error=describe_refusal(refused))
    milliseconds = (time.perf_counter() - began) * 1000
    return Answer(previews, following, then, "", max(1, round(milliseconds)), token)


def find_past(table: Table, state: GridState) -> tuple[Past | None, str]:
    """Return the past that a grid shows, None at present, and an error message."""
    if state.as_of is None:
        return None, ""
    try:
        return past.find(table, state.as_of), ""
    except TableNotFound:
        return None, _("The table was created later.")
    except StorageError as error:
        return None, describe_refusal(error)


def count_exactly(table: Table, state: GridState, then: Past | None) -> Total:
    """Count the matching entities; the number is None on timeout."""
    try:
        return Total(entities.count(table, EntityQuery(filter=state.wanted.filter), then), is_exact=True)
    except (OperationTimedOut, StorageError):
        return Total(None)


def _live_token(table: Table) -> str:
    try:
        return feed.present_token(Feed(table.account_id, (table.pk,)))
    except (NoHistory, ServerBusy):
        return ""


def _read_page(table: Table, state: GridState, then: Past | None) -> Page[EntityPreview] | SortedPage:
    if state.sort is None:
        return entities.preview_page(table, state.wanted, then)
    return entities.sorted_preview_page(table, state.wanted, state.sort, state.sorted_start, then)


def _selected(glance: EntityPreview, select: Sequence[str]) -> EntityPreview:
    """Return the preview without unselected properties."""
    if not select:
        return glance
    kept = {name: value for name, value in glance.properties.items() if name in select}
    return glance._replace(properties=kept)


@dataclass(frozen=True)
class GridPage:
    """Page of entities; its parts are computed lazily."""

    request: HttpRequest
    table: Table
    state: GridState
    frame: TableFrame | None  # the parts around a whole page; None for the part that htmx swaps

    @cached_property
    def answer(self) -> Answer:
        return read_answer(self.table, self.state)

    @cached_property
    def context(self) -> dict[str, Any]:
        """Return the context for the templates."""
        answer = self.answer
        return {
            "table": self._overview,
            "state": self.state,
            "applied": get_applied(user_of(self.request), role_of(self.request), self.table, self.state),
            "is_staging": self.state.as_of is None and is_staging(self.request, self.table.account),
            "error": answer.error,
            "live_token": answer.live_token,
            "milliseconds": answer.milliseconds,
            "sizes": SIZES,
            "reading": self._reading,
            "placeholder": example_filter(answer.entities),
            "has_rows": bool(answer.entities),
            "deletes_results": bool(registry.hooks(Hook.DELETION_PAGE)),
            "zone_name": self.state.zone_name,
            "total": self._total if answer.entities else Total(None),
            **self._range,
            **self._links,
            **self._time_travel,
            **(self._contents if answer.entities else {"snippet": SNIPPET % self.table.name}),
            **({} if answer.error else {"stats": self._stats}),
            **(self._editors if self.frame is not None else {}),
        }

    @cached_property
    def _overview(self) -> Overview:
        return describe(self.table) if self.frame is None else self.frame.overview

    @cached_property
    def _reading(self) -> Reading:
        return read_filter(self.table, self.state)

    @property
    def _stats(self) -> dict[str, Any]:
        """Return the statistics of an executed query."""
        starts = self.state.starts
        return {
            "rows": len(self.answer.entities),
            "page": len(starts) + 1,
            "is_only_page": not self.answer.next and not starts,
            "request": getattr(self.request, "number", ""),
        }

    @property
    def _editors(self) -> dict[str, Any]:
        """Return the query editors for a full page."""
        builder = draw_builder(self.table, self.state, self._reading)
        return {"narrowings": list_cell_filters(), "builder": builder}

    @property
    def _range(self) -> dict[str, Any]:
        previews, before = self.answer.entities, self.state.rows_before
        return {
            "rows": len(previews),
            "first": before + 1,
            "last": before + len(previews),
            "first_key": _draw_key(previews[0]) if previews else None,
            "last_key": _draw_key(previews[-1]) if previews else None,
        }

    @property
    def _links(self) -> dict[str, Any]:
        """Return the addresses of other pages and views."""
        state, start = self.state, self.state.at_start()
        return {
            "here": self._address(state),
            "start": self._address(start) if state.starts else "",
            "previous": self._address(state.before()) if state.has_earlier else "",
            "next": self._next_address,
            "views": [(view, self._address(state, view=view), view is state.view) for view in View],
            "other_view": self._address(state, view=View.JSON if state.view is View.GRID else View.GRID),
            "facets": self._address(state, has_facets=not state.has_facets),
            "times": self._address(state, is_utc=not state.is_utc),
            "pauses": [(pause, self._address(state, pause=pause)) for pause in (0, *PAUSES)],
            "all": self._address(start, filter=""),
            "now": self._address(start, as_of=None),
        }

    @property
    def _next_address(self) -> str:
        following, rows = self.answer.next, self.state.rows_before + len(self.answer.entities)
        return self._address(self.state.after(Cursor(following, rows))) if following else ""

    def _address(self, state: GridState, **changes: Any) -> str:
        return replace(state, **changes).address(self.table)

    @property
    def _time_travel(self) -> dict[str, Any]:
        """Return the time travel form; the past is read-only."""
        state, current = self.state, account_context(self.request)
        if state.as_of is None or current is None:
            return {}
        at = to_datetime(state.as_of.ticks).astimezone(state.zone or UTC)
        return {
            "travel_fields": [it for it in state.at_start().fields if it[0] != AS_OF],
            "as_of_local": f"{at:%Y-%m-%d %H:%M:%S}",
            "undo_since": field_text(at, state.zone),
            "undo_until": field_text(
                timezone.now().replace(microsecond=0) + timedelta(seconds=1), state.zone
            ),
            "may_revert": allowed(current)["manage_tables"],
            "may": allowed(current, read_only=True) | {"manage_access": False},
        }

    @property
    def _total(self) -> Total:
        state, answer = self.state, self.answer
        last = state.rows_before + len(answer.entities)
        if answer.next is None:
            return Total(last, is_exact=True)
        if state.is_counted:
            return count_exactly(self.table, state, answer.past)
        if not state.filter and answer.past is None:
            return Total(self._overview.entities, self._overview.is_exact)
        total = entities.total(self.table, EntityQuery(filter=state.wanted.filter), answer.past)
        if total.is_exact or total.number is None:
            return total
        # at least one more than displayed, whatever the planner estimates
        return Total(max(total.number, last + 1))

    @property
    def _contents(self) -> dict[str, Any]:
        """Return the entities in the selected view."""
        state, previews, then = self.state, self.answer.entities, self.answer.past
        match state.view:
            case View.GRID:
                since = None if then is None else compare_with_now(self.table, previews, then, state.zone)
                return {"grid": self._grid(since or UNCHANGED), "since": since}
            case View.JSON:
                return {"documents": [documents.build_document(glance) for glance in previews]}
            case _:
                assert_never(state.view)

    def _grid(self, since: ChangesSince) -> Grid:
        state, previews = self.state, self.answer.entities
        is_last = self.answer.next is None
        seen = dict.fromkeys(name for glance in previews for name in glance.properties)
        names = order_properties(self.table, seen, is_part=state.is_part)
        usual = sample(self.table) if set(names) - seen.keys() else {}
        keys = [glance.key for glance in previews]
        marks = {
            key: shown
            for mark_entities in registry.hooks(Hook.ENTITY_MARKS)
            for key, shown in mark_entities(self.table, keys).items()
        }
        options = GridOptions(self.table, state, names, usual, since, marks)
        return build_grid(options, previews, before=state.rows_before, is_last=is_last)


def _draw_key(glance: EntityPreview) -> list[Cell]:
    return [cells.draw(EdmValue(Edm.STRING, text)) for text in glance.key]
