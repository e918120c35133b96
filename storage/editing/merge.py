"""Three-way merge of an entity that another user changed during an edit."""

from collections.abc import Mapping
from dataclasses import dataclass

from storage.domain.values import encoding
from storage.domain.values.edm import EdmValue

Properties = Mapping[str, EdmValue]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Property that both sides changed to different values; a value is None where the property is absent."""

    name: str
    base: EdmValue | None
    theirs: EdmValue | None
    mine: EdmValue | None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """Result of a merge: ``properties`` are theirs with my changes; conflicting ones are theirs."""

    properties: dict[str, EdmValue]
    conflicts: tuple[Conflict, ...]

    def settled(self, mine: frozenset[str]) -> dict[str, EdmValue]:
        """Resolve conflicts with my value for these names, and theirs for all others."""
        chosen = dict(self.properties)
        for conflict in self.conflicts:
            if conflict.name in mine:
                _put(chosen, conflict.name, conflict.mine)
        return chosen


def merge(base: Properties, theirs: Properties | None, mine: Properties) -> MergeResult:
    """Merge both sides; if ``theirs`` is None, as the entity was deleted, the result is ``mine``."""
    if theirs is None:
        return MergeResult(dict(mine), ())
    merged = dict(theirs)
    conflicts = []
    for name in changed_names(base, mine):
        if is_same(base.get(name), theirs.get(name)):
            _put(merged, name, mine.get(name))
        elif not is_same(theirs.get(name), mine.get(name)):
            conflicts.append(Conflict(name, base.get(name), theirs.get(name), mine.get(name)))
    return MergeResult(merged, tuple(conflicts))


def changed_names(before: Properties, after: Properties) -> list[str]:
    """Return the names of changed, added and removed properties, in the order of before, then after."""
    names = [*before, *(name for name in after if name not in before)]
    return [name for name in names if not is_same(before.get(name), after.get(name))]


def is_same(one: EdmValue | None, other: EdmValue | None) -> bool:
    """Return whether two values are stored identically: NaN equals NaN, and -0.0 differs from 0.0."""
    if one is None or other is None:
        return one is other
    return one.type is other.type and encoding.write(one) == encoding.write(other)


def _put(properties: dict[str, EdmValue], name: str, value: EdmValue | None) -> None:
    if value is None:
        properties.pop(name, None)
    else:
        properties[name] = value
