"""What a filter of a table may hold: its properties, their frequent values, the value of one cell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.grid.columns import KEYS, TIMESTAMP
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.errors import StorageError
from storage.domain.filters import Dialect, Filter, IsSet, Not, parse
from storage.domain.filters.literals import write_literal
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.narrowing import ConditionKind, add_condition, build_condition, fits_in_url
from storage.models import Table
from storage.operations import entities, facets, properties

_SYSTEM: Final = ((KEYS[0], Edm.STRING), (KEYS[1], Edm.STRING), (TIMESTAMP, Edm.DATETIME))
LONGEST_VALUE: Final = 100  # characters of a literal that is offered
ABSENT: Final = "absent"  # the type of what a cell does not have
_OF_ABSENT: Final[Mapping[ConditionKind, Callable[[str], Filter]]] = {
    ConditionKind.IS: lambda name: Not(IsSet(name)),
    ConditionKind.IS_NOT: IsSet,
}
_LITERALS: Final = {
    Edm.BOOLEAN: ("true", "false"),
    Edm.DATETIME: ("datetime'{{now-1h}}'", "datetime'{{now-24h}}'", "datetime'{{now-7d}}'"),
}


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What the menu of a cell offers; ``types`` of the values for which it means something, by a space."""

    how: ConditionKind
    label: str
    icon: str

    @property
    def types(self) -> str:
        return " ".join(sorted([*self.how.types, *([ABSENT] if self.how in _OF_ABSENT else [])]))


def narrowings() -> list[Narrowing]:
    return [
        Narrowing(ConditionKind.IS, _("Filter by this value"), "filter"),
        Narrowing(ConditionKind.IS_NOT, _("Exclude this value"), "circle-off"),
        Narrowing(ConditionKind.GREATER, _("Greater than this value"), "chevron-right"),
        Narrowing(ConditionKind.LESS, _("Less than this value"), "chevron-left"),
        Narrowing(ConditionKind.AROUND, _("Within five minutes"), "clock"),
    ]


def types_of(table: Table) -> dict[str, tuple[Edm, ...]]:
    """The names that a filter may hold, with the types that are stored, the most frequent first."""
    found = {name: (type_,) for name, type_ in _SYSTEM}
    return found | {it.name: it.types for it in properties.sample(table).properties}


def known(table: Table) -> dict[str, Any]:
    shares = {it.name: round(it.share * 100) for it in properties.sample(table).properties}
    return {
        "properties": [
            {
                "name": name,
                "types": ", ".join(type_.short_name for type_ in types),
                "share": shares.get(name, 100),
            }
            for name, types in types_of(table).items()
        ],
        "functions": [
            {"label": label, "apply": f"{label}(", "detail": _("not on Azure")}
            for label in ("contains", "endswith", "isset")
        ],
    }


def values(table: Table, name: str) -> list[dict[str, str]]:
    """The frequent ones first, with how often they were seen; then what is always possible for the type."""
    types = types_of(table).get(name)
    if types is None:
        return []
    found = [pair for facet in facets.facets(table, EntityQuery(), (name,)) for pair in facet.values]
    frequent = {write_literal(value): number_format(count, force_grouping=True) for value, count in found}
    for type_ in types:
        for text in _LITERALS.get(type_, ()):
            frequent.setdefault(text, "")
    return [
        {"text": text, "detail": detail} for text, detail in frequent.items() if len(text) <= LONGEST_VALUE
    ]


def narrowed(table: Table, text: str, key: EntityKey, name: str, how: ConditionKind) -> str:
    """The filter that also asks for what this property of the entity is."""
    wanted = _condition(name, how, _value(table, key, name))
    if wanted is None:
        raise Http404
    try:
        root = parse(text, Dialect.CONSOLE, timezone.now())
    except StorageError:  # what cannot be read cannot be narrowed either
        text, root = "", None
    return add_condition(text, root, wanted)


def _condition(name: str, how: ConditionKind, value: EdmValue | None) -> Filter | None:
    if value is None:
        return _OF_ABSENT[how](name) if how in _OF_ABSENT and name.isidentifier() else None
    return build_condition(name, how, value) if value.type in how.types and fits_in_url(value) else None


def _value(table: Table, key: EntityKey, name: str) -> EdmValue | None:
    stored = entities.get(table, key)
    if stored is None:
        return None
    system = {
        KEYS[0]: EdmValue(Edm.STRING, key.partition_key),
        KEYS[1]: EdmValue(Edm.STRING, key.row_key),
        TIMESTAMP: EdmValue(Edm.DATETIME, stored.timestamp),
    }
    return system.get(name) or read_stored(stored).properties.get(name)
