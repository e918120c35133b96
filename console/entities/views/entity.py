"""Pages of one entity: form, JSON and code."""

from dataclasses import replace
from typing import Any, Final

from django import shortcuts
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from console import snippets
from console.entities import conflict, entity_form, problems, saving
from console.entities import entity_page as pages
from console.entities.entity_draft import EntityDraft, open_draft, read_draft, read_signed_entity
from console.entities.entity_page import EntityTarget
from console.entities.saving import Conflict, EntityEdit, Refusal
from console.grid.cells import Cell, draw
from console.grid.time_travel import find_past
from console.site import layout
from console.site.access import AS_OF, account_context, account_required, role_of, table_of, table_required
from console.site.refusals import describe_refusal
from console.site.responses import render_page, see_other, wants_part
from console.site.toasts import notify_error, notify_success
from console.site.typed_text import input_context
from console.snippets.connections import snippet_target
from storage.domain.access.roles import Capability, may
from storage.domain.entities.changes import Delete, Update
from storage.domain.entities.entity import Entity, EntityKey, StoredEntity, read_stored, write_stored
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.values.etag import NEVER, Precondition, read_if_match
from storage.editing import merge
from storage.entities import entities
from storage.history.past import Past
from storage.models import Account, Table
from storage.rest.lookups import or_404

TABS: Final = ("form", "json", "snippets")
WHOLE: Final = 32 * 1024  # characters; snippets omit larger entities


@require_http_methods(["GET", "HEAD", "POST"])
def entity(request: HttpRequest, **names: Any) -> HttpResponseBase:
    view = save if request.method == "POST" else show
    return view(request, **names)


@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    target = pages.find_target(request, table_of(request))
    if target.table.name != table:
        others = {name: request.GET[name] for name in ("tab", "lang") if name in request.GET}
        return redirect(target.address(**others), permanent=True)
    if request.GET.get("go") == "next":
        return _next(request, target)
    try:
        then = find_past(request.GET, target.table)
    except StorageError as error:
        notify_error(request, describe_refusal(error))
        return redirect(target.address())
    stored = entities.get(target.table, target.key, then)
    if stored is None and then is not None:
        return redirect(target.address("history:entity"))
    if stored is None:
        return pages.render_missing(request, target)
    tab = request.GET.get("tab", "")
    draft = open_draft(target.table, stored, tab if tab in TABS else "form")
    return render(request, target, draft) if then is None else _render_past(request, target, draft, then)


def _next(request: HttpRequest, target: EntityTarget) -> HttpResponse:
    """Redirect to the next entity by key."""
    page = entities.page(target.table, EntityQuery(top=2, start=Position(*target.key)))
    following = next((preview.key for preview in page.entities if preview.key != target.key), None)
    if following is None:
        notify_success(request, _("This is the last entity in the table."))
        return redirect(target.address())
    return redirect(replace(target, key=following).address())


def _render_past(request: HttpRequest, target: EntityTarget, draft: EntityDraft, then: Past) -> HttpResponse:
    """Show an entity as it was, read-only."""
    current = account_context(request)
    assert current is not None
    at = {AS_OF: str(then.moment)}
    context = pages.draft_context(target, draft, in_drawer=wants_part(request)) | {
        "as_of": pages.local_time(then.moment.ticks),
        "may": layout.allowed(current, read_only=True),
        "tabs": [
            (_("Form"), target.address(**at), draft.tab != "json"),
            ("JSON", target.address(tab="json", **at), draft.tab == "json"),
        ],
        "now_address": replace(target, as_of="").address(),
        "history_address": target.address("history:entity"),
        "address": target.address(**at),
        "value_address": target.address("entities:value", **at),
        "values": _values(draft),
    }
    return render_page(request, "console/entities/entity/show.html", context)


def _values(draft: EntityDraft) -> list[tuple[str, str, Cell]]:
    zone = timezone.get_current_timezone()
    return [(name, value.type, draw(value, zone=zone)) for name, value in (draft.properties or {}).items()]


def render(request: HttpRequest, target: EntityTarget, draft: EntityDraft, status: int = 200) -> HttpResponse:
    context = pages.draft_context(target, draft, in_drawer=wants_part(request))
    context["tabs"] = pages.tab_links(target, draft.tab)
    if draft.tab == "snippets":
        context |= _snippets(request, target, draft)
    elif not may(role_of(request), Capability.WRITE):
        context["values"] = _values(draft)
    elif draft.tab == "form":
        context["names"] = pages.without(pages.sample(target.table), draft.properties or {})
    return render_page(request, "console/entities/entity/show.html", context, status=status)


def _snippets(request: HttpRequest, target: EntityTarget, draft: EntityDraft) -> dict[str, Any]:
    language = snippets.LANGUAGES.get(request.GET.get("lang", ""), snippets.LANGUAGES["python"])
    is_whole = draft.before is None or len(draft.before.content) <= WHOLE
    written = language.write(
        snippet_target(request, target.table), draft.entity if is_whole else Entity(draft.key, {})
    )
    return {
        "language": language,
        "languages": [
            (choice.name, target.address(tab="snippets", lang=choice.slug), choice is language)
            for choice in snippets.LANGUAGES.values()
        ],
        "snippets": written if is_whole else [written[0], written[-1]],
        "is_whole": is_whole,
    }


# saving


@table_required(Capability.WRITE)
def save(request: HttpRequest, table: Table) -> HttpResponse:
    target = pages.find_target(request, table)
    action = request.POST.get("action", "save")
    if action == "delete":
        return _delete(request, target)
    if action in conflict.ACTIONS:
        return conflict.settle_conflict(request, target, action)
    draft = read_draft(request, _before(request, target), target.key, input_context(table.account))
    if action == "add":
        return render(request, target, draft.with_blank_row())
    if action == "draft":  # a draft that a browser kept over a reload
        return render(request, target, replace(draft, is_dirty=True))
    if draft.problems:
        return render(request, target, replace(draft, is_dirty=True), 422)
    return _save(request, target, draft, action)


def _before(request: HttpRequest, target: EntityTarget) -> StoredEntity:
    """Return the entity as opened, from its signed form; without properties if the signature is invalid."""
    before = read_signed_entity(target.table, request.POST.get("opened", ""))
    if before is not None and before.key == target.key:
        return before
    condition = _condition(request)
    now = entities.get(target.table, target.key)
    if now is not None and now.timestamp == condition.expected:
        return now
    return write_stored(Entity(target.key, {}), condition.expected or 0)


def _condition(request: HttpRequest) -> Precondition:
    try:
        condition = read_if_match(request.POST.get("etag", ""))
    except StorageError:
        raise Http404 from None
    if condition.expected in (None, NEVER):  # the console never overwrites an unknown version
        raise Http404
    return condition


def _save(request: HttpRequest, target: EntityTarget, draft: EntityDraft, action: str) -> HttpResponse:
    assert draft.before is not None
    assert draft.properties is not None
    base = read_stored(draft.before).properties
    names = merge.changed_names(base, draft.properties)
    if not names:
        notify_success(request, _("Nothing was changed."))
        return see_other(_after(target, draft, action))
    if problem := problems.check_limits(target.kind, draft.entity):
        return render(request, target, draft.refused(problem), 422)
    removed = [name for name in names if name not in draft.properties]
    is_merge = draft.mode == "merge" and draft.tab == "form" and not removed
    properties = {name: draft.properties[name] for name in names} if is_merge else draft.properties
    change = Update(Entity(target.key, properties), Precondition(draft.before.timestamp), merge=is_merge)
    done = EntityEdit(request, target.table, target.key).save(lambda: change)
    match done:
        case Conflict():
            return conflict.render_conflict(request, target, draft.before, dict(draft.properties), done)
        case Refusal():
            problem = problems.describe_error(done.error, draft.entity)
            return render(request, target, draft.refused(problem), 422)
    notify_success(request, _saved(names, removed, draft), undo=done.activity)
    return see_other(_after(target, draft, action))


def _saved(names: list[str], removed: list[str], draft: EntityDraft) -> str:
    if removed and draft.mode == "merge" and draft.tab == "form":
        return _("Saved with Replace, because Merge cannot remove properties")
    return ngettext("Saved %(count)s property", "Saved %(count)s properties", len(names)) % {
        "count": len(names)
    }


def _after(target: EntityTarget, draft: EntityDraft, action: str) -> str:
    if action == "save_next":
        return target.address(go="next")
    return target.address(**({"tab": draft.tab} if draft.tab != "form" else {}))


def _delete(request: HttpRequest, target: EntityTarget) -> HttpResponse:
    change = Delete(target.key, _condition(request))
    done = saving.save(request, target.table, [change])
    if isinstance(done, Refusal):
        if done.is_of_deleted:
            notify_error(request, problems.describe_deletion(target.table, target.key))
            return pages.leave(request, target, target.table_address)
        text = problems.describe_error(done.error, pages.EMPTY).text
        if done.is_conflict:
            text = _("This entity was changed since you opened it. Review it before you delete it.")
        notify_error(request, text)
        return see_other(target.address())
    # in quotation marks, because keys may be empty or end in spaces
    key = f'"{target.key.partition_key}", "{target.key.row_key}"'
    notify_success(request, _("Deleted %(key)s") % {"key": key}, undo=done.activity)
    return pages.leave(request, target, target.table_address)


# checks while a user types


@table_required(Capability.WRITE)
def row(request: HttpRequest, table: Table) -> HttpResponse:
    """Render one row of the form, validated or converted to a new type."""
    before = read_signed_entity(table, request.POST.get("opened", ""))
    base = read_stored(before).properties if before is not None else {}
    target = EntityTarget(table, EntityKey("", ""))
    property_row = or_404(
        entity_form.read_property_row(request.POST, request.FILES, base, input_context(table.account))
    )
    context = pages.draft_context(target, EntityDraft(None, target.key, rows=[property_row]), in_drawer=True)
    return shortcuts.render(request, "console/entities/entity/_row.html", {**context, "row": property_row})
