"""Browses the entities of a table."""

import time
from dataclasses import replace
from datetime import UTC
from typing import Any, Final, NamedTuple, assert_never

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from console.entities.cell_changes import is_staging
from console.grid import bookmarks, cells, columns, documents, grid, saved_urls, time_travel
from console.grid.cells import Cell
from console.grid.property_order import find_columns, keep_widths
from console.grid.state import PAUSES, SIZES, GridState, View, read_state
from console.grid.time_travel import UNCHANGED, ChangesSince, compare_with_now
from console.grid.tokens import Cursor, encode_key
from console.queries import recent, saved
from console.queries.builder import draw_builder
from console.queries.frame import frame_of
from console.queries.reading import read_filter, suggest_looser
from console.queries.values import example_filter, list_cell_filters
from console.site import layout
from console.site.access import account_context, account_required, role_of, table_of, table_required, user_of
from console.site.notices import notify_error
from console.site.refusals import describe_refusal
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import Entity, read_stored
from storage.domain.entities.moments import Moment
from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import OperationTimedOut, ServerBusy, StorageError, TableNotFound
from storage.domain.filters.query import EntityQuery, Position, SortedPosition
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.ticks import to_datetime
from storage.models import Account, Table
from storage.operations.changes import feed, past
from storage.operations.changes.feed import Feed, NoHistory
from storage.operations.changes.past import Past
from storage.operations.entities import entities
from storage.operations.entities.entities import Total
from storage.operations.tables import table_list
from storage.operations.tables.table_list import Overview

SNIPPET: Final = """\
import os
from azure.data.tables import TableClient

table = TableClient.from_connection_string(os.environ["TABLES_CONNECTION_STRING"], "%s")
table.create_entity({"PartitionKey": "se", "RowKey": "ada", "Name": "Ada Lovelace"})
"""


class FoundPage(NamedTuple):
    """A page of entities, by key or by a property."""

    entities: list[EntityPreview]
    next: Position | SortedPosition | None


@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Show a page of entities; the error of an invalid filter is shown beside its field."""
    found, frame = table_of(request), None if wants_part(request) else frame_of(request)
    state = read_state(request.GET, found)
    if request.GET.get(time_travel.NAME) and state.as_of is None:
        notify_error(
            request, _("This is not a time such as 2026-11-30T18:00:00Z. You see the table as it is now.")
        )
        return redirect(state.address(found))
    if saved_urls.NAME in request.GET and state.saved_url is None:
        return render(request, "console/queries/saved/expired.html", {"table": found}, status=404)
    if found.name != table:
        return redirect(state.address(found), permanent=True)
    arranged = _arranged(request, found, state)
    shown = arranged.shortened(found)
    if shown is not arranged or (arranged is not state and arranged.columns_text):
        return redirect(shown.address(found))
    state = arranged
    context = results(found, state, frame.overview if frame else table_list.describe(found))
    if state.as_of is not None:
        current = account_context(request)
        assert current is not None
        context["may"] = layout.allowed(current, read_only=True) | {"manage_access": False}
    context["applied"] = saved.get_applied(user_of(request), role_of(request), found, state)
    if not context["error"]:
        context["stats"] = {
            "rows": context["rows"],
            "page": len(state.starts) + 1,
            "is_only_page": not context["next"] and not state.starts,
            "request": getattr(request, "number", ""),
        }
        _remember(request, found, state)
    if frame is not None:
        bookmarks.record_visit(frame.bookmark)
        context["narrowings"] = list_cell_filters()
        context["builder"] = draw_builder(found, state, context["reading"])
    response = render_part(
        request,
        "console/entities/browse/show.html",
        "_answer.html",
        context | {"is_staging": state.as_of is None and is_staging(request, account)},
        status=422 if context["error"] else 200,
    )
    if wants_part(request):
        # without the defaults that a form sends
        response.headers["HX-Push-Url"] = state.address(found)
    return response


def _remember(request: HttpRequest, table: Table, state: GridState) -> None:
    """Record a filter that a user ran, but neither its later pages nor automatic refreshes."""
    is_refresh = wants_part(request) and "HX-Current-URL" not in request.headers
    if state.filter and not state.starts and not is_refresh:
        recent.record_run(user_of(request), table, state.filter)


def _arranged(request: HttpRequest, table: Table, state: GridState) -> GridState:
    """The state with the columns of last time if the address has none."""
    layout = "" if state.has_columns else columns.last_columns(user_of(request), table)
    return replace(state, columns=columns.parse_columns(layout), has_columns=True) if layout else state


@table_required(Capability.READ)
def count(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the exact number of matching entities, or that counting took too long."""
    state = read_state(request.GET, table)
    if not wants_part(request):
        return redirect(replace(state, is_counted=True).address(table))
    then, error = _find_past(table, state)
    total = Total(None) if error else _count(table, state, then)
    context = {"table": table, "state": state, "total": total, "counted": True}
    return render(request, "console/entities/browse/_total.html", context)


def results(table: Table, state: GridState, overview: Overview) -> dict[str, Any]:
    """The context of the results."""
    is_live = state.view is View.GRID and state.as_of is None
    token = _live_token(table) if is_live else ""  # of before the page, so that nothing is missed
    began = time.perf_counter()
    then, error = _find_past(table, state)
    page, error = (FoundPage([], None), error) if error else _query(table, state, then)
    milliseconds = (time.perf_counter() - began) * 1000
    return {
        "table": overview,
        "state": state,
        "has_past": past.is_readable(table),
        "error": error,
        "live_token": "" if error else token,
        "milliseconds": max(1, round(milliseconds)),
        "sizes": SIZES,
        "reading": read_filter(table, state),
        "placeholder": example_filter(page.entities),
        **_listing(table, state, page),
        **(_shown(table, state, page, then) if page.entities else _nothing(table, state, error)),
        "total": _total(table, overview, state, page, then) if page.entities else Total(None),
    }


def _live_token(table: Table) -> str:
    """Return where the changes begin that a page does not show yet; empty if the account records none."""
    try:
        return feed.present_token(Feed(table.account_id, (table.pk,)))
    except (NoHistory, ServerBusy):
        return ""


def _find_past(table: Table, state: GridState) -> tuple[Past | None, str]:
    """The past that a grid shows, None: now; or why it cannot."""
    if state.as_of is None:
        return None, ""
    try:
        return past.find(table, state.as_of), ""
    except TableNotFound:
        return None, _("The table was created later.")
    except StorageError as error:
        return None, describe_refusal(error)


def _shown(table: Table, state: GridState, page: FoundPage, then: Past | None) -> dict[str, object]:
    match state.view:
        case View.GRID:
            since = None if then is None else compare_with_now(table, page.entities, then, state.zone)
            return {"grid": _grid(table, state, page, since or UNCHANGED), "since": since}
        case View.JSON:
            return {"documents": [documents.build_document(glance) for glance in page.entities]}
        case View.FORM:
            stored = entities.get(table, page.entities[0].key, then)
            entity = read_stored(stored) if stored is not None else None
            return {
                "entity": entity,
                "token": encode_key(page.entities[0].key),
                "timestamp": cells.draw_time(page.entities[0].timestamp, state.zone),
                "fields": _fields(entity, state) if entity is not None else [],
            }
        case _:
            assert_never(state.view)


def _grid(table: Table, state: GridState, page: FoundPage, since: ChangesSince) -> grid.Grid:
    names, widths = find_columns(table, (name for glance in page.entities for name in glance.properties))
    setting = grid.GridOptions(
        table,
        state.columns,
        state.zone,
        _zone_name(state),
        state.select,
        state.sort,
        names,
        widths,
        state.as_of,
        since,
    )
    built = grid.build_grid(setting, page.entities, before=state.rows_before, is_last=page.next is None)
    keep_widths(table, widths, {column.name: column.width for column in built.columns if column.is_new})
    return built


def _fields(entity: Entity, state: GridState) -> list[tuple[str, str, Cell]]:
    """The name, type and whole value of each property."""
    return [
        (name, value.type, documents.draw_whole(value, state.zone))
        for name, value in entity.properties.items()
        if not state.select or name in state.select
    ]


def _nothing(table: Table, state: GridState, error: str) -> dict[str, object]:
    found = None if error else suggest_looser(table, state)
    return {
        "hints": found,
        "repaired": found.repaired.address(table) if found is not None and found.repaired else "",
        "looser": found.looser.address(table) if found is not None and found.looser else "",
        "snippet": SNIPPET % table.name,
    }


def _query(table: Table, state: GridState, then: Past | None) -> tuple[FoundPage, str]:
    """A page, or an empty page and the message of the service."""
    try:
        page = _read_page(table, state, then)
        return page._replace(entities=[_selected(glance, state) for glance in page.entities]), ""
    except StorageError as error:
        return FoundPage([], None), describe_refusal(error)


def _read_page(table: Table, state: GridState, then: Past | None) -> FoundPage:
    if state.sort is None:
        return FoundPage(*entities.preview_page(table, state.wanted, then))
    return FoundPage(*entities.sorted_preview_page(table, state.wanted, state.sort, state.sorted_start, then))


def _selected(glance: EntityPreview, state: GridState) -> EntityPreview:
    """The entity without unselected properties, which previews of small entities include."""
    if not state.select:
        return glance
    kept = {name: value for name, value in glance.properties.items() if name in state.select}
    return glance._replace(properties=kept)


def _listing(table: Table, state: GridState, page: FoundPage) -> dict[str, object]:
    after = state.rows_before + len(page.entities)
    following = state.after(Cursor(page.next, after)) if page.next else None
    return {
        "has_rows": bool(page.entities),
        "rows": len(page.entities),
        "first": state.rows_before + 1,
        "last": after,
        "first_key": _key(page.entities[0]) if page.entities else None,
        "last_key": _key(page.entities[-1]) if page.entities else None,
        "here": state.address(table),
        "start": state.at_start().address(table) if state.starts else "",
        "previous": state.before().address(table) if state.has_earlier else "",
        "next": following.address(table) if following else "",
        "views": [(view, replace(state, view=view).address(table), view is state.view) for view in View],
        "facets": replace(state, has_facets=not state.has_facets).address(table),
        "times": replace(state, is_utc=not state.is_utc).address(table),
        "zone_name": _zone_name(state),
        "pauses": [(pause, replace(state, pause=pause).address(table)) for pause in (0, *PAUSES)],
        "all": replace(state.at_start(), filter="").address(table),
        "now": replace(state.at_start(), as_of=None).address(table),
        "travel_fields": [it for it in state.at_start().fields if it[0] != time_travel.NAME],
        "as_of_local": "" if state.as_of is None else _local_time(state.as_of, state),
    }


def _key(glance: EntityPreview) -> list[Cell]:
    return [cells.draw(EdmValue(Edm.STRING, text)) for text in glance.key]


def _zone_name(state: GridState) -> str:
    if state.zone is None:
        return "UTC"
    name = timezone.localtime(timezone=state.zone).tzname() or str(state.zone)
    return f"UTC{name}" if name[0] in "+-" else name


def _local_time(moment: Moment, state: GridState) -> str:
    """A time as a field of the browser has it, in the zone of the grid."""
    at = to_datetime(moment.ticks).astimezone(state.zone or UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}"


def _total(table: Table, overview: Overview, state: GridState, page: FoundPage, then: Past | None) -> Total:
    if page.next is None:
        return Total(state.rows_before + len(page.entities), is_exact=True)
    if state.is_counted:
        return _count(table, state, then)
    if not state.filter and then is None:
        return Total(overview.entities, overview.is_exact)
    found = entities.total(table, EntityQuery(filter=state.wanted.filter), then)
    if found.is_exact or found.number is None:
        return found
    # at least one more than displayed, whatever the planner estimates
    return Total(max(found.number, state.rows_before + len(page.entities) + 1))


def _count(table: Table, state: GridState, then: Past | None) -> Total:
    try:
        return Total(entities.count(table, EntityQuery(filter=state.wanted.filter), then), is_exact=True)
    except (OperationTimedOut, StorageError):
        return Total(None)
