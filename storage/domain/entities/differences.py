"""Differences between entities of two tables."""

from enum import StrEnum


class DifferenceKind(StrEnum):
    """Kind of difference between the left and right side of an entity."""

    ONLY_LEFT = "left"
    ONLY_RIGHT = "right"
    CHANGED = "changed"
    TYPE_ONLY = "type"  # all values read the same, and at least one has another type
