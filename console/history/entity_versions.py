"""Versions of an entity for its History page: a list by day, and details."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from console.grid import cells
from console.grid.differences import Difference, ShownValue, compare_property, properties_of
from console.site.actors import label_door, name_actor
from console.site.log_page import LogDay, by_day
from console.site.times import to_local
from storage.domain.entities.entity import StoredEntity
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge

Properties = Mapping[str, EdmValue]

NAMED: Final = 2  # changed properties that a line of the list names


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version in the list."""

    version: RecordedChange
    names: Sequence[str]  # the properties that it changed

    @property
    def at(self) -> datetime:
        return to_local(self.version.at)

    @property
    def first_names(self) -> str:
        return ", ".join(self.names[:NAMED])

    @property
    def more_names(self) -> int:
        return max(0, len(self.names) - NAMED)

    @property
    def who(self) -> str:
        return name_actor(self.version.actor)

    @property
    def door(self) -> str:
        return label_door(self.version.actor.kind)


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Property before and in a version, and now."""

    difference: Difference
    now: ShownValue | None
    is_current: bool  # whether it is still as in the version

    @property
    def type(self) -> str:
        """Return the name of its type, or of both types."""
        sides = (self.difference.before, self.difference.after)
        return " → ".join(dict.fromkeys(Edm(it.type).short_name for it in sides if it is not None))


@dataclass(frozen=True, slots=True)
class PropertyRestore:
    """Effect of restoring a property to before a version; None is unset."""

    name: str
    now: ShownValue | None
    before: ShownValue | None
    is_changed_since: bool  # by a later version


def changed_names(version: RecordedChange) -> list[str]:
    return merge.changed_names(properties_of(version.before), properties_of(version.after))


def days(versions: Sequence[RecordedChange], only: str = "") -> Iterator[LogDay[VersionLine]]:
    """Group versions by day; ``only`` limits them to changes of one property."""
    lines = [VersionLine(version, changed_names(version)) for version in versions]
    shown = [line for line in lines if not only or only in line.names]
    return by_day(shown, lambda line: line.at)


def property_names(versions: Sequence[RecordedChange]) -> list[str]:
    """Return the sorted property names changed by versions."""
    return sorted({name for version in versions for name in changed_names(version)})


def property_changes(version: RecordedChange, now: StoredEntity | None) -> list[PropertyChange]:
    """Return the properties changed by a version, with their current values."""
    before, after, current = properties_of(version.before), properties_of(version.after), properties_of(now)
    return [
        PropertyChange(
            compare_property(name, before.get(name), after.get(name)),
            _shown(current.get(name)),
            merge.is_same(after.get(name), current.get(name)),
        )
        for name in changed_names(version)
    ]


def unchanged(version: RecordedChange) -> list[tuple[str, ShownValue]]:
    """Return the properties that a version did not change."""
    changed = set(changed_names(version))
    return [
        (name, ShownValue(cells.draw(value).markup, value.type))
        for name, value in properties_of(version.after).items()
        if name not in changed
    ]


def property_restores(version: RecordedChange, now: StoredEntity | None) -> list[PropertyRestore]:
    """Return the properties that can be restored to before a version."""
    if version.op is Op.INSERT:
        return []
    before, after, current = properties_of(version.before), properties_of(version.after), properties_of(now)
    names = merge.changed_names(before, after) if now is not None else list(before)
    return [
        PropertyRestore(
            name,
            _shown(current.get(name)),
            _shown(before.get(name)),
            now is not None and not merge.is_same(after.get(name), current.get(name)),
        )
        for name in names
        if not merge.is_same(before.get(name), current.get(name))
    ]


def restored(version: RecordedChange, now: StoredEntity | None, names: Sequence[str]) -> dict[str, EdmValue]:
    """Return the current properties with the named ones reset to before a version."""
    before, properties = properties_of(version.before), dict(properties_of(now))
    for name in names:
        if name in before:
            properties[name] = before[name]
        else:
            properties.pop(name, None)
    return properties


def _shown(value: EdmValue | None) -> ShownValue | None:
    return None if value is None else ShownValue(cells.draw(value).markup, value.type)
