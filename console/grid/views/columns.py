"""Views for choosing columns and saving layouts."""

from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.grid import columns
from console.grid.cells import MIXED
from console.grid.columns import TIMESTAMP, ColumnChoice, Columns
from console.grid.property_order import order_properties
from console.grid.state import GridState, read_state
from console.models import ColumnLayout
from console.site import toasts
from console.site.access import role_of, table_required, user_of
from console.site.addresses import read_text
from console.site.responses import wants_part
from storage.domain.access.roles import Capability, may
from storage.domain.entities.entity import KEY_PROPERTIES, SYSTEM_PROPERTIES
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm
from storage.entities import entities, properties
from storage.entities.properties import Property
from storage.models import Table


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def choose(request: HttpRequest, table: Table) -> HttpResponse:
    """Show all columns with their settings, or apply the choices."""
    if request.method == "POST":
        return _chosen(request, table)
    return _show(request, table, read_state(request.GET, table))


def _show(request: HttpRequest, table: Table, state: GridState) -> HttpResponse:
    if state.select:  # an address that names the properties to read, which are then the columns
        selected = columns.list_columns(state.columns, (*KEY_PROPERTIES, *state.select))
        state = replace(state, columns=selected, select=())
    context: dict[str, Any] = {
        "table": table,
        "state": state,
        "here": state.address(table),
        **_lines(table, state),
        "layouts": [
            (
                layout,
                replace(
                    state, columns=columns.parse_columns(columns.layout_text(layout)), has_columns=True
                ).query(),
            )
            for layout in columns.layouts_for(user_of(request), table)
        ],
        "may_share": _may_share(request),
    }
    template = "_columns.html" if wants_part(request) else "columns.html"
    return render(request, f"console/grid/{template}", context)


def _lines(table: Table, state: GridState) -> dict[str, object]:
    """Return the visible columns in order, then the others by name."""
    catalogue = properties.sample(table)
    known = {described.name: described for described in catalogue.properties}
    seen = _seen(table, state)
    shown = columns.limit_columns(columns.arrange_columns(state.columns, seen), state.columns.names)
    names = {choice.name for choice in shown}
    others = [ColumnChoice(name, is_hidden=True) for name in sorted({*known, *seen, TIMESTAMP} - names)]
    return {
        "lines": [_line(choice, known) for choice in (*shown, *others)],
        "looked_at": catalogue.entities,
        "is_whole": catalogue.is_whole,
        "has_rest": state.columns.rest is not None,
        "most": columns.MOST_COLUMNS if len(shown) >= columns.MOST_COLUMNS else None,
    }


def _seen(table: Table, state: GridState) -> list[str]:
    """Return the properties on the page, in grid order."""
    try:
        page = entities.preview_page(table, replace(state.wanted, select=None))
    except StorageError:
        return []
    seen = (name for glance in page.entities for name in glance.properties)
    return order_properties(table, seen, is_part=state.is_part)


def _line(choice: ColumnChoice, known: dict[str, Property]) -> tuple[ColumnChoice, str, int | None]:
    """Return a selectable column with its type and share of sampled entities in percent."""
    if choice.name in SYSTEM_PROPERTIES:
        return choice, Edm.DATETIME if choice.name == TIMESTAMP else Edm.STRING, None
    described = known.get(choice.name)
    if described is None:
        return choice, "", None
    return choice, described.types[0] if len(described.types) == 1 else MIXED, round(100 * described.share)


def _chosen(request: HttpRequest, table: Table) -> HttpResponse:
    """Parse the fields name (in order), show, add and pin; up and down move a column. Chosen widths stay."""
    state = read_state(QueryDict(request.POST.get("state", "")), table)
    asked = (
        columns.parse_columns(request.POST["cols"]) if "cols" in request.POST else _read(request.POST, state)
    )
    columns.remember_columns(user_of(request), table, str(asked))
    chosen = replace(state, columns=asked, has_columns=True, select=())
    if wants_part(request):
        return HttpResponse(status=204)
    if request.accepts("application/json") and not request.accepts("text/html"):
        choice = f"{request.path}?{chosen.query()}"
        return JsonResponse({"here": chosen.address(table), "choice": choice})
    if "up" in request.POST or "down" in request.POST:
        return redirect(f"{request.path}?{chosen.query()}")
    return redirect(chosen.address(table))


def _read(form: QueryDict, state: GridState) -> Columns:
    widths = {choice.name: choice.width for choice in state.columns.choices}
    show, added, pins = (set(form.getlist(field)) for field in ("show", "add", "pin"))
    every = [
        ColumnChoice(name, widths.get(name), name in pins) for name in dict.fromkeys(form.getlist("name"))
    ]
    shown = [choice for choice in every if choice.name in show or choice.name in KEY_PROPERTIES]
    # columns that come in take the places of the last ones
    shown[columns.MOST_COLUMNS - len(added) :] = [choice for choice in every if choice.name in added]
    hidden = [choice.name for choice in every if choice not in shown]
    for name, by in ((form.get("up"), -1), (form.get("down"), 1)):
        shown = columns.move_column(shown, name, by) if name else shown
    # parse the result again, to drop invalid input
    return columns.parse_columns(
        str(columns.describe_columns(shown, hidden, loose=() if "rest" in form else None))
    )


def _may_share(request: HttpRequest) -> bool:
    return may(role_of(request), Capability.WRITE)


@require_POST
@table_required(Capability.READ)
def save_layout(request: HttpRequest, table: Table) -> HttpResponse:
    """Save the fields name, tables (a table or pattern), shared and cols; then return to ``state``."""
    state = read_state(QueryDict(request.POST.get("state", "")), table)
    name, pattern = (read_text(request.POST, field, longest=64) for field in ("name", "tables"))
    shared = "shared" in request.POST
    if shared and not _may_share(request):
        raise PermissionDenied
    if name:
        asked = str(columns.parse_columns(request.POST.get("cols", "")))
        columns.save_layout(
            None if shared else user_of(request), table.account, name, pattern or table.name, asked
        )
        columns.forget_columns(user_of(request), table)
        toasts.notify_success(request, _("Layout %(name)s saved") % {"name": name})
    return redirect(state.address(table))


@require_POST
@table_required(Capability.READ)
def delete_layout(request: HttpRequest, table: Table, layout: int) -> HttpResponse:
    state = read_state(QueryDict(request.POST.get("state", "")), table)
    kept = ColumnLayout.objects.filter(account=table.account, pk=layout).first()
    if kept is not None and kept.user_id not in (None, user_of(request).pk):
        kept = None
    if kept is not None and kept.user_id is None and not _may_share(request):
        raise PermissionDenied
    if kept is not None:
        kept.delete()
        toasts.notify_success(request, _("Layout %(name)s deleted") % {"name": kept.name})
    return redirect(state.address(table))
