"""Another order than that of the keys: by a property, of whatever types its values are. The service has none."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from storage.domain.entities.glances import Glance
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Operator
from storage.domain.filters.keys import storable
from storage.domain.values.names import check_key

ABSENT: Final = 9  # the rank of an entity without the property: last in either direction
COMPARED: Final = 100  # characters of a text: beyond them the keys decide
_NUMBER = re.compile(r"-?[0-9]{1,700}(?:\.[0-9]{1,1100})?|NaN", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sort:
    """By type, then value: booleans, numbers whatever their type, texts by code point, times, GUIDs, binaries."""

    property: str
    descending: bool = False


class SortedPosition(NamedTuple):
    """Where the first entity not returned stands in the order."""

    rank: int
    number: str
    text: str
    partition_key: str
    row_key: str

    @classmethod
    def read(cls, found: object) -> Self | None:
        """From what was a list of the members; None for what can be no position."""
        match found:
            case [int(rank), str(number), str(text), str(partition_key), str(row_key)]:
                position = cls(rank, number, text, partition_key, row_key)
                return position if position._is_possible() else None
        return None

    def _is_possible(self) -> bool:
        try:
            check_key("PartitionKey", self.partition_key)
            check_key("RowKey", self.row_key)
        except StorageError:
            return False
        is_text = storable(Operator.EQ, self.text) == (Operator.EQ, self.text)
        return 0 <= self.rank <= ABSENT and is_text and _NUMBER.fullmatch(self.number) is not None


class SortedPage(NamedTuple):
    entities: list[Glance]
    next: SortedPosition | None
