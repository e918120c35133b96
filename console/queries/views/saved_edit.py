"""Save what a grid shows as a query, and change a saved query."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from console.grid import differences
from console.grid.state import GridState, read_state
from console.models import SavedQuery
from console.queries import saved, saved_changes
from console.queries.forms import SavedQueryForm, VersionForm
from console.queries.saved import Definition, get_applied, grid_content
from console.site import notices
from console.site.access import RoleNeeded, actor_of, role_of, table_required, user_of
from console.site.responses import see_other
from storage.domain.access.roles import Capability, may
from storage.editing.filters.parameters import UnfilledParameter
from storage.models import Account, Table
from storage.operations.activity.activity import ChangedSince


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def new(request: HttpRequest, table: Table) -> HttpResponse:
    """Save the grid that the address describes, which may be a changed saved query."""
    state = _read_state(request, table)
    form = SavedQueryForm(
        request.POST if request.method == "POST" else None,
        initial=_initial_of_grid(request, table, state),
        taken=_taken_names(request, table),
    )
    if request.method == "POST" and form.is_valid():
        _check_sharing(request, table.account, form)
        definition = _definition(form, grid_content(state))
        query = saved_changes.create_query(table, definition, owner=user_of(request), by=actor_of(request))
        notices.notify_success(request, _("Saved the query %(name)s.") % {"name": query.name})
        return see_other(_grid_address(table, query, dict(state.values) | form.parameter_values))
    form.fields["name"].widget.attrs["autofocus"] = not form.is_bound
    context = _form_context(request, table, state, form) | {
        "action": reverse("queries:new", args=(table.account.name, table.name)),
        "sent": state.query(),
    }
    return render(request, "console/queries/saved/edit.html", context, status=422 if form.is_bound else 200)


def _read_state(request: HttpRequest, table: Table) -> GridState:
    """The grid in the form's ``state``, or in the address."""
    sent = QueryDict(request.POST.get("state", "")) if request.method == "POST" else request.GET
    return replace(read_state(sent, table).at_start(), open="", is_counted=False)


def _initial_of_grid(request: HttpRequest, table: Table, state: GridState) -> dict[str, object]:
    initial: dict[str, object] = {"filter": state.filter, "keeps_view": True}
    source = get_applied(user_of(request), role_of(request), table, state)
    if source is not None:
        initial |= {
            "name": _("%(name)s (copy)") % {"name": source.query.name[:50]},
            "description": source.query.description,
            "filter": source.content.get("f", ""),
        }
    return initial


def _taken_names(request: HttpRequest, table: Table, *, but: SavedQuery | None = None) -> list[str]:
    return [query.name for query in saved.for_table(user_of(request), table) if query != but]


def _check_sharing(request: HttpRequest, account: Account, form: SavedQueryForm) -> None:
    if form.cleaned_data["is_shared"] and not may(role_of(request), Capability.WRITE):
        raise RoleNeeded(Capability.WRITE, account)


def _definition(form: SavedQueryForm, content: Mapping[str, str]) -> Definition:
    values = form.cleaned_data
    kept = {name: value for name, value in content.items() if name != "f"} if values["keeps_view"] else {}
    text = {"f": values["filter"]} if values["filter"] else {}
    return Definition(values["name"], values["description"], text | kept, values["is_shared"])


def _grid_address(table: Table, query: SavedQuery, values: Mapping[str, str]) -> str:
    """The grid of the saved query; its own address, which asks for values, if some are missing."""
    try:
        state = saved.fill_state(query, values)
    except UnfilledParameter:
        return reverse("queries:run", args=(table.account.name, table.name, query.slug))
    return state.shortened(table).address(table)


def _form_context(
    request: HttpRequest, table: Table, state: GridState, form: SavedQueryForm
) -> dict[str, Any]:
    if not may(role_of(request), Capability.WRITE):
        form.fields.pop("is_shared")
    kept = {name: value for name, value in grid_content(state).items() if name != "f"}
    return {
        "table": table,
        "state": state,
        "form": form,
        "kept": [(differences.setting_name(f"query.{name}"), value) for name, value in kept.items()],
        "back": state.shortened(table).address(table),
    }


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def edit(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Change a query; its content too, if the address describes the grid of this query."""
    query = saved.get_changeable(request, table.account, table.folded_name, slug)
    state = _read_state(request, table)
    is_from_grid = state.saved == slug
    content = grid_content(state) if is_from_grid else query.content
    form = SavedQueryForm(
        request.POST if request.method == "POST" else None,
        initial=_initial_of_query(query, content),
        taken=_taken_names(request, table, but=query),
    )
    status = 422 if form.is_bound else 200
    if request.method == "POST" and form.is_valid():
        _check_sharing(request, table.account, form)
        _check_unsharing(request, query, form)
        try:
            definition = _definition(form, content)
            saved_changes.change_query(query, definition, seen=form.seen, by=actor_of(request))
        except ChangedSince:
            form.add_error(None, _("A newer version was saved in the meantime. Save again to replace it."))
            status = 409
        else:
            notices.notify_success(request, _("Saved the query %(name)s.") % {"name": definition.name})
            target = "queries:run" if is_from_grid else "queries:versions"
            return see_other(reverse(target, args=(table.account.name, table.name, slug)))
    shown = state if is_from_grid else replace(_saved_state(query), saved=slug)
    context = _form_context(request, table, shown, form) | {
        "action": reverse("queries:edit", args=(table.account.name, table.name, slug)),
        "query": query,
        "version": saved.latest_version(query) if status != 422 else request.POST.get("version"),
        "is_late": status == 409,
        "sent": state.query() if is_from_grid else "",
        "parameters": saved.list_parameters(query),
    }
    return render(request, "console/queries/saved/edit.html", context, status=status)


def _initial_of_query(query: SavedQuery, content: Mapping[str, str]) -> dict[str, object]:
    return {
        "name": query.name,
        "description": query.description,
        "filter": content.get("f", ""),
        "is_shared": query.is_shared,
        "keeps_view": True,
    }


def _check_unsharing(request: HttpRequest, query: SavedQuery, form: SavedQueryForm) -> None:
    """Only the owner may make a query private: for all others it would disappear."""
    if query.is_shared and not form.cleaned_data["is_shared"] and query.owner_id != user_of(request).pk:
        raise PermissionDenied(
            _("Only %(owner)s can stop sharing this query.") % {"owner": query.owner or "-"}
        )


def _saved_state(query: SavedQuery) -> GridState:
    """The grid with parameters in its filter, which cannot be run."""
    fields = QueryDict(mutable=True)
    fields.update(query.content)
    return read_state(fields)


@require_POST
@table_required(Capability.READ)
def update(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Save what the grid shows as the content of its query."""
    query = saved.get_changeable(request, table.account, table.folded_name, slug)
    state = replace(_read_state(request, table), saved=slug)
    applied = get_applied(user_of(request), role_of(request), table, state)
    assert applied is not None
    definition = replace(saved_changes.read_definition(query), content=applied.content)
    try:
        seen = VersionForm(request.POST).seen
        saved_changes.change_query(query, definition, seen=seen, by=actor_of(request))
    except ChangedSince:
        link = reverse("queries:versions", args=(table.account.name, table.name, slug))
        notices.notify_error(request, _("Not saved: a newer version was saved in the meantime."), link=link)
    else:
        notices.notify_success(request, _("Saved the query %(name)s.") % {"name": query.name})
    return see_other(state.shortened(table).address(table))
