"""Differences between the entities of two tables, property by property."""

from dataclasses import dataclass

from storage.domain.entities.differences import DifferenceKind
from storage.domain.values import encoding
from storage.domain.values.edm import EdmValue
from storage.editing.merge import Properties, changed_names


@dataclass(frozen=True, slots=True)
class PropertyDifference:
    """Property that differs between two entities, with both values; None where it is absent."""

    name: str
    left: EdmValue | None
    right: EdmValue | None

    @property
    def is_type_only(self) -> bool:
        """Return whether the values print alike and differ only in type, such as 41 as Int32 and String."""
        if self.left is None or self.right is None or self.left.type is self.right.type:
            return False
        return _reading(self.left) == _reading(self.right)


def compare(left: Properties, right: Properties) -> list[PropertyDifference]:
    """Return the properties that differ, in the order of the left side; a different order alone is no difference."""
    return [PropertyDifference(name, left.get(name), right.get(name)) for name in changed_names(left, right)]


def kind_of(left: Properties | None, right: Properties | None) -> DifferenceKind | None:
    """Return how an entity differs, None if it does not; storage.sql.comparing has the same rules."""
    if left is None or right is None:
        return DifferenceKind.ONLY_RIGHT if left is None else DifferenceKind.ONLY_LEFT
    differences = compare(left, right)
    if not differences:
        return None
    if all(difference.is_type_only for difference in differences):
        return DifferenceKind.TYPE_ONLY
    return DifferenceKind.CHANGED


def _reading(value: EdmValue) -> str:
    """Return the JSON text of a value without quotes, and without the fraction of a whole number."""
    return encoding.write(value).replace('"', "").removesuffix(".0")
