"""One property of one entity: its editor, and saving it."""

from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.entities import cell
from console.entities.cell import Draft, Note
from console.entities.staged import is_staging
from console.grid import cells, grid, tokens
from console.site import notices
from console.site.access import account_required, actor_of, find_table, user_of
from console.site.addresses import is_console_path
from console.site.responses import render_part, wants_part
from console.site.typed_text import now_of
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Update
from storage.domain.entities.entity import SYSTEM_PROPERTIES, Entity, EntityKey, StoredEntity, read_stored
from storage.domain.errors import ResourceNotFound, StorageError, UpdateConditionNotSatisfied
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.domain.values.names import check_property_name
from storage.editing import typed_text
from storage.models import Account, Activity, Table
from storage.operations import activity, edits, entities

CONFLICT = 412


@dataclass(frozen=True, slots=True)
class Place:
    """The property that is edited, and the entity as it is now."""

    table: Table
    key: EntityKey
    name: str
    stored: StoredEntity | None

    @property
    def value(self) -> EdmValue | None:
        return None if self.stored is None else read_stored(self.stored).properties.get(self.name)

    @property
    def etag(self) -> str:
        return "" if self.stored is None else write_etag(self.stored.timestamp)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else was faster: what they made of the property, and who they were, if it is known."""

    theirs: str
    mine: str
    etag: str
    is_gone: bool
    by: Activity | None


@require_http_methods(["GET", "POST"])
@account_required(Capability.WRITE)
def edit(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """The editor of a property of an entity, or its save; ``type`` is that of its column."""
    if request.method == "POST":
        return _save(request, _place(account, table, request.POST))
    place = _place(account, table, request.GET)
    if place.stored is None:
        raise Http404
    draft = cell.draft_of(place.value, cell.read_type(request.GET.get("type", "")))
    shown = request.GET.get("etag", "")
    note = None if place.value is None else cell.read(draft, place.value, now_of(request))[1]
    if shown and shown != place.etag:
        note = Note(
            "warn", _("This entity has changed since the page was loaded. This is the current value.")
        )
    return _editor(request, place, draft, note, etag=place.etag)


@require_POST
@account_required(Capability.WRITE)
def check(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What there is to say about a text while it is typed; with ``retype``, the editor as another type or form."""
    place = _place(account, table, request.POST)
    if "retype" in request.POST:
        return _retype(request, place)
    draft = cell.read_draft(request.POST)
    _value, note = cell.read(draft, place.value, now_of(request))
    return render(request, "console/entities/cell/_note.html", {"note": note, "draft": draft})


def _save(request: HttpRequest, place: Place) -> HttpResponse:
    if request.POST.get("action") == "remove":
        return _change(request, place, None, cell.read_draft(request.POST))
    if request.POST.get("action") == "retype":  # without JavaScript, changing the type is a button
        return _retype(request, place)
    draft = cell.read_draft(request.POST)
    value, note = cell.read(draft, place.value, now_of(request))
    if value is None:
        return _editor(request, place, draft, note, status=422)
    return _change(request, place, value, draft)


def _retype(request: HttpRequest, place: Place) -> HttpResponse:
    """The editor after its type or form was changed; ``from`` and ``from_form`` say what the text is."""
    wanted, now = cell.read_draft(request.POST), now_of(request)
    before = cell.read_type(request.POST.get("from", ""))
    form = cell.read_form(before, request.POST.get("from_form", ""))
    text = "false" if before is Edm.BOOLEAN and not wanted.text else wanted.text
    draft, note = cell.retyped(Draft(before, form, text), wanted.type, wanted.form, now)
    if note is None and draft.text:
        note = cell.read(draft, None, now)[1]
    return _editor(request, place, draft, note)


def _change(request: HttpRequest, place: Place, value: EdmValue | None, draft: Draft) -> HttpResponse:
    if "stage" in request.POST:
        return _staged(request, place, value, draft)
    try:
        applied = edits.apply_one(
            place.table,
            _update(place, value, request.POST.get("etag", "")),
            by=actor_of(request),
            known=place.stored,
        )
    except (UpdateConditionNotSatisfied, ResourceNotFound):
        return _conflict(request, place, value, draft)
    except StorageError as error:
        return _editor(request, place, draft, Note("error", error.text), status=422)
    said = _("%(property)s saved") if value is not None else _("%(property)s removed")
    notices.notify_success(request, said % {"property": place.name}, undo=applied.activity)
    return _saved(request, place, applied.after[place.key])


def _update(place: Place, value: EdmValue | None, etag: str) -> Update:
    condition = read_if_match(etag)
    if condition == ANY:  # nothing of ours saves whatever is there
        raise UpdateConditionNotSatisfied
    if value is not None:
        return Update(Entity(place.key, {place.name: value}), condition, merge=True)
    if place.stored is None:
        raise ResourceNotFound
    rest = dict(read_stored(place.stored).properties)
    rest.pop(place.name, None)
    return Update(Entity(place.key, rest), condition, merge=False)


def _saved(request: HttpRequest, place: Place, stored: StoredEntity) -> HttpResponse:
    if not wants_part(request):
        return HttpResponseRedirect(_back(request, place))
    # a page without a grid sends no place in it
    has_grid = request.POST.get("index", "").isdecimal()
    row = grid.draw_row(place.table.account, place.table, stored, request.POST) if has_grid else ""
    return render_part(request, page="", part="console/entities/cell/_saved.html", context={"row": row})


def _staged(request: HttpRequest, place: Place, value: EdmValue | None, draft: Draft) -> HttpResponse:
    """What the page is to keep until everything is saved: nothing is stored."""
    if value is not None:  # "now" is the moment at which it was typed
        draft = replace(draft, text=typed_text.write(value, draft.form))
    context = {
        "markup": cells.draw_or_absent(value).markup,
        "key": tokens.encode_entity_key(place.key),
        "property": place.name,
        "etag": request.POST.get("etag", ""),
        "draft": draft,
        "is_removed": value is None,
    }
    return render(request, "console/entities/cell/_staged_cell.html", context)


def _conflict(request: HttpRequest, place: Place, value: EdmValue | None, draft: Draft) -> HttpResponse:
    place = replace(place, stored=entities.get(place.table, place.key))
    changed = activity.latest_change(place.table, place.key)
    is_theirs = changed is not None and changed.ticks_after == (
        place.stored.timestamp if place.stored else None
    )
    conflict = Conflict(
        theirs=cell.shortened(place.value),
        mine=cell.shortened(value),
        etag=place.etag,
        is_gone=place.stored is None,
        by=changed.activity if changed is not None and is_theirs else None,
    )
    return _editor(request, place, draft, None, conflict=conflict, status=CONFLICT)


def _editor(
    request: HttpRequest,
    place: Place,
    draft: Draft,
    note: Note | None,
    *,
    etag: str = "",
    conflict: Conflict | None = None,
    status: int = 200,
) -> HttpResponse:
    account = place.table.account
    context: dict[str, Any] = {
        "table": place.table,
        "key": place.key,
        "token": tokens.encode_entity_key(place.key),
        "property": place.name,
        "etag": etag or request.POST.get("etag", ""),
        "was": request.POST.get("was", cell.shortened(place.value)),
        "draft": draft,
        "note": note,
        "conflict": conflict,
        "is_set": place.value is not None,
        "is_staged": is_staging(request, account),
        "types": [(type_.value, type_.short_name) for type_ in Edm],
        "zone": user_of(request).time_zone,
        "next": _back(request, place),
        "download": urlencode(
            {"key": tokens.encode_entity_key(place.key), "property": place.name, "download": "1"}
        ),
        "address": urlencode({"pk": place.key.partition_key, "rk": place.key.row_key}),
    }
    return render_part(
        request,
        page="console/entities/cell/edit.html",
        part="console/entities/cell/_editor.html",
        context=context,
        status=status,
    )


def _place(account: Account, name: str, sent: QueryDict) -> Place:
    table = find_table(account, name)
    key = tokens.decode_entity_key(sent.get("key", ""))
    name = sent.get("property", "")
    if key is None or name in SYSTEM_PROPERTIES:
        raise Http404
    try:
        check_property_name(name)
    except StorageError:
        raise Http404 from None
    return Place(table, key, name, entities.get(table, key))


def _back(request: HttpRequest, place: Place) -> str:
    wanted = request.POST.get("next", "") or request.GET.get("next", "")
    if is_console_path(wanted):
        return wanted
    return reverse("entities:index", args=(place.table.account.name, place.table.name))
