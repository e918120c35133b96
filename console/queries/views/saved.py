"""Pages of a saved query: creation from a grid, running, editing, versions and deletion."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.grid import differences
from console.grid.state import GridState, read_state
from console.models import SavedQuery
from console.queries import saved, saved_changes
from console.queries.forms import ParameterValuesForm, SavedQueryForm, field_name
from console.queries.saved import Definition, get_applied, grid_content
from console.site import toasts
from console.site.access import (
    RoleNeeded,
    account_required,
    actor_of,
    role_of,
    table_required,
    user_of,
)
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal
from console.site.responses import see_other
from storage.accounts.quotas import QuotaReached
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.domain.access.roles import Capability, may
from storage.editing.filters.parameters import UnfilledParameter
from storage.models import Account, Table
from storage.rest.lookups import or_404


def _address(page: str, table: Table, *arguments: object) -> str:
    return reverse(f"queries:{page}", args=(table.account.name, table.name, *arguments))


# run


@require_safe
@table_required(Capability.READ)
def run(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Redirect to the grid of a saved query, asking for missing parameter values first."""
    query = saved.find_query(user_of(request), table.account.pk, table.folded_name, slug)
    if query is None:
        return _show_deleted(request, table, slug)
    names = saved.list_parameters(query)
    is_asked = bool(names) and "ask" in request.GET
    is_given = all(field_name(name) in request.GET for name in names)
    form = ParameterValuesForm(query.content.get("f", ""), names, data=request.GET if is_given else None)
    if is_given and not is_asked and form.is_valid():
        return redirect(saved.fill_state(query, form.values).shortened(table).address(table))
    is_refused = is_given and not is_asked
    if not is_refused:
        form = ParameterValuesForm(query.content["f"], names, initial=request.GET.dict())
    context = {"table": table, "query": query, "form": form}
    return render(request, "console/queries/saved/run.html", context, status=422 if is_refused else 200)


def _show_deleted(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    query = or_404(saved.find_deleted(user_of(request), table, slug))
    deletion = activity.latest_of_query(query.pk)
    context = {
        "table": table,
        "query": query,
        "deletion": deletion,
        "can_restore": deletion is not None and saved.can_change(user_of(request), role_of(request), query),
    }
    return render(request, "console/queries/saved/gone.html", context, status=404)


# save and change


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def new(request: HttpRequest, table: Table) -> HttpResponse:
    """Save the grid in the address as a new query."""
    return _edit(request, table, None)


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def edit(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Change a query, including its content if the address has a grid of it."""
    return _edit(request, table, saved.get_changeable(request, table.account, table.folded_name, slug))


def _edit(request: HttpRequest, table: Table, query: SavedQuery | None) -> HttpResponse:
    state = _read_state(request, table)
    other = query if query is not None and state.saved != query.slug else None  # the grid is not of this one
    content = grid_content(state) if other is None else other.content
    form = SavedQueryForm(
        request.POST if request.method == "POST" else None,
        initial=_initial_of_grid(request, table, state) if query is None else _initial(query, content),
        taken=[it.name for it in saved.for_table(user_of(request), table) if it != query],
    )
    status = 422 if form.is_bound else 200
    if form.is_bound and form.is_valid():
        _check_sharing(request, table.account, query, form)
        definition = _definition(form, content)
        try:
            target = _save(request, table, query, definition, dict(state.values) | form.parameter_values)
        except QuotaReached as error:
            form.add_error(None, describe_refusal(error))
        except ChangedSince:
            form.add_error(
                None, _("The query was changed in the meantime. Save again to replace that change.")
            )
            status = 409
            assert query is not None
            query.refresh_from_db()
        else:
            toasts.notify_success(request, _("Saved the query %(name)s.") % {"name": definition.name})
            return see_other(
                target if other is None else reverse("queries:index", args=(table.account.name,))
            )
    shown = state if other is None else replace(_saved_state(other), saved=other.slug)
    kept = {name: value for name, value in grid_content(shown).items() if name != "f"}
    context: dict[str, Any] = {
        "table": table,
        "state": shown,
        "form": form,
        "kept": [(differences.setting_name(f"query.{name}"), value) for name, value in kept.items()],
        "back": shown.shortened(table).address(table),
        "sent": state.query() if other is None else "",
        "is_late": status == 409,
    }
    if not may(role_of(request), Capability.WRITE):
        form.fields.pop("is_shared")
    if query is None:
        form.fields["name"].widget.attrs["autofocus"] = not form.is_bound
        context |= {"action": _address("new", table), "quota": saved_changes.own_allowance(user_of(request))}
    else:
        context |= {
            "action": _address("edit", table, query.slug),
            "query": query,
            "seen": saved.revision(query) if status != 422 else request.POST.get("seen"),
            "parameters": saved.list_parameters(query),
        }
    return render(request, "console/queries/saved/edit.html", context, status=status)


def _read_state(request: HttpRequest, table: Table) -> GridState:
    """Return the grid state from the form's ``state`` or the address."""
    sent = QueryDict(request.POST.get("state", "")) if request.method == "POST" else request.GET
    return replace(read_state(sent, table).at_start(), open="", is_counted=False)


def _initial_of_grid(request: HttpRequest, table: Table, state: GridState) -> dict[str, object]:
    source = get_applied(user_of(request), role_of(request), table, state)
    if source is None:
        return {"filter": state.filter, "keeps_view": True}
    name = _("%(name)s (copy)") % {"name": source.query.name[:50]}
    return _initial(source.query, source.content) | {"name": name, "is_shared": False}


def _initial(query: SavedQuery, content: Mapping[str, str]) -> dict[str, object]:
    return {
        "name": query.name,
        "description": query.description,
        "filter": content.get("f", ""),
        "is_shared": query.is_shared,
        "keeps_view": True,
    }


def _check_sharing(
    request: HttpRequest, account: Account, query: SavedQuery | None, form: SavedQueryForm
) -> None:
    is_shared = form.cleaned_data["is_shared"]
    if is_shared and not may(role_of(request), Capability.WRITE):
        raise RoleNeeded(Capability.WRITE, account)
    if query is not None and not saved.may_share_as(user_of(request), query, is_shared=is_shared):
        raise PermissionDenied(
            _("Only %(owner)s can stop sharing this query.") % {"owner": query.owner or "-"}
        )


def _definition(form: SavedQueryForm, content: Mapping[str, str]) -> Definition:
    values = form.cleaned_data
    kept = {name: value for name, value in content.items() if name != "f"} if values["keeps_view"] else {}
    text = {"f": values["filter"]} if values["filter"] else {}
    return Definition(values["name"], values["description"], text | kept, values["is_shared"])


def _save(
    request: HttpRequest,
    table: Table,
    query: SavedQuery | None,
    definition: Definition,
    values: Mapping[str, str],
) -> str:
    """Create or change a query and return its grid; or its own address if parameters lack values."""
    if query is not None:
        _change(request, query, definition)
        return _address("run", table, query.slug)
    query = saved_changes.create_query(table, definition, owner=user_of(request), by=actor_of(request))
    try:
        return saved.fill_state(query, values).shortened(table).address(table)
    except UnfilledParameter:
        return _address("run", table, query.slug)


def _change(request: HttpRequest, query: SavedQuery, definition: Definition) -> None:
    """Change a saved query; raises ChangedSince if it differs from the displayed one."""
    seen = request.POST.get("seen", "")
    saved_changes.change_query(query, definition, seen=seen, by=actor_of(request))


def _saved_state(query: SavedQuery) -> GridState:
    """Return the grid state with unfilled parameters, which cannot be run."""
    fields = QueryDict(mutable=True)
    fields.update(query.content)
    return read_state(fields)


@require_POST
@table_required(Capability.READ)
def update(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Save the grid's state as the content of its query."""
    query = saved.get_changeable(request, table.account, table.folded_name, slug)
    state = replace(_read_state(request, table), saved=slug)
    applied = get_applied(user_of(request), role_of(request), table, state)
    assert applied is not None
    try:
        _change(request, query, replace(saved_changes.read_definition(query), content=applied.content))
    except ChangedSince:
        text = _("Not saved: the query was changed in the meantime.")
        toasts.notify_error(request, text, link=_address("run", table, slug))
    else:
        toasts.notify_success(request, _("Saved the query %(name)s.") % {"name": query.name})
    return see_other(state.shortened(table).address(table))


@require_POST
@account_required(Capability.READ)
def delete(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    query = saved.get_changeable(request, account, table, slug)
    try:
        done = saved_changes.delete_query(query, by=actor_of(request))
    except ChangedSince:
        raise Http404 from None
    toasts.notify_success(request, _("Deleted the query %(name)s.") % {"name": query.name}, undo=done)
    back = request.POST.get("next", "")
    return see_other(back if is_console_path(back) else reverse("queries:index", args=(account.name,)))


@require_safe
@account_required(Capability.READ)
def versions(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    """Download the versions of a query that 1.0 kept."""
    query = saved.get_query(request, account, table, slug)
    kept = saved.list_versions(user_of(request), query)
    content = [
        {"number": it.number, "author": it.author, "saved_at": it.saved_at, **it.content} for it in kept
    ]
    response = JsonResponse(content, safe=False, json_dumps_params={"ensure_ascii": False, "indent": 2})
    name = f"{query.slug}-versions.json"
    response["Content-Disposition"] = str(content_disposition_header(True, name))
    return response
