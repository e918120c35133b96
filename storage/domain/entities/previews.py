"""Entities as a grid shows them: long values are cut, and their full sizes are known."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import EdmValue

STRING_PREVIEW_LENGTH: Final = 160  # characters of a String
BINARY_PREVIEW_LENGTH: Final = 24  # bytes of a Binary


class EntityPreview(NamedTuple):
    """An entity with long values cut; ``timestamp`` in ticks, ``sizes`` of the cut values in bytes (Strings in UTF-8).

    A value without a size is complete, however long it is.
    """

    key: EntityKey
    timestamp: int
    properties: Mapping[str, EdmValue]
    sizes: Mapping[str, int]
