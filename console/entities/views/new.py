"""Creation of an entity, empty or as a copy."""

from dataclasses import replace
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console.entities import conflict, problems, property_row
from console.entities import entity_page as pages
from console.entities.entity_draft import EntityDraft, open_draft, read_draft, read_signed_entity
from console.entities.entity_form import FieldError
from console.entities.entity_page import EntityTarget
from console.entities.saving import Refusal, save
from console.grid import tokens
from console.grid.property_order import order_properties
from console.site.access import table_required
from console.site.responses import render_page, see_other, wants_part
from console.site.toasts import notify_success
from console.site.typed_text import input_context
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import KEY_PROPERTIES, Entity, EntityKey, write_stored
from storage.editing import document
from storage.entities import entities
from storage.models import Table

TABS: Final = ("form", "json")


@require_http_methods(["GET", "HEAD", "POST"])
@table_required(Capability.WRITE)
def new(request: HttpRequest, table: Table) -> HttpResponse:
    if request.method == "POST":
        return _save(request, table)
    target, draft = _opened(request, table)
    return render(request, target, draft)


def _opened(request: HttpRequest, table: Table) -> tuple[EntityTarget, EntityDraft]:
    """Return a draft with another entity's values, or with the table's properties and no values."""
    key = EntityKey(request.GET.get("pk", ""), request.GET.get("rk", ""))
    tab = "json" if request.GET.get("tab") == "json" else "form"
    source = tokens.decode_key(request.GET.get("from", ""))
    stored = entities.get(table, source) if source is not None else None
    if stored is None:
        types = pages.sample(table)
        names = order_properties(table, list(types)[: pages.MOST_SUGGESTED])
        rows = [
            property_row.suggested_row(number, name, types[name]) for number, name in enumerate(names)
        ] or [property_row.blank_row(0)]
        draft = EntityDraft(
            None, key, rows=rows, tab=tab, text=document.write(Entity(key, {})), properties={}
        )
        return EntityTarget(table, key), draft
    return EntityTarget(table, stored.key), replace(open_draft(table, stored, tab), is_dirty=False)


def render(
    request: HttpRequest, target: EntityTarget, draft: EntityDraft, status: int = 200, *, empty_keys: str = ""
) -> HttpResponse:
    """Render the form of a new entity; ``empty_keys`` names keys to confirm."""
    context = pages.draft_context(target, draft, in_drawer=wants_part(request))
    context["names"] = pages.without(pages.sample(target.table), {row.name for row in draft.rows})
    context["tabs"] = _tabs(request, draft)
    context["is_new"] = True
    context["empty_keys"] = empty_keys
    context["address"] = target.address("entities:new").partition("?")[0]
    context["key_errors"] = {
        problem.field: problem.text for problem in draft.problems if problem.field in {"pk", "rk"}
    }
    return render_page(request, "console/entities/entity/show.html", context, status=status)


def _tabs(request: HttpRequest, draft: EntityDraft) -> list[tuple[str, str, bool]]:
    query = request.GET.copy()
    tabs = []
    for tab, label in (("form", _("Form")), ("json", "JSON")):
        query.pop("tab", None)
        if tab == "json":
            query["tab"] = tab
        tabs.append(
            (label, f"{request.path}?{query.urlencode()}" if query else request.path, tab == draft.tab)
        )
    return tabs


def _save(request: HttpRequest, table: Table) -> HttpResponse:
    action = request.POST.get("action", "save")
    # the form of an existing entity has its key in the address
    names = request.GET if action == "draft" and "pk" not in request.POST else request.POST
    if not {"pk", "rk"} <= names.keys() and request.POST.get("tab") != "json":
        raise Http404
    target = EntityTarget(table, EntityKey(names.get("pk", ""), names.get("rk", "")))
    if action == "draft_mine":
        return _begin(request, target)
    draft = _draft(request, target)
    match action:
        case "draft":  # from the form of an existing entity
            return render(request, target, replace(draft, problems=(), is_dirty=True))
        case "add":
            return render(request, target, replace(draft.with_blank_row(), problems=()))
    draft = draft.refused(*problems.check_key_values(target.kind, draft.key))
    if not draft.problems and (problem := problems.check_limits(target.kind, draft.entity)):
        draft = draft.refused(problem)
    if draft.problems:
        return render(request, target, draft, 422)
    blank = _blank_keys(draft.key)
    if blank and request.POST.get("blank") != blank:
        return render(request, target, replace(draft, is_dirty=True), 422, empty_keys=blank)
    return _insert(request, replace(target, key=draft.key), draft, action)


def _blank_keys(key: EntityKey) -> str:
    """Return the names of empty keys, which are valid but rarely intended."""
    return " ".join(name for name, value in zip(KEY_PROPERTIES, key, strict=True) if not value)


def _begin(request: HttpRequest, target: EntityTarget) -> HttpResponse:
    """Start a new entity from the edits of a conflict."""
    mine = conflict.read_mine(request, target)
    stored = write_stored(Entity(target.key, mine, target.kind), 0)
    return render(request, target, replace(open_draft(target.table, stored, "form"), is_dirty=True))


def _draft(request: HttpRequest, target: EntityTarget) -> EntityDraft:
    before = read_signed_entity(target.table, request.POST.get("opened", ""))
    draft = read_draft(request, before, target.key, input_context(target.table.account))
    if draft.tab == "json" and draft.properties is not None:
        # the keys of a new entity come from the text
        problems = [problem for problem in draft.problems if problem.about]
        draft = replace(draft, key=document.read(draft.text, target.kind).key, problems=problems)
    return draft


def _insert(request: HttpRequest, target: EntityTarget, draft: EntityDraft, action: str) -> HttpResponse:
    change = Insert(Entity(draft.key, draft.properties or {}))
    done = save(request, target.table, [change])
    if isinstance(done, Refusal):
        problem = problems.describe_error(done.error, draft.entity)
        if done.is_conflict:
            field = "text" if draft.tab == "json" else "rk"
            problem = FieldError(field, "", _("An entity with these keys already exists."))
        return render(request, target, draft.refused(problem), 422)
    notify_success(request, _("Inserted the entity"), undo=done.activity, link=target.address())
    if action == "save_another":
        return see_other(f"{request.path}?from={tokens.encode_key(draft.key)}")
    return pages.leave(request, target, target.address())
