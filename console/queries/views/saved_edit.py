"""Saving what a grid shows as a query, and changing one that is saved."""

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
from console.queries import applied as applied_queries
from console.queries import saved as saved_queries
from console.queries.applied import applied, content_of
from console.queries.forms import QueryForm
from console.queries.saved import Draft
from console.queries.views.saved import change, to_change
from console.site import notices
from console.site.access import RoleNeeded, account_required, actor_of, find_table, role_of, user_of
from console.site.responses import see_other
from storage.domain.access.roles import LEAST_ROLE, Capability, may
from storage.editing.filters.parameters import UnfilledParameter
from storage.models import Account, Table
from storage.operations.activity import ChangedSince


@require_http_methods(["GET", "POST"])
@account_required(Capability.READ)
def new(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Save what a grid shows, of which the address says the same as the grid's own; also what a query became."""
    found = find_table(account, table)
    state = _sent_state(request, found)
    initial = _initial(request, account, found, state)
    taken = _names(request, found)
    form = QueryForm(request.POST if request.method == "POST" else None, initial=initial, taken=taken)
    if request.method == "POST" and form.is_valid():
        _check_sharing(request, account, form)
        query = saved_queries.create(
            found, _draft(form, content_of(state)), owner=user_of(request), by=actor_of(request)
        )
        notices.notify_success(request, _("Saved the query %(name)s.") % {"name": query.name})
        return see_other(_grid(account, found, query, dict(state.values) | form.given))
    form.fields["name"].widget.attrs["autofocus"] = not form.is_bound
    context = _form_context(request, account, found, state, form)
    return render(request, "console/queries/saved/edit.html", context, status=422 if form.is_bound else 200)


def _sent_state(request: HttpRequest, table: Table) -> GridState:
    sent = QueryDict(request.POST.get("state", "")) if request.method == "POST" else request.GET
    state = read_state(sent, table)
    return replace(state.at_start(), open="", is_counted=False)


def _initial(request: HttpRequest, account: Account, table: Table, state: GridState) -> dict[str, object]:
    initial: dict[str, object] = {"filter": state.filter, "keeps_view": True}
    source = applied(user_of(request), role_of(request), account, table, state)
    if source is not None:
        initial |= {
            "name": _("%(name)s (copy)") % {"name": source.query.name[:50]},
            "description": source.query.description,
            "filter": source.content.get("f", ""),
        }
    return initial


def _names(request: HttpRequest, table: Table, *, but: SavedQuery | None = None) -> list[str]:
    return [query.name for query in saved_queries.of_table(user_of(request), table) if query != but]


def _check_sharing(request: HttpRequest, account: Account, form: QueryForm) -> None:
    if form.cleaned_data["is_shared"] and not may(role_of(request), Capability.WRITE):
        raise RoleNeeded(LEAST_ROLE[Capability.WRITE], account)


def _draft(form: QueryForm, content: Mapping[str, str]) -> Draft:
    values = form.cleaned_data
    kept = dict(content) if values["keeps_view"] else {}
    kept.pop("f", None)
    text = {"f": values["filter"]} if values["filter"] else {}
    return Draft(values["name"], values["description"], text | kept, values["is_shared"])


def _grid(account: Account, table: Table, query: SavedQuery, values: Mapping[str, str]) -> str:
    """Back to what was saved, under its name; a query that asks for other values does so when it is run."""
    try:
        state = applied_queries.state_of(query, values)
    except UnfilledParameter:
        return reverse("queries:run", args=(account.name, table.name, query.slug))
    return state.shortened(account, table).address(account, table)


def _form_context(
    request: HttpRequest, account: Account, table: Table, state: GridState, form: QueryForm
) -> dict[str, Any]:
    if not may(role_of(request), Capability.WRITE):
        form.fields.pop("is_shared")
    kept = {name: value for name, value in content_of(state).items() if name != "f"}
    return {
        "account": account,
        "table": table,
        "state": state,
        "form": form,
        "kept": [(differences.name_of(f"query.{name}"), value) for name, value in kept.items()],
        "back": state.shortened(account, table).address(account, table),
    }


# one that is there


@require_http_methods(["GET", "POST"])
@account_required(Capability.READ)
def edit(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    """Its name, text and sharing; with a grid's state in the address, also what that shows."""
    found = find_table(account, table)
    query = to_change(request, account, found, slug)
    state = _sent_state(request, found)
    content = content_of(state) if state.saved == slug else query.content
    form = QueryForm(
        request.POST if request.method == "POST" else None,
        initial=_initial_of(query, content),
        taken=_names(request, found, but=query),
    )
    status = 422 if form.is_bound else 200
    if request.method == "POST" and form.is_valid():
        _check_sharing_of(request, account, query, form)
        try:
            changed = change(request, query, _draft(form, content))
        except ChangedSince:
            form.add_error(None, _("A newer version was saved in the meantime. Save again to replace it."))
            status = 409
        else:
            notices.notify_success(request, _("Saved the query %(name)s.") % {"name": changed.name})
            return see_other(reverse(_next(slug, state), args=(account.name, found.name, changed.slug)))
    shown = replace(_state_of(query), saved=query.slug) if content is query.content else state
    context = _form_context(request, account, found, shown, form) | {
        "query": query,
        "version": saved_queries.newest(query) if status != 422 else request.POST.get("version"),
        "is_late": status == 409,
        "sent": state.query() if state.saved == slug else "",
        "asks": applied_queries.parameters(query),
    }
    return render(request, "console/queries/saved/edit.html", context, status=status)


def _next(slug: str, state: GridState) -> str:
    """Back to the grid, if it came from there."""
    return "queries:run" if state.saved == slug else "queries:versions"


def _state_of(query: SavedQuery) -> GridState:
    """Not to be run: what it asks for is not filled."""
    asked = QueryDict(mutable=True)
    asked.update(query.content)
    return read_state(asked)


def _initial_of(query: SavedQuery, content: Mapping[str, str]) -> dict[str, object]:
    return {
        "name": query.name,
        "description": query.description,
        "filter": content.get("f", ""),
        "is_shared": query.is_shared,
        "keeps_view": True,
    }


def _check_sharing_of(request: HttpRequest, account: Account, query: SavedQuery, form: QueryForm) -> None:
    """To keep for oneself what others use is its owner's right alone: for anybody else it would be gone."""
    _check_sharing(request, account, form)
    if query.is_shared and not form.cleaned_data["is_shared"] and query.owner_id != user_of(request).pk:
        raise PermissionDenied(
            _("Only %(owner)s can stop sharing this query.") % {"owner": query.owner or "-"}
        )


@require_POST
@account_required(Capability.READ)
def update(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    """What the grid shows is what the query is from now on."""
    found = find_table(account, table)
    query = to_change(request, account, found, slug)
    state = _sent_state(request, found)
    shown = applied(user_of(request), role_of(request), account, found, replace(state, saved=slug))
    assert shown is not None
    back = replace(state, saved=slug).shortened(account, found).address(account, found)
    try:
        change(request, query, replace(saved_queries.draft_of(query), content=shown.content))
    except ChangedSince:
        link = reverse("queries:versions", args=(account.name, found.name, slug))
        notices.notify_error(request, _("Not saved: a newer version was saved in the meantime."), link=link)
    else:
        notices.notify_success(request, _("Saved the query %(name)s.") % {"name": query.name})
    return see_other(back)
