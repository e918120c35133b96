"""A query while it is written: what the server says of it, and what it changes at a press."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

from console.grid.state import SIZES, GridState, read_state
from console.grid.tokens import decode_entity_key
from console.queries import builder as query_builder
from console.queries import drafts as query_rows
from console.queries import reading as query_reading
from console.queries import values as query_values
from console.queries.builder import Builder
from console.queries.drafts import Rows
from console.site.access import account_required, find_table
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters import Dialect, parse
from storage.domain.filters.query import PAGE_LIMIT
from storage.editing.filters.builder import to_filter, to_text
from storage.editing.filters.narrowing import ConditionKind
from storage.models import Account, Table
from storage.operations import properties


@require_POST
@account_required(Capability.READ)
def check(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What is wrong with a filter, or how it would reach its entities; nothing of them is read."""
    found = find_table(account, table)
    state = read_state(request.POST, found)
    if not wants_part(request):
        return redirect(state.address(account, found))
    return render(request, "console/queries/builder/_answer.html", context(account, found, state))


@require_POST
@account_required(Capability.READ)
def rows(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """The filter that rows say, and the rows after what was done to them."""
    found = find_table(account, table)
    types = query_values.types_of(found)
    drafted = query_rows.read(request.POST, types)
    focus = query_rows.change(drafted, request.POST.get("do", ""))
    state = read_state(request.POST, found)
    state = replace(state, filter=_compiled(drafted, state.filter))
    if request.POST.get("do") == "run" and not wants_part(request):
        return redirect(state.address(account, found))
    builder = Builder(query_builder.box(drafted, types), names=sorted(types), focus=focus, text=state.filter)
    return render_part(
        request,
        page="console/queries/builder/rows.html",
        part="console/queries/builder/_answer.html",
        context=context(account, found, state) | {"builder": builder},
    )


def _compiled(drafted: Rows, text: str) -> str:
    """The text stays as it was written where the rows say the same."""
    now = timezone.now()
    group = query_rows.finished(drafted, now)
    try:
        if parse(text, Dialect.CONSOLE, now) == to_filter(group):
            return text
    except StorageError:  # it was wrong, and rows are not
        pass
    return to_text(group)


def context(account: Account, table: Table, state: GridState) -> dict[str, Any]:
    """What the bar of the query needs, and its parts."""
    reading = query_reading.read(account, table, state, known=properties.sample(table, quickly=True))
    return {
        "account": account,
        "table": table,
        "state": state,
        "sizes": SIZES,
        "reading": reading,
        "most": PAGE_LIMIT,  # entities that Azure reads at once
        "builder": query_builder.requested_builder(table, state, reading),
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


@require_GET
@account_required(Capability.READ)
def select(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Which properties are to be read."""
    found = find_table(account, table)
    state = read_state(request.GET, found).at_start()
    return render(
        request,
        f"console/queries/builder/{'_select' if wants_part(request) else 'select'}.html",
        {
            "account": account,
            "table": found,
            "state": state,
            "others": [(name, value) for name, value in state.fields if name != "s"],
            "names": list(dict.fromkeys([*query_values.types_of(found), *state.select])),
            "types": query_values.types_of(found),
        },
    )


@require_POST
@account_required(Capability.READ)
def cell(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """The filter that also asks for the value of a cell, or for another one."""
    found = find_table(account, table)
    state = read_state(request.POST, found)
    key = decode_entity_key(request.POST.get("key", ""))
    how = request.POST.get("how", "")
    if key is None or how not in list(ConditionKind):
        raise Http404
    text = query_values.narrowed(found, state.filter, key, request.POST.get("name", ""), ConditionKind(how))
    return HttpResponse(format_html('<div data-text="{}"></div>', text))
