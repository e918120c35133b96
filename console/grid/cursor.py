"""Where a page of entities starts, as it stands in an address: opaque, and harmless if it is forged."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Final

from storage.domain.errors import StorageError
from storage.domain.filters.query import Position, SortedPosition
from storage.domain.values.names import check_key

CUT: Final = "-"  # stands for those that were left out
LONGEST: Final = 1500  # characters of the pages before; an address is to stay below what proxies take


@dataclass(frozen=True, slots=True)
class Cursor:
    """The first key of a page, or place in the order of a property, and how many rows were on the pages before."""

    position: Position | SortedPosition
    rows: int


def write(cursor: Cursor) -> str:
    text = json.dumps([*cursor.position, cursor.rows], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(token: str) -> Cursor | None:
    """None for what is none of ours."""
    try:
        found = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
        *place, rows = found
        position = _read_position(place)
        return None if position is None else Cursor(position, min(max(0, int(rows)), 2**63))
    except (ValueError, TypeError, binascii.Error, OverflowError, RecursionError, StorageError):
        return None


def _read_position(place: list[Any]) -> Position | SortedPosition | None:
    if len(place) != len(Position._fields):
        return SortedPosition.read(place)
    for key in place:
        check_key("key", key)
    return Position(*place)


def shortened(tokens: list[str]) -> list[str]:
    """The last of them that together fit into an address, one at least; led by a mark when some do not."""
    kept: list[str] = []
    length = 0
    for token in reversed(tokens):
        length += len(token)
        if kept and length > LONGEST:
            return [CUT, *kept[::-1]]
        kept.append(token)
    return kept[::-1]
