"""Preview of masking a table: a sample per property, with a suggestion if it looks personal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storage.domain.entities.entity import KEY_PROPERTIES, Entity, EntityKey, read_stored
from storage.domain.entities.masking import Mask, MaskingRule, propose
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.models import Table
from storage.sql import django as sql
from storage.sql.masking import Masking, mask_one

_SAMPLED: Final = 100  # entities
_EXAMPLES: Final = 5  # values of a property
# samples are of no branch
_SECRET: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class PropertySample:
    """Property with its first sampled value and the proposed mask; None if it does not look personal."""

    name: str
    value: EdmValue
    proposal: Mask | None

    @property
    def is_key(self) -> bool:
        return self.name in KEY_PROPERTIES


def samples(table: Table) -> list[PropertySample]:
    """Return sample values of the keys and properties; empty for an empty table."""
    by_name: dict[str, list[EdmValue]] = {}
    for stored in entities.page(table, EntityQuery(top=_SAMPLED)).entities:
        entity = read_stored(stored)
        for name, key in zip(KEY_PROPERTIES, entity.key, strict=True):
            by_name.setdefault(name, []).append(EdmValue(Edm.STRING, key))
        for name, value in entity.properties.items():
            by_name.setdefault(name, []).append(value)
    return [
        PropertySample(name, values[0], propose(name, [it.value for it in values[:_EXAMPLES]]))
        for name, values in by_name.items()
    ]


def masked(values: Mapping[str, EdmValue], rules: Mapping[str, MaskingRule]) -> dict[str, EdmValue]:
    """Apply masking rules to values; removed ones are missing."""
    key = EntityKey(*(str(values[name].value) if name in values else "" for name in KEY_PROPERTIES))
    properties = {name: value for name, value in values.items() if name not in KEY_PROPERTIES}
    # samples of many entities together may exceed the limits of a single one
    entity = Entity(key, properties, AccountKind.COSMOS)
    replaced = read_stored(sql.run(mask_one(Masking(rules, _SECRET), entity)))
    keys = {name: EdmValue(Edm.STRING, text) for name, text in zip(KEY_PROPERTIES, replaced.key, strict=True)}
    return {**{name: value for name, value in keys.items() if name in values}, **replaced.properties}
