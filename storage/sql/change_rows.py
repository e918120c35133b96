"""Row of a change, the common input of single, combined and change-set writes."""

from collections.abc import Iterable
from typing import Final, NamedTuple, assert_never

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, Fragments, check_size, quote_name
from storage.domain.values.kinds import AccountKind
from storage.sql import long_keys

_NO_FRAGMENTS: Final = Fragments("{}", "")  # a deletion has no content
_INSERTING: Final = frozenset({"insert", "upsert", "upsert_merge"})


class ChangeRow(NamedTuple):
    """A change as writes take it; ``verb`` is insert, upsert, upsert_merge, replace, merge or delete.

    ``expected`` is the Timestamp in ticks that the entity must have. ``gone`` are the names of the properties
    that a merge sets, as an array literal. The kind of account makes a difference to merges only.
    """

    verb: str
    key: EntityKey
    fragments: Fragments
    expected: int | None
    gone: str | None
    kind: AccountKind

    @property
    def is_long(self) -> bool:
        """Return whether it may insert an entity whose keys are too long for an index."""
        return self.verb in _INSERTING and long_keys.is_long(self.key)

    def operation(self, relation: str) -> str:
        """Return the verb for the function that applies changes; raises KeyValueTooLarge."""
        return long_keys.operation(relation, self.verb, self.key) if self.verb in _INSERTING else self.verb


def change_row(change: Change) -> ChangeRow:
    """Return the row of a change; raises StorageError if its entity exceeds a limit."""
    match change:
        case Insert(entity):
            return _row("insert", entity)
        case Upsert(entity, merge):
            return _row("upsert_merge" if merge else "upsert", entity, merge=merge)
        case Update(entity, condition, merge):
            return _row("merge" if merge else "replace", entity, condition.expected, merge=merge)
        case Delete(key, condition):
            return ChangeRow("delete", key, _NO_FRAGMENTS, condition.expected, None, AccountKind.STORAGE)
        case _:
            assert_never(change)


def _row(verb: str, entity: Entity, expected: int | None = None, *, merge: bool = False) -> ChangeRow:
    gone = text_array(entity.properties) if merge else None
    texts = written(entity)
    if verb != "insert":
        texts = entity.sorted_fragments
    return ChangeRow(verb, entity.key, texts, expected, gone, entity.kind)


def written(entity: Entity) -> Fragments:
    """Return the texts of an entity's row; raises StorageError if they exceed a limit."""
    texts = entity.fragments
    check_size(entity, texts)
    return texts


def text_array(names: Iterable[str]) -> str:
    """Write property names, quoted as in a row, as a PostgreSQL array literal."""
    return "{" + ",".join(quote_name(name).replace("\\", "\\\\") for name in names) + "}"
