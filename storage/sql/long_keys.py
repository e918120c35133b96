"""Entities with keys too long for an index entry, whose maximum is 2,704 bytes."""

from typing import Final

from storage.domain.entities.entity import EntityKey
from storage.domain.errors import KeyValueTooLarge
from storage.sql.forms import capabilities

KEY_LIMIT: Final = 2600  # bytes of both keys in UTF-8, which an index entry has room for
# conditions on a row; the indexes use the first, whose text has to be the same
SHORT_KEYS: Final = f"octet_length(pk) + octet_length(rk) <= {KEY_LIMIT}"
LONG_KEYS: Final = f"NOT ({SHORT_KEYS})"
_SUFFIX: Final = "_long"
_WIDEST: Final = 4  # bytes of a character


def is_long(key: EntityKey) -> bool:
    """Return whether an entity belongs in the child relation for long keys."""
    partition_key, row_key = key
    if len(partition_key) + len(row_key) <= KEY_LIMIT // _WIDEST:
        return False
    return len(partition_key.encode()) + len(row_key.encode()) > KEY_LIMIT


def is_child(relation: str) -> bool:
    return relation.endswith(_SUFFIX)


def operation(relation: str, name: str, key: EntityKey) -> str:
    """Return the change function's operation name for an insert or upsert with this key."""
    if not is_long(key):
        return name
    if not capabilities(relation).has_long_keys:
        raise KeyValueTooLarge
    return f"{name}{_SUFFIX}"
