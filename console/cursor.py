"""Where a page of entities starts, as it stands in an address: opaque, and harmless if it is forged."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.names import check_key
from storage.domain.query import Position

CUT: Final = "-"  # stands for those that were left out
LONGEST: Final = 1500  # characters of the pages before; an address is to stay below what proxies take


@dataclass(frozen=True, slots=True)
class Cursor:
    """The first key of a page, and how many rows were on the pages before."""

    position: Position
    rows: int


def write(cursor: Cursor) -> str:
    text = json.dumps([*cursor.position, cursor.rows], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(token: str) -> Cursor | None:
    """None for what is none of ours."""
    try:
        found = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
        partition_key, row_key, rows = found
        for key in (partition_key, row_key):
            check_key("key", key)
        return Cursor(Position(partition_key, row_key), min(max(0, int(rows)), 2**63))
    except (ValueError, TypeError, binascii.Error, OverflowError, RecursionError, StorageError):
        return None


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
