"""The versions of a saved query, and its end."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from console.grid import differences
from console.grid.differences import Difference
from console.models import SavedQueryVersion
from console.queries import applied as applied_queries
from console.queries import saved as saved_queries
from console.queries.views.saved import change, check_change, find, to_change
from console.site import notices
from console.site.access import account_required, actor_of, find_table, role_of, user_of
from console.site.addresses import is_console_path
from console.site.responses import see_other
from storage.domain.access.roles import Capability
from storage.models import Account
from storage.operations.activity import ChangedSince


@dataclass(frozen=True, slots=True)
class Line:
    """``differences`` from the version before."""

    version: SavedQueryVersion
    differences: list[Difference]


@require_safe
@account_required(Capability.READ)
def versions(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    found = find_table(account, table)
    query = find(request, found, slug)
    kept = saved_queries.versions(user_of(request), query)
    context = {
        "account": account,
        "table": found,
        "query": query,
        "lines": [
            Line(version, _differences(version, before))
            for version, before in zip(kept, [*kept[1:], None], strict=True)
        ],
        "may_change": saved_queries.may_change(user_of(request), role_of(request), query),
        "parameters": applied_queries.parameters(query),
    }
    return render(request, "console/queries/saved/versions.html", context)


def _differences(version: SavedQueryVersion, before: SavedQueryVersion | None) -> list[Difference]:
    return differences.between({} if before is None else _told(before), _told(version))


def _told(version: SavedQueryVersion) -> dict[str, Any]:
    kept = version.content
    return differences.flat(
        {"name": kept["name"], "description": kept["description"], "query": kept["content"]}
    )


@require_POST
@account_required(Capability.READ)
def restore(request: HttpRequest, account: Account, table: str, slug: str, number: int) -> HttpResponse:
    """An earlier version becomes the newest."""
    found = find_table(account, table)
    query = to_change(request, account, found, slug)
    kept = {version.number: version for version in saved_queries.versions(user_of(request), query)}
    if (version := kept.get(number)) is None:
        raise Http404
    back = reverse("queries:versions", args=(account.name, found.name, slug))
    try:
        change(request, query, saved_queries.draft_at(version, is_shared=query.is_shared))
    except ChangedSince:
        notices.notify_error(request, _("Not restored: a newer version was saved in the meantime."))
    else:
        notices.notify_success(request, _("Restored version %(number)s.") % {"number": number})
    return see_other(back)


@require_POST
@account_required(Capability.READ)
def delete(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    query = saved_queries.find_named(user_of(request), account.pk, table, slug)
    if query is None:
        raise Http404
    check_change(request, account, query)
    try:
        done = saved_queries.delete(query, by=actor_of(request))
    except ChangedSince:
        raise Http404 from None
    notices.notify_success(request, _("Deleted the query %(name)s.") % {"name": query.name}, undo=done)
    back = request.POST.get("next", "")
    return see_other(back if is_console_path(back) else reverse("queries:index", args=(account.name,)))
