"""A query while it is written: what the server says of it, and what it changes at a press."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

from console import grid_state, query_reading, query_values
from console.access import account_required, find_table
from console.grid_state import SIZES, State
from console.keys import read_key
from console.rendering import wants_part
from storage.domain.filters.narrowing import How
from storage.domain.roles import Capability
from storage.models import Account, Table


@require_POST
@account_required(Capability.READ)
def check(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What is wrong with a filter, or how it would reach its entities; nothing of them is read."""
    found = find_table(account, table)
    state = grid_state.read(request.POST, found)
    if not wants_part(request):
        return redirect(state.address(account, found))
    return render(request, "console/query/_answer.html", context(account, found, state))


def context(account: Account, table: Table, state: State) -> dict[str, Any]:
    """What the bar of the query needs, and its parts."""
    return {
        "account": account,
        "table": table,
        "state": state,
        "sizes": SIZES,
        "reading": query_reading.read(account, table, state),
    }


@require_GET
@account_required(Capability.READ)
def known(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What may stand in a filter of this table, for an editor that completes it."""
    return JsonResponse(query_values.known(find_table(account, table)))


@require_GET
@account_required(Capability.READ)
def values(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Frequent values of a property, as a filter writes them."""
    found = query_values.values(find_table(account, table), request.GET.get("name", ""))
    return JsonResponse({"values": found})


@require_POST
@account_required(Capability.READ)
def cell(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """The filter that also asks for the value of a cell, or for another one."""
    found = find_table(account, table)
    state = grid_state.read(request.POST, found)
    key = read_key(request.POST.get("key", ""))
    how = request.POST.get("how", "")
    if key is None or how not in list(How):
        raise Http404
    text = query_values.narrowed(found, state.filter, key, request.POST.get("name", ""), How(how))
    return HttpResponse(format_html('<div data-text="{}"></div>', text))
