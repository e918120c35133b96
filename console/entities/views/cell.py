"""Edits one property of an entity."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.entities import cell as cells
from console.entities.cell import CellDraft, Note
from console.entities.cell_changes import CellChange, is_staging
from console.entities.saving import Refusal, attempt
from console.entities.typed_input import TypedInput, write_input
from console.grid import grid
from console.grid.tokens import encode_key, key_query
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.addresses import is_console_path
from console.site.responses import render_part, wants_part
from console.site.typed_text import local_now
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Change, Insert, Update
from storage.domain.entities.entity import Entity, StoredEntity, read_stored
from storage.domain.errors import ResourceNotFound, UpdateConditionNotSatisfied
from storage.domain.service.recorded import RecordedChange
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.editing import typed_text
from storage.models import Table
from storage.operations.changes import last_change
from storage.operations.entities import edits, entities

CONFLICT = 412


@dataclass(frozen=True, slots=True)
class Editor:
    """What an editor shows: the input and a note on it, or a conflict with another change."""

    typed: TypedInput
    note: Note | None = None
    conflict: dict[str, Any] | None = None
    status: int = 200


def _in_zone_of_grid(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Read and write times in UTC if the grid shows them so."""

    @wraps(view)
    def in_zone(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        query = QueryDict(_next_address(request).partition("?")[2])
        with timezone.override(UTC) if query.get("tz") == "utc" else nullcontext():
            return view(request, *args, **kwargs)

    return in_zone


@require_http_methods(["GET", "POST"])
@table_required(Capability.WRITE)
@_in_zone_of_grid
def edit(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the editor of a property of an entity, or save it; ``type`` is that of its column."""
    is_sent = request.method == "POST"
    draft = _draft(request.POST if is_sent else request.GET)
    stored = entities.get(table, draft.key)
    if not is_sent:
        # the grid takes no other answer for the editor, into which it puts what was typed
        gone = 200 if wants_part(request) else 404
        return _show(request, table, draft, stored, _open(table, draft, stored, gone))
    if draft.action == "retype":  # without JavaScript, a button changes the type
        return _show(request, table, draft, stored, Editor(*cells.retype(draft, request.POST, local_now())))
    value, note = draft.read(_value(draft, stored), local_now())
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
        return _show(request, table, draft, stored, Editor(*cells.retype(draft, request.POST, local_now())))
    was = _value(draft, stored)
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


def _value(draft: CellDraft, stored: StoredEntity | None) -> EdmValue | None:
    return None if stored is None else read_stored(stored).properties.get(draft.name)


def _open(table: Table, draft: CellDraft, stored: StoredEntity | None, gone: int) -> Editor:
    """The stored value; of a deleted entity, what is typed meanwhile can be inserted or copied."""
    value = _value(draft, stored)
    typed = write_input(value, draft.typed.type)
    if stored is None:
        return Editor(typed, conflict=_conflict(table, draft, None, None), status=gone)
    note = None if value is None else cells.hint(value, typed)
    if draft.etag not in ("", write_etag(stored.timestamp)):
        text = _("This entity has changed since the page was loaded. This is the current value.")
        note = Note("warn", text)
    return Editor(typed, note)


def _save(
    request: HttpRequest, table: Table, draft: CellDraft, stored: StoredEntity | None, value: EdmValue | None
) -> HttpResponse:
    """Store a value; None removes the property."""
    last = None
    if is_again := draft.action == "insert" and stored is None and value is not None:
        last = last_change.of_entity(table, draft.key, None)
    done = attempt(
        lambda: edits.apply(table, [_change(draft, stored, value, last)], by=actor_of(request), known=stored)
    )
    if isinstance(done, Refusal) and done.is_conflict:
        now = entities.get(table, draft.key)
        conflict = _conflict(table, draft, now, value)
        return _show(request, table, draft, now, Editor(draft.typed, None, conflict, CONFLICT))
    if isinstance(done, Refusal):
        note, lost = Note("error", done.text), _lost(last) if is_again else None
        return _show(request, table, draft, stored, Editor(draft.typed, note, lost, status=422))
    text = _("%(property)s saved") if value is not None else _("%(property)s removed")
    if is_again:
        text = _("Inserted the entity again")
    notices.notify_success(request, text % {"property": draft.name}, undo=done.activity)
    if not wants_part(request):
        return HttpResponseRedirect(_back(request, table))
    # a page without a grid sends no index of a row
    has_grid = request.POST.get("index", "").isdecimal()
    row = grid.draw_row(table, done.after[draft.key], request.POST) if has_grid else ""
    return render_part(request, "console/entities/cell/edit.html", "_saved.html", {"row": row})


def _change(
    draft: CellDraft, stored: StoredEntity | None, value: EdmValue | None, last: RecordedChange | None
) -> Change:
    """The change of one property; ``last``: a deletion to insert the entity again from."""
    if last is not None and last.before is not None and value is not None:
        return Insert(Entity(draft.key, {**read_stored(last.before).properties, draft.name: value}))
    condition = read_if_match(draft.etag)
    if condition == ANY:  # the console never overwrites an unknown version
        raise UpdateConditionNotSatisfied
    if stored is None:
        raise ResourceNotFound
    if value is not None:
        return Update(Entity(draft.key, {draft.name: value}), condition, merge=True)
    rest = dict(read_stored(stored).properties)
    rest.pop(draft.name, None)
    return Update(Entity(draft.key, rest), condition, merge=False)


def _stage(request: HttpRequest, draft: CellDraft, value: EdmValue | None) -> HttpResponse:
    """Answer with the change for the page to keep until all staged changes are saved."""
    typed = draft.typed
    if value is not None:  # "now" is the moment at which it was typed
        typed = replace(typed, text=typed_text.write(value, typed.form))
    kept = CellChange(draft.key, draft.name, draft.etag, value, typed).kept
    return render(request, "console/entities/cell/_staged_cells.html", {"cells": [kept]})


def _conflict(
    table: Table, draft: CellDraft, stored: StoredEntity | None, value: EdmValue | None
) -> dict[str, Any]:
    """Another save came first: the value it left, and who made it, if that is known."""
    last = last_change.of_entity(table, draft.key, stored)
    if stored is None:
        return _lost(last)
    return {
        "was": cells.draw_preview(draft.was or ""),
        "theirs": cells.draw_value(_value(draft, stored)),
        "mine": cells.draw_value(value),
        "etag": write_etag(stored.timestamp),
        "last": last,
    }


def _lost(last: RecordedChange | None) -> dict[str, Any]:
    return {"is_gone": True, "last": last, "can_insert": last is not None and last.before is not None}


def _show(
    request: HttpRequest, table: Table, draft: CellDraft, stored: StoredEntity | None, editor: Editor
) -> HttpResponse:
    value, token = _value(draft, stored), encode_key(draft.key)
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
        "types": [(type_.value, type_.short_name) for type_ in Edm],
        "zone": timezone.get_current_timezone_name(),
        "next": _back(request, table),
        "download": urlencode({"key": token, "property": draft.name, "download": "1"}),
        "address": key_query(draft.key),
    }
    page = "console/entities/cell/edit.html"
    return render_part(request, page, "_editor.html", context, status=editor.status)


def _next_address(request: HttpRequest) -> str:
    return request.POST.get("next", "") or request.GET.get("next", "")


def _back(request: HttpRequest, table: Table) -> str:
    wanted = _next_address(request)
    if is_console_path(wanted):
        return wanted
    return reverse("entities:index", args=(table.account.name, table.name))
