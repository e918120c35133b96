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
    """Row of a change; ``verb`` is insert, upsert, upsert_merge, replace, merge or delete."""

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
        """Return the operation's name for the change function; raises KeyValueTooLarge."""
        return long_keys.operation(relation, self.verb, self.key) if self.verb in _INSERTING else self.verb


def change_row(change: Change) -> ChangeRow:
    """Convert a change to a row; raises StorageError if its entity exceeds a limit."""
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
    """Serialize an entity for its row; raises StorageError if it exceeds a limit."""
    texts = entity.fragments
    check_size(entity, texts)
    return texts


def text_array(names: Iterable[str]) -> str:
    """Return property names, quoted as in rows, as an array literal."""
    return "{" + ",".join(quote_name(name).replace("\\", "\\\\") for name in names) + "}"
