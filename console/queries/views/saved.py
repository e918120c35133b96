"""A saved query: run it, compare and restore its versions, delete it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from console.grid import differences
from console.models import SavedQuery, SavedQueryVersion
from console.queries import saved, saved_changes
from console.queries.forms import ParameterValuesForm, VersionForm, field_name
from console.queries.saved import Definition
from console.site import notices
from console.site.access import account_required, actor_of, role_of, table_required, user_of
from console.site.addresses import is_console_path
from console.site.responses import see_other
from storage.domain.access.roles import Capability
from storage.models import Account, Table
from storage.operations.activity import activity
from storage.operations.activity.activity import ChangedSince


@require_safe
@table_required(Capability.READ)
def run(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    """Redirect to the grid; ask for the values of parameters first, unless the address has them."""
    query = saved.find_query(user_of(request), table.account.pk, table.folded_name, slug)
    if query is None:
        return _show_deleted(request, table, slug)
    names = saved.list_parameters(query)
    is_given = all(field_name(name) in request.GET for name in names)
    form = ParameterValuesForm(query.content.get("f", ""), names, data=request.GET if is_given else None)
    if is_given and not (names and "ask" in request.GET) and form.is_valid():
        state = saved.fill_state(query, form.values).shortened(table)
        return redirect(state.address(table))
    return _ask(request, table, query, form)


def _ask(request: HttpRequest, table: Table, query: SavedQuery, form: ParameterValuesForm) -> HttpResponse:
    is_refused = form.is_bound and "ask" not in request.GET
    if not is_refused:
        form = ParameterValuesForm(
            query.content["f"], saved.list_parameters(query), initial=request.GET.dict()
        )
    context = {"table": table, "query": query, "form": form}
    return render(request, "console/queries/saved/run.html", context, status=422 if is_refused else 200)


def _show_deleted(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    query = saved.find_deleted(user_of(request), table, slug)
    if query is None:
        raise Http404
    deletion = activity.latest_of_query(query.pk)
    context = {
        "table": table,
        "query": query,
        "deletion": deletion,
        "can_restore": deletion is not None and saved.can_change(user_of(request), role_of(request), query),
    }
    return render(request, "console/queries/saved/gone.html", context, status=404)


@require_safe
@table_required(Capability.READ)
def versions(request: HttpRequest, table: Table, slug: str) -> HttpResponse:
    query = saved.get_query(request, table.account, table.folded_name, slug)
    kept = saved.list_versions(user_of(request), query)
    context = {
        "table": table,
        "query": query,
        # each with its differences from the one before
        "versions": [
            (version, differences.compare_settings(_values(before), _values(version)))
            for version, before in zip(kept, [*kept[1:], None], strict=True)
        ],
        "can_change": saved.can_change(user_of(request), role_of(request), query),
        "parameters": saved.list_parameters(query),
    }
    return render(request, "console/queries/saved/versions.html", context)


def _values(version: SavedQueryVersion | None) -> dict[str, Any]:
    if version is None:
        return {}
    kept = version.content
    return differences.flatten_settings(
        {"name": kept["name"], "description": kept["description"], "query": kept["content"]}
    )


@require_POST
@table_required(Capability.READ)
def restore(request: HttpRequest, table: Table, slug: str, number: int) -> HttpResponse:
    """Save an earlier version again, as the latest."""
    query = saved.get_changeable(request, table.account, table.folded_name, slug)
    kept = {version.number: version for version in saved.list_versions(user_of(request), query)}
    if (version := kept.get(number)) is None:
        raise Http404
    # restoring a version does not change the sharing
    definition = Definition(**version.content | {"is_shared": query.is_shared})
    try:
        seen = VersionForm(request.POST).seen
        saved_changes.change_query(query, definition, seen=seen, by=actor_of(request))
    except ChangedSince:
        notices.notify_error(request, _("Not restored: a newer version was saved in the meantime."))
    else:
        notices.notify_success(request, _("Restored version %(number)s.") % {"number": number})
    return see_other(reverse("queries:versions", args=(table.account.name, table.name, slug)))


@require_POST
@account_required(Capability.READ)
def delete(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    query = saved.get_changeable(request, account, table, slug)
    try:
        done = saved_changes.delete_query(query, by=actor_of(request))
    except ChangedSince:
        raise Http404 from None
    notices.notify_success(request, _("Deleted the query %(name)s.") % {"name": query.name}, undo=done)
    back = request.POST.get("next", "")
    return see_other(back if is_console_path(back) else reverse("queries:index", args=(account.name,)))
