"""Views of the cell editor."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC
from functools import wraps

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.entities.cell import CellDraft, Editor, read_cell, retype
from console.entities.cell_changes import CellChange
from console.entities.cell_edit import CellEdit
from console.entities.saving import back_address, next_address
from console.grid.grid import ShownGrid
from console.site import toasts
from console.site.access import table_required
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.values.edm import EdmValue
from storage.editing import typed_text
from storage.models import Table
from storage.rest.lookups import or_404


def _in_grid(view: Callable[[HttpRequest, Table, ShownGrid], HttpResponse]) -> Callable[..., HttpResponse]:
    """Pass the displayed grid to the view, and use its time zone."""

    @wraps(view)
    def in_grid(request: HttpRequest, table: Table) -> HttpResponse:
        grid = ShownGrid.read(table, next_address(request), request.POST)
        with timezone.override(UTC) if grid.is_utc else nullcontext():
            return view(request, table, grid)

    return in_grid


@require_http_methods(["GET", "POST"])
@table_required(Capability.WRITE)
@_in_grid
def edit(request: HttpRequest, table: Table, grid: ShownGrid) -> HttpResponse:
    """Show or save the editor of a property; ``type`` is the column's type."""
    return save(request, table, grid) if request.method == "POST" else show(request, table)


def show(request: HttpRequest, table: Table) -> HttpResponse:
    edit = CellEdit(request, table, _draft(request.GET))
    return _show(edit, edit.open())


def save(request: HttpRequest, table: Table, grid: ShownGrid) -> HttpResponse:
    """Save the typed value, or stage it."""
    edit = CellEdit(request, table, _draft(request.POST))
    draft = edit.draft
    if draft.action == "retype":  # without JavaScript, a button changes the type
        return _show(edit, retype(draft, request.POST, edit.input_context))
    value, note = draft.read(edit.stored_value, edit.input_context)
    if draft.action == "remove" or edit.is_as_it_was:
        value = None
    elif value is None:
        return _show(edit, Editor(draft.typed, note, status=422))
    is_again = edit.is_again
    if "stage" in request.POST and not is_again:
        return _stage(request, draft, value)
    done = edit.save(value)
    if isinstance(done, Editor):
        return _show(edit, done)
    text = _("%(property)s saved") if value is not None else _("%(property)s removed")
    if is_again:
        text = _("Inserted the entity again")
    toasts.notify_success(request, text % {"property": draft.name}, undo=done.activity)
    if not wants_part(request):
        return HttpResponseRedirect(back_address(request, table))
    row = grid.draw_row(done.after[draft.key])
    return render_part(request, "console/entities/cell/edit.html", "_saved.html", {"row": row})


@require_POST
@table_required(Capability.WRITE)
@_in_grid
def check(request: HttpRequest, table: Table, grid: ShownGrid) -> HttpResponse:
    """Render the validation note of the typed text; with ``retype``, the editor in another type or form."""
    edit = CellEdit(request, table, _draft(request.POST))
    draft = edit.draft
    if draft.action == "retype":
        return _show(edit, retype(draft, request.POST, edit.input_context))
    was = edit.stored_value
    context = {
        "note": draft.read(was, edit.input_context)[1],
        "agreed": draft.is_agreed,
        "typed": draft.typed,
        "is_set": was is not None,
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "console/entities/cell/_note.html", context)


def _draft(sent: QueryDict) -> CellDraft:
    return or_404(read_cell(sent))


def _stage(request: HttpRequest, draft: CellDraft, value: EdmValue | None) -> HttpResponse:
    """Respond with a staged change, which the page keeps until saving."""
    typed = draft.typed
    if value is not None:  # "now" is the moment at which it was typed
        typed = replace(typed, text=typed_text.write(value, typed.form))
    kept = CellChange(draft.key, draft.name, draft.etag, value, typed).kept
    return render(request, "console/entities/cell/_staged_cells.html", {"cells": [kept]})


def _show(edit: CellEdit, editor: Editor) -> HttpResponse:
    page = "console/entities/cell/edit.html"
    return render_part(edit.request, page, "_editor.html", edit.context(editor), status=editor.status)
