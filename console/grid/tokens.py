"""Tokens in addresses and forms of a grid: the key of an entity, the start of a page, a selection."""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery, Position, SortedPosition
from storage.domain.values import dialects
from storage.domain.values.names import check_key
from storage.editing.filters.diagnosis import parse_filter
from storage.entities import entities
from storage.history.past import Past
from storage.models import Table
from storage.transfer.exports import Scope as Scope

# keys


def encode_key(key: EntityKey) -> str:
    return _encode(key)


def key_query(key: EntityKey) -> str:
    """Return the address fields of a key, including empty keys."""
    return urlencode({"pk": key.partition_key, "rk": key.row_key})


def decode_key(token: str) -> EntityKey | None:
    """Decode a key token; None if invalid."""
    try:
        partition_key, row_key = _decode(token)
        return EntityKey(*_checked([partition_key, row_key]))
    except _INVALID:
        return None


_INVALID: Final = (ValueError, TypeError, binascii.Error, OverflowError, RecursionError, StorageError)


def _encode(content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(token: str) -> Any:
    return json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))


def _checked(keys: Sequence[Any]) -> Sequence[str]:
    for key in keys:
        check_key("key", key, dialects.WIDEST)
    return keys


# starts of pages

EARLIER_CUT: Final = "-"  # stands for the cursors that were left out
LONGEST_CURSORS: Final = 1500  # characters of all cursors: an address must stay below the limit of proxies


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position of a page: its first key, or position in a property's order, and the number of preceding rows."""

    position: Position | SortedPosition
    rows: int


def encode_cursor(cursor: Cursor) -> str:
    return _encode([*cursor.position, cursor.rows])


def decode_cursor(token: str) -> Cursor | None:
    """Decode a cursor token; None if invalid."""
    try:
        *place, rows = _decode(token)
        position = _read_position(place)
        return None if position is None else Cursor(position, min(max(0, int(rows)), 2**63))
    except _INVALID:
        return None


def _read_position(place: list[Any]) -> Position | SortedPosition | None:
    if len(place) != len(Position._fields):
        return SortedPosition.read(place)
    return Position(*_checked(place))


def shorten_cursors(tokens: list[str]) -> list[str]:
    """Return the latest cursors that fit into an address, at least one, with a mark in front if some are cut."""
    kept: list[str] = []
    length = 0
    for token in reversed(tokens):
        length += len(token)
        if kept and length > LONGEST_CURSORS:
            return [EARLIER_CUT, *kept[::-1]]
        kept.append(token)
    return kept[::-1]


# selections


@dataclass(frozen=True, slots=True)
class Selection:
    """Entities that a form concerns: ``keys`` in the scope of rows, ``filter`` in the scope of a query."""

    scope: Scope
    keys: tuple[EntityKey, ...] = ()
    filter: Filter | None = None
    text: str = ""


def selected_pages(
    table: Table, selection: Selection, past: Past | None = None
) -> Iterator[list[StoredEntity]]:
    if selection.scope is Scope.ROWS:
        return entities.get_many_paged(table, selection.keys, past)
    return entities.all_pages(table, EntityQuery(filter=selection.filter), past)


def read_selection(form: QueryDict) -> Selection:
    """Parse the fields key (repeated), scope and f; raises the error of an invalid filter."""
    scope = form.get("scope", "")
    if scope == Scope.TABLE:
        return Selection(Scope.TABLE)
    if scope == Scope.QUERY:
        text = form.get("f", "").strip()
        return Selection(Scope.QUERY, filter=parse_filter(text, timezone.now()), text=text)
    keys = map(decode_key, dict.fromkeys(form.getlist("key")))
    return Selection(Scope.ROWS, tuple(key for key in keys if key is not None))
