"""Entities whose keys are too long for an index entry, which holds 2,704 bytes.

They are in a child of the table's relation, which has a unique index on a hash of the keys. PostgreSQL includes a child
in every read, update and deletion of its parent, so only insertions need to know of it. For the first such key of a
table, entity_make_room makes it.

A page merges the order of the primary key with a sort of the child's rows in its range: exact, but it reads all of
these rows. A table without long keys has no child, and its statements and plans are as if there were none. The length
alone decides, not whether the keys can be compressed; a row of an older version whose keys could be moves with its next
insertion or upsert. Indexes of properties are on the parent only. A relation without ``has_long_keys`` has no child, so
it refuses long keys with KeyValueTooLarge.
"""

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
    """Return whether an entity belongs into the child relation, whether or not its keys can be compressed."""
    partition_key, row_key = key
    if len(partition_key) + len(row_key) <= KEY_LIMIT // _WIDEST:
        return False
    return len(partition_key.encode()) + len(row_key.encode()) > KEY_LIMIT


def is_child(relation: str) -> bool:
    return relation.endswith(_SUFFIX)


def operation(relation: str, name: str, key: EntityKey) -> str:
    """Return the name of an insertion or upsert for the function that applies changes.

    Raises KeyValueTooLarge if the relation can have no child.
    """
    if not is_long(key):
        return name
    if not capabilities(relation).has_long_keys:
        raise KeyValueTooLarge
    return f"{name}{_SUFFIX}"
