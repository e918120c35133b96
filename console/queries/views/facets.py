"""Facets: the frequent values of a query's results, each a link to a narrower query."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from console.grid import cells
from console.grid.state import GridState, read_state
from console.site.access import table_required
from console.site.refusals import describe_refusal
from console.site.responses import render_page
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.values.edm import EdmValue
from storage.editing.filters.narrowing import ConditionKind, add_condition, build_condition, fits_in_url
from storage.entities import facets
from storage.entities.facets import Facet
from storage.models import Table


@require_safe
@table_required(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    state = read_state(request.GET, table)
    try:
        counted, error = facets.facets(table, state.wanted), ""
    except StorageError as refused:
        counted, error = [], describe_refusal(refused)
    context: dict[str, Any] = {
        "table": table,
        "state": state,
        "facets": [_view_facet(table, state, facet) for facet in counted],
        "entities": counted[0].entities if counted else 0,
        "is_sample": any(facet.is_sample for facet in counted),
        "error": error,
        "without": replace(state, has_facets=False).address(table),
    }
    return render_page(request, "console/queries/facets/show.html", context)


def _view_facet(table: Table, state: GridState, facet: Facet) -> dict[str, Any]:
    # each value with the number of entities that have it, their share in percent, and the address of their grid
    values = [
        (
            cells.draw(value, zone=state.zone),
            count,
            round(100 * count / facet.entities, 1),
            _narrow(state, facet.name, value).address(table),
        )
        for value, count in facet.values
        if fits_in_url(value)
    ]
    return {"name": facet.name, "values": values, "more": facet.distinct - len(values)}


def _narrow(state: GridState, name: str, value: EdmValue) -> GridState:
    text = add_condition(state.filter, state.wanted.filter, build_condition(name, ConditionKind.IS, value))
    return replace(state.at_start(), filter=text, saved="", values=(), saved_url=None)
