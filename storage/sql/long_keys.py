"""Entities whose keys are too long for an index entry, which holds 2,704 bytes.

They are in a child of the table's relation, which has a unique index on a hash of the keys. PostgreSQL includes a child
in every read, update and deletion of its parent, so only insertions need to know of it. For the first such key of a
table, entity_make_room makes it.
"""

from functools import lru_cache
from typing import Final

from storage.domain.entities.entity import EntityKey, Fragments
from storage.sql import arrays
from storage.sql.failures import ALONE
from storage.sql.history import KEY_LIMIT, Recorder
from storage.sql.statement import Lane, Statement, text_at

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


def operation(name: str, key: EntityKey) -> str:
    """Return the name of an insertion or upsert for the function that applies changes."""
    return f"{name}{_SUFFIX}" if is_long(key) else name


@lru_cache(maxsize=1024)
def call(relation: str) -> str:
    """Return the call of the function of a relation that applies changes."""
    return f"SELECT {relation}_change_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


def recording(recorder: Recorder | None) -> tuple[str | None, str | None]:
    """Return the last parameters of the call."""
    return (None, None) if recorder is None else recorder.parameters


def insert(
    relation: str,
    name: str,
    key: EntityKey,
    row: Fragments,
    recorder: Recorder | None = None,
    gone: str | None = None,
) -> Statement[int]:
    """Insert or upsert one entity with that function; return its Timestamp. ``gone``: the properties a merge sets."""
    projection, annotations, values = row
    parameters = (
        key.partition_key,
        arrays.integers([ALONE]),
        arrays.texts([operation(name, key)]),
        arrays.texts([key.row_key]),
        arrays.bigints([None]),
        arrays.documents([projection]),
        arrays.texts([annotations]),
        arrays.texts([values]),
        arrays.texts([gone]),
        *recording(recorder),
    )
    # an array of one number
    return Statement(call(relation), parameters, Lane.KEY, lambda result: int(text_at(result, 0, 0)[1:-1]))
