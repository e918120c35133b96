"""Conflict resolution: the entity as opened, as stored and as edited, with a choice per collision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from console.entities import entity_page as pages
from console.entities import problems
from console.entities.entity_draft import read_signed_entity, sign_entity
from console.entities.entity_page import EntityTarget
from console.entities.saving import Conflict, EntityEdit, Refusal
from console.grid import formats
from console.site.last_changes import draw_recent
from console.site.responses import render_page, see_other, wants_part
from console.site.toasts import notify_error, notify_success
from console.site.typed_text import edited_text
from storage.domain.entities.changes import Change, Insert, Update
from storage.domain.entities.entity import Entity, StoredEntity, read_stored, write_stored
from storage.domain.values.edm import EdmValue
from storage.domain.values.etag import Precondition, write_etag
from storage.domain.values.ticks import to_datetime
from storage.editing import merge, typed_text
from storage.editing.merge import MergeResult
from storage.rest.lookups import or_404

ACTIONS: Final = ("merged", "theirs", "insert", "discard")
LONGEST: Final = 2_000  # characters of a displayed value

Properties = Mapping[str, EdmValue]


@dataclass(frozen=True, slots=True)
class ShownValue:
    """Value in one of the three versions."""

    text: str = ""
    type: str = ""  # empty if the property is absent
    is_empty: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """Property that differs between the three versions."""

    number: int
    name: str
    base: ShownValue
    theirs: ShownValue
    mine: ShownValue
    by: str  # mine, theirs, both or conflict
    chosen: str = ""
    problem: str = ""


def render_conflict(
    request: HttpRequest,
    target: EntityTarget,
    base: StoredEntity,
    mine: Properties,
    conflict: Conflict,
    chosen: Mapping[str, str] | None = None,
    problem: str = "",
) -> HttpResponse:
    """Render the conflict; ``chosen`` are the choices so far, None on the first visit."""
    theirs = conflict.stored
    lines = _lines(base, theirs, mine, chosen)
    mine_stored = write_stored(Entity(target.key, mine, target.kind), base.timestamp)
    context = {
        "table": target.table,
        "entity_key": target.key,
        "address": target.address(),
        "table_address": target.table_address,
        "new_address": target.address("entities:new"),
        "lines": lines,
        "problems": [line for line in lines if line.problem],
        "problem": problem,
        "is_deleted": theirs is None,
        "last": conflict.last,
        "opened_at": draw_recent(to_datetime(base.timestamp)),
        "now_at": draw_recent(to_datetime(theirs.timestamp)) if theirs is not None else "",
        "etag": conflict.etag,
        "opened": sign_entity(target.table, base),
        "mine": sign_entity(target.table, mine_stored),
        "copy": formats.write_pretty_document(mine_stored) if theirs is None else "",
        "in_drawer": wants_part(request),
    }
    return render_page(
        request,
        "console/entities/entity/conflict.html",
        context,
        status=412 if chosen is None else 422,
    )


def _lines(
    base: StoredEntity, theirs: StoredEntity | None, mine: Properties, chosen: Mapping[str, str] | None
) -> list[ConflictLine]:
    was = read_stored(base).properties
    now = read_stored(theirs).properties if theirs is not None else {}
    conflicts = {conflict.name for conflict in _merged(base, theirs, mine).conflicts}
    names = [*now, *(name for name in {**was, **mine} if name not in now)]
    lines = []
    for number, name in enumerate(names):
        versions = (was.get(name), now.get(name) if theirs is not None else was.get(name), mine.get(name))
        by = "conflict" if name in conflicts else _changed_by(*versions)
        if by:
            choice = (chosen or {}).get(name, "")
            is_open = by == "conflict" and chosen is not None and not choice
            problem = _("Choose a version.") if is_open else ""
            base_, theirs_, mine_ = (_shown(version.get(name)) for version in (was, now, mine))
            lines.append(ConflictLine(number, name, base_, theirs_, mine_, by, choice, problem))
    return sorted(lines, key=lambda line: line.by != "conflict")


def _merged(base: StoredEntity, theirs: StoredEntity | None, mine: Properties) -> MergeResult:
    found = None if theirs is None else read_stored(theirs).properties
    return merge.merge(read_stored(base).properties, found, mine)


def _changed_by(was: EdmValue | None, now: EdmValue | None, mine: EdmValue | None) -> str:
    is_mine, is_theirs = not merge.is_same(was, mine), not merge.is_same(was, now)
    if is_mine and is_theirs:
        return "both"
    return "mine" if is_mine else "theirs" if is_theirs else ""


def _shown(value: EdmValue | None) -> ShownValue:
    if value is None:
        return ShownValue()
    text = edited_text(value, typed_text.field_form(value))
    return ShownValue(text[:LONGEST], value.type.value, is_empty=not text, is_cut=len(text) > LONGEST)


# decisions


def settle_conflict(request: HttpRequest, target: EntityTarget, action: str) -> HttpResponse:
    base = read_signed_entity(target.table, request.POST.get("opened", ""))
    image = read_signed_entity(target.table, request.POST.get("mine", ""))
    if action == "theirs":
        return see_other(target.address())
    if action == "discard":
        return pages.leave(request, target, target.table_address)
    if base is None or image is None or target.key not in (base.key, image.key):
        notify_error(request, _("This form has expired. Nothing was saved."))
        return see_other(target.address())
    mine = read_stored(image).properties
    edit = EntityEdit(request, target.table, target.key)
    if action == "insert":
        return _write(edit, target, base, mine, Insert(Entity(target.key, mine)))
    return _save_merged(edit, target, base, mine)


def _save_merged(
    edit: EntityEdit, target: EntityTarget, base: StoredEntity, mine: Properties
) -> HttpResponse:
    request, theirs = edit.request, edit.stored
    chosen = _chosen(request)
    if theirs is None or write_etag(theirs.timestamp) != request.POST.get("etag"):
        return render_conflict(request, target, base, mine, edit.conflict(), problem=_changed_again())
    merged = _merged(base, theirs, mine)
    if any(conflict.name not in chosen for conflict in merged.conflicts):
        return render_conflict(request, target, base, mine, edit.conflict(), chosen)
    settled = merged.settled(frozenset(name for name, choice in chosen.items() if choice == "mine"))
    change = Update(Entity(target.key, settled), Precondition(theirs.timestamp), merge=False)
    return _write(edit, target, base, mine, change)


def _changed_again() -> str:
    return _("The entity changed again while you were choosing. This is the current version.")


def _chosen(request: HttpRequest) -> dict[str, str]:
    """Return the choices by the name of the property."""
    choices = {}
    for name in request.POST:
        number = name.removeprefix("choice-")
        choice = request.POST[name]
        if number != name and choice in {"mine", "theirs"}:
            choices[request.POST.get(f"property-{number}", "")] = choice
    return choices


def _write(
    edit: EntityEdit, target: EntityTarget, base: StoredEntity, mine: Properties, change: Change
) -> HttpResponse:
    request, done = edit.request, edit.save(lambda: change)
    match done:
        case Conflict():
            return render_conflict(request, target, base, mine, done, problem=_changed_again())
        case Refusal():
            problem = problems.describe_error(done.error, Entity(target.key, mine, target.kind))
            chosen = _chosen(request)
            return render_conflict(request, target, base, mine, edit.conflict(), chosen, problem.text)
    text = _("Inserted the entity again") if isinstance(change, Insert) else _("Saved the merged version")
    notify_success(request, text, undo=done.activity)
    return see_other(target.address())


def read_mine(request: HttpRequest, target: EntityTarget) -> Properties:
    """Return the edited properties, to start a new entity."""
    image = or_404(read_signed_entity(target.table, request.POST.get("mine", "")))
    return read_stored(image).properties
