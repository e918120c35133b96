"""Suggestions for filters of a table: property names, frequent values, and conditions from a cell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.grid.documents import all_values
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.previews import EntityPreview
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter, IsSet, Not
from storage.domain.filters.literals import write_literal
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values import dialects
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_text
from storage.editing.filters.diagnostics import KnownTypes
from storage.editing.filters.lint import SYSTEM_TYPES
from storage.editing.filters.narrowing import ConditionKind, add_condition, build_condition, fits_in_url
from storage.entities import entities, facets, properties
from storage.entities.facets import Facet
from storage.models import Table

LITERAL_LENGTH: Final = 100  # characters of a literal that is offered
ABSENT: Final = "absent"  # in place of the type of a property that is not set
_EXAMPLE_LENGTH: Final = 40  # characters of a clause
_ORDERED: Final = (Edm.INT32, Edm.INT64, Edm.DOUBLE)
_IN_EXAMPLES: Final = (*_ORDERED, Edm.STRING, Edm.BOOLEAN)
_ABSENT_FILTERS: Final[Mapping[ConditionKind, Callable[[str], Filter]]] = {
    ConditionKind.IS: lambda name: Not(IsSet(name)),
    ConditionKind.IS_NOT: IsSet,
}
_LITERALS: Final = {
    Edm.BOOLEAN: ("true", "false"),
    Edm.DATETIME: ("datetime'{{now-1h}}'", "datetime'{{now-24h}}'", "datetime'{{now-7d}}'"),
}


def property_types(table: Table) -> KnownTypes:
    """Return the properties a filter can name, each with its stored types, the most frequent first."""
    return {**SYSTEM_TYPES, **properties.sample(table).schema.types}


# the example of a filter


def example_filter(previews: Sequence[EntityPreview]) -> str:
    """Return an example filter that matches the first entity, by its partition and a short property."""
    if not previews:
        return "PartitionKey eq 'a' and RowKey ge 'b'"
    key = EdmValue(Edm.STRING, previews[0].key.partition_key)
    clauses = [f"PartitionKey eq {write_literal(key)}"] if fits_in_url(key) else []
    literals = [
        f"{name} {'ge' if value.type in _ORDERED else 'eq'} {write_literal(value)}"
        for name, value in previews[0].properties.items()
        if value.type in _IN_EXAMPLES and name not in previews[0].sizes and fits_in_url(value)
    ]
    return " and ".join([*clauses, *[text for text in literals if len(text) <= _EXAMPLE_LENGTH][:1]])


# completion


def complete_names(table: Table) -> dict[str, Any]:
    shares = {named.name: round(named.share * 100) for named in properties.sample(table).properties}
    return {
        "properties": [
            {
                "name": name,
                "types": ", ".join(type_.short_name for type_ in types),
                "share": shares.get(name, 100),
            }
            for name, types in property_types(table).items()
        ],
        "functions": [
            {"label": label, "apply": f"{label}(", "detail": _("not on Azure")}
            for label in ("contains", "endswith", "isset")
        ],
    }


def complete_values(table: Table, name: str) -> list[dict[str, str]]:
    """Return frequent values of a property with their frequency, then generic literals of its type."""
    types = property_types(table).get(name)
    if types is None:
        return []
    proposals = {
        write_literal(value): {"detail": _frequency(facet, count), "value": typed_text.write(value)}
        for facet in facets.facets(table, EntityQuery(), (name,))
        for value, count in facet.values
    }
    for type_ in types:
        for text in _LITERALS.get(type_, ()):
            proposals.setdefault(text, {"detail": "", "value": ""})
    return [{"text": text, **rest} for text, rest in proposals.items() if len(text) <= LITERAL_LENGTH]


def _frequency(facet: Facet, count: int) -> str:
    """Format the frequency of a value: a count, or a share for a sample."""
    if not facet.is_sample:
        return number_format(count, force_grouping=True)
    return _("about %(percent)s%%") % {"percent": max(1, round(100 * count / facet.entities))}


# filters by the value of a cell


@dataclass(frozen=True, slots=True)
class CellFilter:
    """Item of a cell's menu, applicable to certain types."""

    how: ConditionKind
    label: str
    icon: str

    @property
    def types(self) -> str:
        return " ".join(sorted([*self.how.types, *([ABSENT] if self.how in _ABSENT_FILTERS else [])]))


def list_cell_filters() -> list[CellFilter]:
    return [
        CellFilter(ConditionKind.IS, _("Filter by this value"), "filter"),
        CellFilter(ConditionKind.IS_NOT, _("Exclude this value"), "circle-off"),
        CellFilter(ConditionKind.GREATER, _("Greater than this value"), "chevron-right"),
        CellFilter(ConditionKind.LESS, _("Less than this value"), "chevron-left"),
        CellFilter(ConditionKind.AROUND, _("Within five minutes"), "clock"),
    ]


def filter_by_cell(table: Table, text: str, key: EntityKey, name: str, how: ConditionKind) -> str:
    """Add a condition on a cell's value to the filter; raises Http404 if impossible."""
    stored = entities.get(table, key)
    added = _cell_condition(name, how, None if stored is None else all_values(stored).get(name))
    if added is None:
        raise Http404
    try:
        root = parse(text, dialects.CONSOLE, timezone.now())
    except StorageError:  # an invalid filter is replaced
        text, root = "", None
    return add_condition(text, root, added)


def _cell_condition(name: str, how: ConditionKind, value: EdmValue | None) -> Filter | None:
    if value is None:
        return _ABSENT_FILTERS[how](name) if how in _ABSENT_FILTERS and name.isidentifier() else None
    return build_condition(name, how, value) if value.type in how.types and fits_in_url(value) else None
