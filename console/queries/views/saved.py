"""Saved queries where they are used: their addresses, and the menu of the query bar."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.grid.state import GridState, read_state
from console.models import SavedQuery
from console.queries import applied as applied_queries
from console.queries import recent as recent_queries
from console.queries import saved as saved_queries
from console.queries.applied import parameters
from console.queries.forms import ValuesForm, field_of
from console.queries.saved import Draft
from console.site import addresses
from console.site.access import RoleNeeded, account_required, actor_of, find_table, role_of, user_of
from storage.domain.access.roles import LEAST_ROLE, Capability
from storage.models import Account, Activity, Table

MENU = 8  # recent ones, of which the page has more


@require_safe
@account_required(Capability.READ)
def apply(request: HttpRequest, account: Account, table: str, slug: str) -> HttpResponse:
    """To the grid; a query with parameters asks for them first, unless the address gives them."""
    found = find_table(account, table)
    query = saved_queries.find(user_of(request), found, slug)
    if query is None:
        return _gone(request, account, found, slug)
    names = parameters(query)
    is_given = all(field_of(name) in request.GET for name in names)
    form = ValuesForm(query.content.get("f", ""), names, data=request.GET if is_given else None)
    if is_given and not (names and "ask" in request.GET) and form.is_valid():
        state = applied_queries.state_of(query, form.values).shortened(account, found)
        return redirect(state.address(account, found))
    return _ask(request, account, found, query, form)


def _ask(
    request: HttpRequest, account: Account, table: Table, query: SavedQuery, form: ValuesForm
) -> HttpResponse:
    is_refused = form.is_bound and "ask" not in request.GET
    if not is_refused:
        form = ValuesForm(query.content["f"], parameters(query), initial=request.GET.dict())
    context = {"account": account, "table": table, "query": query, "form": form}
    return render(request, "console/queries/saved/run.html", context, status=422 if is_refused else 200)


def _gone(request: HttpRequest, account: Account, table: Table, slug: str) -> HttpResponse:
    """What stood there last, if that is still known, and the way back."""
    query = saved_queries.find_deleted(user_of(request), table, slug)
    if query is None:
        raise Http404
    done = Activity.objects.filter(detail__saved=query.pk).order_by("-pk").first()
    may_restore = saved_queries.may_change(user_of(request), role_of(request), query)
    context = {
        "account": account,
        "table": table,
        "query": query,
        "done": done,
        "may_restore": may_restore and done is not None,
    }
    return render(request, "console/queries/saved/gone.html", context, status=404)


@require_safe
@account_required(Capability.READ)
def menu(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What the menu of the query bar holds; the grid that it is opened over is told by htmx."""
    found = find_table(account, table)
    state = _state_of_page(request, account, found)
    user = user_of(request)
    context: dict[str, Any] = {
        "account": account,
        "table": found,
        "state": state,
        "queries": [(query, parameters(query)) for query in saved_queries.of_table(user, found)],
        "recent": [
            (recent, GridState(filter=recent.text).address(account, found))
            for recent in recent_queries.of_table(user, found, top=MENU)
        ],
    }
    return render(request, "console/queries/saved/_menu_list.html", context)


def _state_of_page(request: HttpRequest, account: Account, table: Table) -> GridState:
    page = addresses.split(request.headers.get("HX-Current-URL", ""))
    is_grid = page.path == reverse("entities:index", args=(account.name, table.name))
    return read_state(QueryDict(page.query) if is_grid else request.GET, table)


# for those who change one


def find(request: HttpRequest, table: Table, slug: str) -> SavedQuery:
    query = saved_queries.find(user_of(request), table, slug)
    if query is None:
        raise Http404
    return query


def to_change(request: HttpRequest, account: Account, table: Table, slug: str) -> SavedQuery:
    query = find(request, table, slug)
    check_change(request, account, query)
    return query


def check_change(request: HttpRequest, account: Account, query: SavedQuery) -> None:
    if not saved_queries.may_change(user_of(request), role_of(request), query):
        raise RoleNeeded(LEAST_ROLE[Capability.WRITE], account)


def change(request: HttpRequest, query: SavedQuery, draft: Draft) -> SavedQuery:
    """The field ``version`` is the newest that the form knew; raises ChangedSince."""
    seen = request.POST.get("version", "")
    number = int(seen) if seen.isdecimal() and len(seen) < 9 else 0
    return saved_queries.change(query, draft, seen=number, by=actor_of(request))
