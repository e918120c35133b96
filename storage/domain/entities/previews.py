"""Previews of entities for a grid: long values are truncated, with their full sizes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import EdmValue

STRING_PREVIEW_LENGTH: Final = 160  # characters of a String
BINARY_PREVIEW_LENGTH: Final = 24  # bytes of a Binary


class EntityPreview(NamedTuple):
    """Entity with truncated values; ``timestamp`` in ticks, ``sizes`` of truncated values in bytes (UTF-8)."""

    key: EntityKey
    timestamp: int
    properties: Mapping[str, EdmValue]
    sizes: Mapping[str, int]
