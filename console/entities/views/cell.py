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

from console.entities.cell import (
    CellForm,
    Note,
    change_type,
    check_input,
    draw_preview,
    draw_value,
    hint,
    write_preview,
)
from console.entities.staged import is_staging
from console.entities.value_field import TypedInput, read_form, read_type, typed_input
from console.grid import cells, grid
from console.grid.tokens import decode_key, encode_key, key_query
from console.site import notices
from console.site.access import actor_of, table_required
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal
from console.site.responses import render_part, wants_part
from console.site.typed_text import local_now
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Insert, Update
from storage.domain.entities.entity import SYSTEM_PROPERTIES, Entity, EntityKey, StoredEntity, read_stored
from storage.domain.errors import (
    EntityAlreadyExists,
    ResourceNotFound,
    StorageError,
    UpdateConditionNotSatisfied,
)
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.domain.values.names import check_property_name
from storage.editing import typed_text
from storage.models import Table
from storage.operations.changes import last_change
from storage.operations.changes.last_change import LastChange
from storage.operations.entities import edits, entities

CONFLICT = 412


@dataclass(frozen=True, slots=True)
class CellTarget:
    """The property that is edited, and its entity as it is stored now."""

    table: Table
    key: EntityKey
    name: str
    stored: StoredEntity | None
    value: EdmValue | None

    @property
    def etag(self) -> str:
        return "" if self.stored is None else write_etag(self.stored.timestamp)


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
    if request.method == "POST":
        return _save(request, _find_target(table, request.POST))
    target = _find_target(table, request.GET)
    typed = typed_input(target.value, read_type(request.GET.get("type", "")))
    if target.stored is None:
        return _deleted(request, target, typed)
    note = None if target.value is None else hint(target.value, typed)
    if request.GET.get("etag", target.etag) not in ("", target.etag):
        text = _("This entity has changed since the page was loaded. This is the current value.")
        note = Note("warn", text)
    return _editor(request, target, typed, note, etag=target.etag)


@require_POST
@table_required(Capability.WRITE)
@_in_zone_of_grid
def check(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the note on a text while it is typed; with ``retype``, the editor as another type or form."""
    target = _find_target(table, request.POST)
    if "retype" in request.POST:
        return _change_type(request, target)
    form = CellForm(request.POST, target.value, local_now())
    context = {
        "note": form.note,
        "agreed": "agreed" in request.POST,
        "typed": form.typed,
        "is_set": target.value is not None,
        "zone": timezone.get_current_timezone_name(),
    }
    return render(request, "console/entities/cell/_note.html", context)


def _save(request: HttpRequest, target: CellTarget) -> HttpResponse:
    action = request.POST.get("action")
    if action == "retype":  # without JavaScript, a button changes the type
        return _change_type(request, target)
    form = CellForm(request.POST, target.value, local_now())
    if action == "insert" and target.stored is None and form.edm_value is not None:
        return _insert_again(request, target, form.edm_value, form.typed)
    if action == "remove":
        return _apply(request, target, None, form.typed)
    if form.edm_value is None:
        return _editor(request, target, form.typed, form.note, status=422)
    return _apply(request, target, form.edm_value, form.typed)


def _change_type(request: HttpRequest, target: CellTarget) -> HttpResponse:
    """Show the editor with another type or form; ``from`` and ``from_form`` are those of the text."""
    now = local_now()
    wanted = CellForm(request.POST, None, now).typed
    before = read_type(request.POST.get("from", ""))
    text = "false" if before is Edm.BOOLEAN and not wanted.text else wanted.text
    old = TypedInput(before, read_form(before, request.POST.get("from_form", "")), text)
    typed, note = change_type(old, wanted.type, wanted.form, now)
    if note is None and typed.text:
        note = check_input(typed, now)
    return _editor(request, target, typed, note)


def _apply(
    request: HttpRequest, target: CellTarget, value: EdmValue | None, typed: TypedInput
) -> HttpResponse:
    """Store a value, or stage it; None removes the property."""
    if "stage" in request.POST:
        return _staged(request, target, value, typed)
    try:
        change = _update(target, value, request.POST.get("etag", ""))
        applied = edits.apply_one(target.table, change, by=actor_of(request), known=target.stored)
    except (UpdateConditionNotSatisfied, ResourceNotFound):
        return _conflict(request, _read_again(target), value, typed)
    except StorageError as error:
        return _editor(request, target, typed, Note("error", describe_refusal(error)), status=422)
    text = _("%(property)s saved") if value is not None else _("%(property)s removed")
    notices.notify_success(request, text % {"property": target.name}, undo=applied.activity)
    return _saved(request, target, applied.after[target.key])


def _deleted(request: HttpRequest, target: CellTarget, typed: TypedInput) -> HttpResponse:
    """Show who deleted the entity of a cell that is opened; what is typed meanwhile can be inserted or copied."""
    last = last_change.of_entity(target.table, target.key, None)
    # the grid takes no other answer for the editor, into which it puts what was typed
    status = 200 if wants_part(request) else 404
    return _editor(request, target, typed, None, conflict=_lost(target, last), status=status)


def _lost(target: CellTarget, last: LastChange | None) -> dict[str, Any]:
    return {"is_gone": True, "last": last, "can_insert": last is not None and last.before is not None}


def _insert_again(
    request: HttpRequest, target: CellTarget, value: EdmValue, typed: TypedInput
) -> HttpResponse:
    """Insert a deleted entity as it was, with what was typed."""
    last = last_change.of_entity(target.table, target.key, None)
    if last is None or last.before is None:
        return _conflict(request, target, value, typed)
    properties = {**read_stored(last.before).properties, target.name: value}
    try:
        change = Insert(Entity(target.key, properties))
        applied = edits.apply_one(target.table, change, by=actor_of(request))
    except EntityAlreadyExists:
        return _conflict(request, _read_again(target), value, typed)
    except StorageError as error:
        note = Note("error", describe_refusal(error))
        return _editor(request, target, typed, note, conflict=_lost(target, last), status=422)
    notices.notify_success(request, _("Inserted the entity again"), undo=applied.activity)
    return _saved(request, target, applied.after[target.key])


def _update(target: CellTarget, value: EdmValue | None, etag: str) -> Update:
    condition = read_if_match(etag)
    if condition == ANY:  # the console never overwrites an unknown version
        raise UpdateConditionNotSatisfied
    if value is not None:
        return Update(Entity(target.key, {target.name: value}), condition, merge=True)
    if target.stored is None:
        raise ResourceNotFound
    rest = dict(read_stored(target.stored).properties)
    rest.pop(target.name, None)
    return Update(Entity(target.key, rest), condition, merge=False)


def _saved(request: HttpRequest, target: CellTarget, stored: StoredEntity) -> HttpResponse:
    if not wants_part(request):
        return HttpResponseRedirect(_back(request, target))
    # a page without a grid sends no index of a row
    has_grid = request.POST.get("index", "").isdecimal()
    row = grid.draw_row(target.table, stored, request.POST) if has_grid else ""
    return render_part(request, "console/entities/cell/edit.html", "_saved.html", {"row": row})


def _staged(
    request: HttpRequest, target: CellTarget, value: EdmValue | None, typed: TypedInput
) -> HttpResponse:
    """Answer with the change for the page to keep until all staged changes are saved."""
    if value is not None:  # "now" is the moment at which it was typed
        typed = replace(typed, text=typed_text.write(value, typed.form))
    context = {
        "markup": cells.draw_or_absent(value).markup,
        "key": encode_key(target.key),
        "property": target.name,
        "etag": request.POST.get("etag", ""),
        "typed": typed,
        "is_removed": value is None,
    }
    return render(request, "console/entities/cell/_staged_cell.html", context)


def _conflict(
    request: HttpRequest, target: CellTarget, value: EdmValue | None, typed: TypedInput
) -> HttpResponse:
    """Another save came first: show the value it left, and who made it, if that is known."""
    last = last_change.of_entity(target.table, target.key, target.stored)
    if target.stored is None:
        return _editor(request, target, typed, None, conflict=_lost(target, last), status=CONFLICT)
    conflict = {
        "was": draw_preview(request.POST.get("was", "")),
        "theirs": draw_value(target.value),
        "mine": draw_value(value),
        "etag": target.etag,
        "last": last,
    }
    return _editor(request, target, typed, None, conflict=conflict, status=CONFLICT)


def _editor(
    request: HttpRequest,
    target: CellTarget,
    typed: TypedInput,
    note: Note | None,
    *,
    etag: str = "",
    conflict: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    token = encode_key(target.key)
    context: dict[str, Any] = {
        "table": target.table,
        "key": target.key,
        "token": token,
        "property": target.name,
        "etag": etag or request.POST.get("etag", ""),
        "was": request.POST.get("was", write_preview(target.value)),
        "typed": typed,
        "agreed": "agreed" in request.POST and "retype" not in request.POST,
        "note": note,
        "conflict": conflict,
        "is_set": target.value is not None,
        "is_staged": is_staging(request, target.table.account),
        "types": [(type_.value, type_.short_name) for type_ in Edm],
        "zone": timezone.get_current_timezone_name(),
        "next": _back(request, target),
        "download": urlencode({"key": token, "property": target.name, "download": "1"}),
        "address": key_query(target.key),
    }
    return render_part(request, "console/entities/cell/edit.html", "_editor.html", context, status=status)


def _find_target(table: Table, sent: QueryDict) -> CellTarget:
    key = decode_key(sent.get("key", ""))
    name = sent.get("property", "")
    if key is None or name in SYSTEM_PROPERTIES:
        raise Http404
    try:
        check_property_name(name)
    except StorageError:
        raise Http404 from None
    return _read_again(CellTarget(table, key, name, None, None))


def _read_again(target: CellTarget) -> CellTarget:
    stored = entities.get(target.table, target.key)
    value = None if stored is None else read_stored(stored).properties.get(target.name)
    return replace(target, stored=stored, value=value)


def _next_address(request: HttpRequest) -> str:
    return request.POST.get("next", "") or request.GET.get("next", "")


def _back(request: HttpRequest, target: CellTarget) -> str:
    wanted = _next_address(request)
    if is_console_path(wanted):
        return wanted
    return reverse("entities:index", args=(target.table.account.name, target.table.name))
