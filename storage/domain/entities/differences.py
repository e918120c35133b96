"""How entities of two tables differ."""

from enum import StrEnum


class DifferenceKind(StrEnum):
    """How an entity differs between the left and the right side."""

    ONLY_LEFT = "left"
    ONLY_RIGHT = "right"
    CHANGED = "changed"
    TYPE_ONLY = "type"  # all values read the same, and at least one has another type
