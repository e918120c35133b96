"""All queries of an account: those that were saved, and those that ran last."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from console.grid.state import GridState
from console.models import SavedQuery
from console.queries import recent as recent_queries
from console.queries import saved as saved_queries
from console.queries.applied import parameters
from console.site import notices
from console.site.access import account_required, role_of, user_of
from console.site.responses import render_part, see_other
from storage.domain.access.roles import Capability
from storage.models import Account, Table


@dataclass(frozen=True, slots=True)
class Line:
    """``table`` None: there is none of this name now."""

    query: SavedQuery
    table: Table | None
    parameters: tuple[str, ...]
    may_change: bool


@require_safe
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    text = request.GET.get("q", "").strip().replace("\0", "")[:64]
    tab = "recent" if request.GET.get("tab") == "recent" else "saved"
    lines = _recent(request, account) if tab == "recent" else _saved(request, account, text)
    context: dict[str, Any] = {"account": account, "text": text, "tab": tab, "lines": lines}
    response = render_part(
        request,
        page="console/queries/saved/index.html",
        part="console/queries/saved/_list.html",
        context=context,
    )
    response["HX-Replace-Url"] = f"{request.path}?{urlencode({'q': text})}" if text else request.path
    return response


def _saved(request: HttpRequest, account: Account, text: str) -> list[Line]:
    user, role = user_of(request), role_of(request)
    found = saved_queries.visible(user, [account.pk])
    tables = {table.folded_name: table for table in Table.objects.own().filter(account=account)}
    wanted = text.casefold()
    lines = [
        Line(
            query,
            tables.get(query.table_name),
            parameters(query),
            saved_queries.may_change(user, role, query),
        )
        for query in found
        if wanted in query.name.casefold() or wanted in query.table_name
    ]
    return sorted(lines, key=lambda it: (it.query.table_name, it.query.name.casefold(), it.query.pk))


def _recent(request: HttpRequest, account: Account) -> list[tuple[Any, str, str]]:
    """Each with where it is run, and where it is saved."""
    return [
        (
            recent,
            GridState(filter=recent.text).address(account, recent.table),
            reverse("queries:new", args=(account.name, recent.table.name))
            + f"?{GridState(filter=recent.text).query()}",
        )
        for recent in recent_queries.of_account(user_of(request), account.pk)
    ]


@require_POST
@account_required(Capability.READ)
def forget(request: HttpRequest, account: Account) -> HttpResponse:
    recent_queries.forget(user_of(request), account.pk)
    notices.notify_success(request, _("Recent queries cleared."))
    return see_other(f"{reverse('queries:index', args=(account.name,))}?tab=recent")
