"""Edits one property of an entity."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.entities import cell as cells
from console.entities.cell import CellDraft, Editor, Note
from console.entities.cell_changes import CellChange, is_staging
from console.entities.saving import Refusal, attempt, back_address, find_conflict, next_address
from console.entities.typed_input import TYPES, write_input
from console.grid import grid
from console.grid.tokens import encode_key, key_query
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.responses import render_part, wants_part
from console.site.typed_text import local_now
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import StoredEntity
from storage.domain.values.edm import EdmValue
from storage.domain.values.etag import write_etag
from storage.editing import typed_text
from storage.models import Table
from storage.operations.entities import edits, entities

CONFLICT = 412


def _in_zone_of_grid(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Read and write times in UTC if the grid shows them so."""

    @wraps(view)
    def in_zone(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        query = QueryDict(next_address(request).partition("?")[2])
        with timezone.override(UTC) if query.get("tz") == "utc" else nullcontext():
            return view(request, *args, **kwargs)

    return in_zone


@require_http_methods(["GET", "POST"])
@table_required(Capability.WRITE)
@_in_zone_of_grid
def edit(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the editor of a property of an entity, or save it; ``type`` is that of its column."""
    view = save if request.method == "POST" else show
    return view(request, table)


def show(request: HttpRequest, table: Table) -> HttpResponse:
    draft = _draft(request.GET)
    stored = entities.get(table, draft.key)
    if stored is not None:
        return _show(request, table, draft, stored, cells.open_cell(draft, stored))
    conflict = cells.describe_conflict(draft, find_conflict(table, draft.key), None)
    # the grid takes no other answer for the editor, into which it puts what was typed
    gone = 200 if wants_part(request) else 404
    return _show(
        request, table, draft, None, Editor(write_input(None, draft.typed.type), None, conflict, gone)
    )


def save(request: HttpRequest, table: Table) -> HttpResponse:
    """Store what was typed, or stage it."""
    draft = _draft(request.POST)
    stored = entities.get(table, draft.key)
    if draft.action == "retype":  # without JavaScript, a button changes the type
        return _show(request, table, draft, stored, cells.retype(draft, request.POST, local_now()))
    value, note = draft.read(cells.value_of(draft, stored), local_now())
    if draft.action == "remove":
        value = None
    elif value is None:
        return _show(request, table, draft, stored, Editor(draft.typed, note, status=422))
    if "stage" in request.POST:
        return _stage(request, draft, value)
    return _save(request, table, draft, stored, value)


@require_POST
@table_required(Capability.WRITE)
@_in_zone_of_grid
def check(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the note on a text while it is typed; with ``retype``, the editor as another type or form."""
    draft = _draft(request.POST)
    stored = entities.get(table, draft.key)
    if draft.action == "retype":
        return _show(request, table, draft, stored, cells.retype(draft, request.POST, local_now()))
    was = cells.value_of(draft, stored)
    context = {
        "note": draft.read(was, local_now())[1],
        "agreed": draft.is_agreed,
        "typed": draft.typed,
        "is_set": was is not None,
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "console/entities/cell/_note.html", context)


def _draft(sent: QueryDict) -> CellDraft:
    draft = cells.read_cell(sent)
    if draft is None:
        raise Http404
    return draft


def _save(
    request: HttpRequest, table: Table, draft: CellDraft, stored: StoredEntity | None, value: EdmValue | None
) -> HttpResponse:
    """Store a value; None removes the property."""
    is_again = draft.action == "insert" and stored is None
    conflict = find_conflict(table, draft.key) if is_again else None
    deleted = None if conflict is None else conflict.deleted
    done = attempt(
        lambda: edits.apply(
            table,
            [cells.change_of(draft, stored, value, deleted)],
            by=actor_of(request),
            known=stored,
        )
    )
    if isinstance(done, Refusal):
        if done.is_conflict:
            conflict = find_conflict(table, draft.key)
            stored = conflict.stored
        note, status = (None, CONFLICT) if done.is_conflict else (Note("error", done.text), 422)
        shown = None if conflict is None else cells.describe_conflict(draft, conflict, value)
        return _show(request, table, draft, stored, Editor(draft.typed, note, shown, status))
    text = _("%(property)s saved") if value is not None else _("%(property)s removed")
    if is_again:
        text = _("Inserted the entity again")
    notices.notify_success(request, text % {"property": draft.name}, undo=done.activity)
    if not wants_part(request):
        return HttpResponseRedirect(back_address(request, table))
    # a page without a grid sends no index of a row
    has_grid = request.POST.get("index", "").isdecimal()
    row = grid.draw_row(table, done.after[draft.key], request.POST) if has_grid else ""
    return render_part(request, "console/entities/cell/edit.html", "_saved.html", {"row": row})


def _stage(request: HttpRequest, draft: CellDraft, value: EdmValue | None) -> HttpResponse:
    """Answer with the change for the page to keep until all staged changes are saved."""
    typed = draft.typed
    if value is not None:  # "now" is the moment at which it was typed
        typed = replace(typed, text=typed_text.write(value, typed.form))
    kept = CellChange(draft.key, draft.name, draft.etag, value, typed).kept
    return render(request, "console/entities/cell/_staged_cells.html", {"cells": [kept]})


def _show(
    request: HttpRequest, table: Table, draft: CellDraft, stored: StoredEntity | None, editor: Editor
) -> HttpResponse:
    value, token = cells.value_of(draft, stored), encode_key(draft.key)
    etag = "" if stored is None else write_etag(stored.timestamp)
    context: dict[str, Any] = {
        "table": table,
        "key": draft.key,
        "token": token,
        "property": draft.name,
        "etag": draft.etag if request.method == "POST" else etag,
        "was": cells.write_preview(value) if draft.was is None else draft.was,
        "typed": editor.typed,
        "agreed": draft.is_agreed and draft.action != "retype",
        "note": editor.note,
        "conflict": editor.conflict,
        "is_set": value is not None,
        "is_staged": is_staging(request, table.account),
        "types": TYPES,
        "zone": timezone.get_current_timezone_name(),
        "next": back_address(request, table),
        "download": urlencode({"key": token, "property": draft.name, "download": "1"}),
        "address": key_query(draft.key),
    }
    page = "console/entities/cell/edit.html"
    return render_part(request, page, "_editor.html", context, status=editor.status)
