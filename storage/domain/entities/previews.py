"""An entity as it fits into a grid: what is long is cut, and how long it is is known."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import EdmValue

STRING_PREVIEW_LENGTH: Final = 160  # characters of a String
BINARY_PREVIEW_LENGTH: Final = 24  # bytes of a Binary


class EntityPreview(NamedTuple):
    """``timestamp`` in ticks; ``sizes`` of what is cut, in bytes, a String's in UTF-8.

    A value that is not among the sizes is whole, however long it is.
    """

    key: EntityKey
    timestamp: int
    properties: Mapping[str, EdmValue]
    sizes: Mapping[str, int]
