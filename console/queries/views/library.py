"""Saved and recent queries of an account, and a table's menu of them."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from console.grid.state import GridState, read_state
from console.models import RecentQuery, SavedQuery
from console.queries import recent, saved
from console.site import toasts
from console.site.access import account_required, role_of, table_required, user_of
from console.site.addresses import address_of, read_text, split_url
from console.site.responses import render_page, see_other
from storage.domain.access.roles import Capability
from storage.models import Account, Table
from storage.tables import tables

MENU_LENGTH: Final = 8  # recent queries; the page shows more


@require_safe
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    text = read_text(request.GET, "q", longest=64)
    tab = "recent" if request.GET.get("tab") == "recent" else "saved"
    queries = _recent(request, account) if tab == "recent" else _saved(request, account, text)
    context: dict[str, Any] = {"text": text, "tab": tab, "queries": queries}
    response = render_page(request, "console/queries/saved/index.html", context)
    response["HX-Replace-Url"] = address_of("queries:index", account.name, q=text)
    return response


def _saved(request: HttpRequest, account: Account, text: str) -> list[tuple[SavedQuery, Table | None, bool]]:
    """Return matching queries, each with its table or None, and whether the user can change it."""
    user, role = user_of(request), role_of(request)
    present = {table.folded_name: table for table in tables.listed(account)}
    lines = [
        (query, present.get(query.table_name), saved.can_change(user, role, query))
        for query in saved.with_earlier_versions(saved.visible_queries(user, [account.pk]))
        if text.casefold() in query.name.casefold() or text.casefold() in query.table_name
    ]
    return sorted(lines, key=lambda line: (line[0].table_name, line[0].name.casefold(), line[0].pk))


def _recent(request: HttpRequest, account: Account) -> list[tuple[RecentQuery, str, str]]:
    """Return recent queries, each with its address and the address to save it."""
    lines = []
    for query in recent.for_account(user_of(request), account.pk):
        state, names = GridState(filter=query.text), (account.name, query.table.name)
        save = reverse("queries:new", args=names, query=state.address_fields)
        lines.append((query, state.address(query.table), save))
    return lines


@require_POST
@account_required(Capability.READ)
def clear_recent(request: HttpRequest, account: Account) -> HttpResponse:
    recent.clear(user_of(request), account.pk)
    toasts.notify_success(request, _("Recent queries cleared."))
    return see_other(f"{reverse('queries:index', args=(account.name,))}?tab=recent")


@require_safe
@table_required(Capability.READ)
def menu(request: HttpRequest, table: Table) -> HttpResponse:
    """Render the menu of the query bar for the grid where it was opened."""
    user = user_of(request)
    context: dict[str, Any] = {
        "table": table,
        "state": _current_state(request, table),
        "queries": [(query, saved.list_parameters(query)) for query in saved.for_table(user, table)],
        "recent": [
            (query, GridState(filter=query.text).address(table))
            for query in recent.for_table(user, table, top=MENU_LENGTH)
        ],
    }
    return render(request, "console/queries/saved/_menu_list.html", context)


def _current_state(request: HttpRequest, table: Table) -> GridState:
    page = split_url(request.headers.get("HX-Current-URL", ""))
    is_grid = page.path == reverse("entities:index", args=(table.account.name, table.name))
    return read_state(QueryDict(page.query) if is_grid else request.GET, table)
