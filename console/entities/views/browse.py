"""Browser of a table's entities."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from console.entities.grid_page import GridPage, count_exactly, find_past
from console.grid import bookmarks, columns, saved_urls
from console.grid.state import SIZES, GridState, read_state
from console.queries import recent
from console.queries.frame import frame_of
from console.site.access import AS_OF, table_page, table_required, user_of
from console.site.refusals import describe_refusal
from console.site.responses import render_page, render_part, wants_part
from console.site.toasts import notify_error
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.refusals import Refused
from storage.entities import empty_results
from storage.entities.entities import Total
from storage.models import Table


@table_page(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show a page of entities; an invalid filter's error is shown beside its field."""
    state = read_state(request.GET, table)
    if request.GET.get(AS_OF) and state.as_of is None:
        notify_error(
            request, _("This is not a time such as 2026-11-30T18:00:00Z. You see the table as it is now.")
        )
        return redirect(state.address(table))
    if (size := request.GET.get("top")) and size != str(state.size):
        sizes = ", ".join(map(str, SIZES))
        text = _("“%(size)s” is not a page size (%(sizes)s). You see %(shown)s entities per page.")
        notify_error(request, text % {"size": size[:20], "sizes": sizes, "shown": state.size})
        return redirect(state.address(table))
    if saved_urls.NAME in request.GET and state.saved_url is None:
        return render(request, "console/queries/saved/expired.html", {"table": table}, status=404)
    arranged = _arranged(request, table, state)
    shown = arranged.shortened(table)
    if shown is not arranged or (arranged is not state and arranged.columns_text):
        return redirect(shown.address(table))
    page = GridPage(request, table, arranged, None if wants_part(request) else frame_of(request))
    if not page.answer.error:
        _remember(request, table, arranged)
    if page.frame is not None:
        bookmarks.record_visit(page.frame.bookmark)
    response = render_part(
        request,
        "console/entities/browse/show.html",
        "_answer.html",
        page.context,
        status=422 if page.answer.error else 200,
    )
    if page.frame is None:
        # without the defaults that a form sends
        response.headers["HX-Push-Url"] = page.state.address(table)
    return response


def _remember(request: HttpRequest, table: Table, state: GridState) -> None:
    """Record a filter that a user ran, except for later pages and refreshes."""
    is_refresh = wants_part(request) and "HX-Current-URL" not in request.headers
    if state.filter and not state.starts and not is_refresh:
        recent.record_run(user_of(request), table, state.filter)


def _arranged(request: HttpRequest, table: Table, state: GridState) -> GridState:
    """Apply the user's last columns if the address has none."""
    layout = "" if state.has_columns else columns.last_columns(user_of(request), table)
    return replace(state, columns=columns.parse_columns(layout), has_columns=True) if layout else state


@table_required(Capability.READ)
def count(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the exact number of matching entities, or a timeout message."""
    state = read_state(request.GET, table)
    if not wants_part(request):
        return redirect(replace(state, is_counted=True).address(table))
    then, error = find_past(table, state)
    total = Total(None) if error else count_exactly(table, state, then)
    context = {"table": table, "state": state, "total": total, "counted": True}
    return render(request, "console/entities/browse/_total.html", context)


@table_required(Capability.READ)
def explain_empty(request: HttpRequest, table: Table) -> HttpResponse:
    """Show why the filter matches nothing, with filters that match something."""
    state = read_state(request.GET, table)
    try:
        reasons = empty_results.explain_empty(table, state.filter, timezone.now())
    except StorageError:
        reasons = []
    start = state.at_start()
    context = {
        "table": table,
        "state": state,
        "reasons": [
            (
                describe_refusal(Refused(it.refusal)),
                it,
                it.repaired and replace(start, filter=it.repaired).address(table),
            )
            for it in reasons
        ],
        "most": empty_results.COUNTED,
    }
    return render_page(request, "console/entities/browse/why_empty.html", context)
