"""Kinds of entities in a table, recognized by their properties: groups of similar sets of properties."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm
from storage.sql.design import PropertySet

_ALIKE: Final = 0.6  # share of common properties from which two sets are of one kind
_MOST: Final = 12  # kinds that are shown


@dataclass(slots=True)
class Kind:
    """Entities with similar properties."""

    entities: int
    example: EntityKey
    properties: Counter[str] = field(default_factory=Counter)  # the number of entities that have each

    @property
    def always(self) -> frozenset[str]:
        """Return the properties that all of them have."""
        return frozenset(name for name, number in self.properties.items() if number == self.entities)


@dataclass(frozen=True, slots=True)
class EntityKind:
    """Kind of entities: their number in the sample, an example, their properties, and a filter that finds them."""

    entities: int
    example: EntityKey
    properties: tuple[
        tuple[str, float], ...
    ]  # with the share of entities that have them, the most frequent first
    filter: str  # in the console's form, with isset(); empty for the only kind


@dataclass(frozen=True, slots=True)
class MixedProperty:
    """Property with several types, with the number of entities for each."""

    name: str
    types: tuple[tuple[Edm, int], ...]


def find_kinds(sets: Sequence[PropertySet]) -> list[EntityKind]:
    """Group sets of properties into kinds, the most frequent first."""
    kinds: list[Kind] = []
    for one in sorted(sets, key=lambda it: -it.entities):
        names = {name for name, _ in one.properties}
        kind = next((kind for kind in kinds if _are_alike(names, set(kind.properties))), None)
        if kind is None:
            kind = Kind(0, one.example)
            kinds.append(kind)
        kind.entities += one.entities
        kind.properties.update(dict.fromkeys(names, one.entities))
    kinds = _merge(sorted(kinds, key=lambda it: -it.entities))
    return [_describe(kind, kinds) for kind in kinds[:_MOST]]


def _merge(kinds: Sequence[Kind]) -> list[Kind]:
    """Merge each kind into a larger one from which no property tells it apart, as with many optional properties."""
    merged: list[Kind] = []
    for kind in kinds:
        larger = next((other for other in merged if not _differ(kind, other)), None)
        if larger is None:
            merged.append(kind)
        else:
            larger.entities += kind.entities
            larger.properties.update(kind.properties)
    return merged if len(merged) == len(kinds) else _merge(sorted(merged, key=lambda it: -it.entities))


def _differ(kind: Kind, other: Kind) -> bool:
    """Return whether all entities of one kind have a property that no entity of the other has."""
    return any(one.always - two.properties.keys() for one, two in ((kind, other), (other, kind)))


def _are_alike(names: set[str], others: set[str]) -> bool:
    if not names or not others:
        return names == others
    return len(names & others) / len(names | others) >= _ALIKE or (
        names < others and 2 * len(names) >= len(others)
    )


def _describe(kind: Kind, kinds: Sequence[Kind]) -> EntityKind:
    shares = sorted(kind.properties.items(), key=lambda it: (-it[1], it[0]))
    properties = tuple((name, number / kind.entities) for name, number in shares)
    return EntityKind(kind.entities, kind.example, properties, _filter(kind, kinds))


def _filter(kind: Kind, kinds: Sequence[Kind]) -> str:
    """Return a filter that finds only the entities of a kind, by a property of its own or by missing ones."""
    others = [other for other in kinds if other is not kind]
    if not others:
        return ""
    own = sorted(name for name in kind.always if not any(name in other.properties for other in others))
    if own:
        return f"isset({own[0]})"
    parts = []
    for other in others:
        name = min((name for name in other.always if name not in kind.properties), default=None)
        if name is None:
            return ""
        parts.append(f"not isset({name})")
    return " and ".join(dict.fromkeys(parts))


def find_mixed(sets: Sequence[PropertySet]) -> list[MixedProperty]:
    """Return the properties that have several types, by name."""
    return [
        MixedProperty(name, tuple(types.most_common()))
        for name, types in sorted(count_types(sets).items())
        if len(types) > 1
    ]


def count_types(sets: Sequence[PropertySet]) -> dict[str, Counter[Edm]]:
    """Count the entities that have each property with each type."""
    counted: defaultdict[str, Counter[Edm]] = defaultdict(Counter)
    for one in sets:
        for name, type_ in one.properties:
            counted[name][type_] += one.entities
    return counted
