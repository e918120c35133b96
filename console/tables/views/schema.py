"""Schema page of a table: properties inferred from a sample."""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from console.grid import cells
from console.grid.cells import Cell
from console.site.access import table_page
from console.site.refusals import describe_refusal
from console.site.times import write_moment
from storage.domain.access.roles import Capability
from storage.domain.errors import OperationTimedOut
from storage.domain.filters.query import SORTED_TEXT_LENGTH, EntityQuery
from storage.domain.filters.writer import write
from storage.domain.values.edm import EdmValue, write_datetime
from storage.domain.values.ticks import to_datetime
from storage.editing.filters.narrowing import ConditionKind, build_condition, fits_in_url
from storage.editing.filters.types import other_types_filter
from storage.entities import entities, schema
from storage.entities.schema import PropertyType, SchemaProperty
from storage.models import Table
from storage.tables import indexes
from storage.tables.indexes import IndexDetails

_ENTRY_BYTES: Final = 22  # bytes of an index entry, as measured; and those a value needs beside its own
_VALUE_BYTES: Final = 8
_EXAMPLES: Final = 3  # examples of the Timestamp


@dataclass(frozen=True, slots=True)
class PropertyView:
    """A property of a table's schema, with its types and its index."""

    property: SchemaProperty
    percent: float  # percentage of the entities, rounded so that only a property of all of them has 100
    # each with the percentage of the entities that have the property, and with example values, whose
    # addresses are empty where none can be linked
    types: list[tuple[PropertyType, float, list[tuple[Cell, str]]]]
    others: str  # the address of the entities whose type is not the most frequent one, if a filter can tell
    index: IndexDetails | None
    index_size: int  # bytes that an index would need


@table_page(Capability.READ)
@require_GET
def show(request: HttpRequest, table: Table) -> HttpResponse:
    context: dict[str, Any] = {"table": table}
    try:
        described = schema.describe(table)
    except OperationTimedOut as error:
        return render(
            request, "console/tables/schema.html", context | {"error": describe_refusal(error)}, status=503
        )
    stored = {details.index.name: details for details in indexes.describe(table)}
    views = [_view(table, it, stored.pop(it.name, None), described.total) for it in described.properties]
    others = [(name, stored.get(name)) for name in ("Timestamp", *(stored.keys() - {"Timestamp"}))]
    context |= {"schema": described, "properties": views, "other_indexes": others}
    context["timestamps"] = _timestamps(table)
    return render(request, "console/tables/schema.html", context)


def _timestamps(table: Table) -> list[tuple[str, str]]:
    """Return the Timestamps of the first entities as examples, with addresses of entities since then."""
    timestamps = sorted(
        {it.timestamp for it in entities.preview_page(table, EntityQuery(top=_EXAMPLES)).entities}
    )
    return [
        (
            write_moment(to_datetime(ticks)),
            _grid_address(table, f"Timestamp ge datetime'{write_datetime(ticks)}'"),
        )
        for ticks in timestamps
    ]


def _view(table: Table, described: SchemaProperty, index: IndexDetails | None, total: int) -> PropertyView:
    main, *others = (it.type for it in described.types)
    text = other_types_filter(described.name, main, others) if others else ""
    entities = sum(it.entities for it in described.types)
    types = [
        (
            it,
            _percent(it.entities / entities),
            [(cells.draw(value), _example_address(table, described.name, value)) for value in it.examples],
        )
        for it in described.types
    ]
    address = _grid_address(table, text) if text else ""
    return PropertyView(
        described, _percent(described.share), types, address, index, _estimate_index_size(described, total)
    )


def _estimate_index_size(found: SchemaProperty, total: int) -> int:
    """Estimate the bytes of an index: an entry per entity, with its value if set."""
    entities = sum(it.entities for it in found.types)
    value = sum(it.entities * min(it.average_size, SORTED_TEXT_LENGTH) for it in found.types) / entities
    return round(total * (_ENTRY_BYTES + found.share * (_VALUE_BYTES + value)))


def _percent(share: float) -> float:
    return min(99.9, max(0.1, round(100 * share, 1))) if share < 1 else 100


def _example_address(table: Table, name: str, value: EdmValue) -> str:
    if not name.isidentifier() or not fits_in_url(value):
        return ""
    return _grid_address(table, write(build_condition(name, ConditionKind.IS, value)))


def _grid_address(table: Table, text: str) -> str:
    return reverse("entities:index", args=(table.account.name, table.name), query={"f": text})
