"""Three-way merge: two people began with the same entity, and one of them has saved."""

from collections.abc import Mapping
from dataclasses import dataclass

from storage.domain.values import encoding
from storage.domain.values.edm import EdmValue

Properties = Mapping[str, EdmValue]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A property that both changed, and not to the same; None where it is absent."""

    name: str
    base: EdmValue | None
    theirs: EdmValue | None
    mine: EdmValue | None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """``properties``: theirs with what only I changed; those in ``conflicts`` are theirs in it."""

    properties: dict[str, EdmValue]
    conflicts: tuple[Conflict, ...]

    def settled(self, mine: frozenset[str]) -> dict[str, EdmValue]:
        """The whole when of these conflicts my value is taken, and theirs of the others."""
        chosen = dict(self.properties)
        for conflict in self.conflicts:
            if conflict.name in mine:
                _put(chosen, conflict.name, conflict.mine)
        return chosen


def merge(base: Properties, theirs: Properties | None, mine: Properties) -> MergeResult:
    """``theirs`` None: the entity was deleted meanwhile, and what is to be inserted again is what I have."""
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
    """The names whose value is another, added or gone, in the order of before and then of after."""
    names = [*before, *(name for name in after if name not in before)]
    return [name for name in names if not is_same(before.get(name), after.get(name))]


def is_same(one: EdmValue | None, other: EdmValue | None) -> bool:
    """Whether they are stored alike: NaN is NaN, and -0.0 is not 0.0."""
    if one is None or other is None:
        return one is other
    return one.type is other.type and encoding.write(one) == encoding.write(other)


def _put(properties: dict[str, EdmValue], name: str, value: EdmValue | None) -> None:
    if value is None:
        properties.pop(name, None)
    else:
        properties[name] = value
