"""Query bar while editing: validation, builder, completion, and property selection."""

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

from console.grid.state import SIZES, GridState, read_state
from console.grid.tokens import decode_key
from console.queries.builder import Builder, draw_builder, view_group
from console.queries.drafts import GroupDraft, apply_action, finish_group, read_form
from console.queries.reading import read_filter
from console.queries.values import complete_names, complete_values, filter_by_cell, property_types
from console.site.access import table_required
from console.site.responses import render_part, wants_part
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.filters.query import PAGE_LIMIT
from storage.domain.values import dialects
from storage.editing.filters.builder import to_filter, to_text
from storage.editing.filters.narrowing import ConditionKind
from storage.entities import properties
from storage.models import Table


@require_POST
@table_required(Capability.READ)
def check(request: HttpRequest, table: Table) -> HttpResponse:
    """Explain an invalid filter, or a valid filter's access path, without reading entities."""
    state = read_state(request.POST, table)
    if not wants_part(request):
        return redirect(state.address(table))
    return render(request, "console/queries/builder/_answer.html", _bar_context(table, state))


@require_POST
@table_required(Capability.READ)
def edit_conditions(request: HttpRequest, table: Table) -> HttpResponse:
    """Apply a button of the builder; respond with the conditions and their filter."""
    types = property_types(table)
    draft = read_form(request.POST, types)
    focus = apply_action(draft, request.POST.get("do", ""))
    state = read_state(request.POST, table)
    state = replace(state, filter=_filter_text(draft, state.filter))
    if request.POST.get("do") == "run" and not wants_part(request):
        return redirect(state.address(table))
    builder = Builder(view_group(draft, types), names=sorted(types), focus=focus, text=state.filter)
    return render_part(
        request,
        "console/queries/builder/conditions.html",
        "_answer.html",
        _bar_context(table, state) | {"builder": builder},
    )


def _filter_text(draft: GroupDraft, text: str) -> str:
    """Return the filter of the conditions, or the given text unchanged if equivalent."""
    now = timezone.now()
    group = finish_group(draft, now)
    try:
        if parse(text, dialects.CONSOLE, now) == to_filter(group):
            return text
    except StorageError:  # an invalid text is replaced
        pass
    return to_text(group)


def _bar_context(table: Table, state: GridState) -> dict[str, Any]:
    reading = read_filter(table, state, sample=properties.sample(table, quickly=True))
    return {
        "table": table,
        "state": state,
        "sizes": SIZES,
        "reading": reading,
        "most": PAGE_LIMIT,  # entities in a page of Azure
        "builder": draw_builder(table, state, reading),
    }


@require_GET
@table_required(Capability.READ)
def names(request: HttpRequest, table: Table) -> HttpResponse:
    """Return completions for property and function names."""
    return JsonResponse(complete_names(table))


@require_GET
@table_required(Capability.READ)
def values(request: HttpRequest, table: Table) -> HttpResponse:
    """Return completions for values of a property, as literals."""
    found = complete_values(table, request.GET.get("name", ""))
    return JsonResponse({"values": found})


@require_POST
@table_required(Capability.READ)
def cell(request: HttpRequest, table: Table) -> HttpResponse:
    """Add a condition on a cell's value to the filter."""
    state = read_state(request.POST, table)
    key = decode_key(request.POST.get("key", ""))
    how = request.POST.get("how", "")
    if key is None or how not in list(ConditionKind):
        raise Http404
    text = filter_by_cell(table, state.filter, key, request.POST.get("name", ""), ConditionKind(how))
    return HttpResponse(format_html('<div data-text="{}"></div>', text))
