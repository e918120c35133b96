"""Changes of entities that were made: what each did to its entity, and in a history also who made it and when."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.values.ticks import to_datetime

Who = TypeVar("Who")
Where = TypeVar("Where")


class Op(StrEnum):
    """What was done to an entity, as it is stored."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"

    @property
    def word(self) -> str:
        return self.name.lower()


class ChangedEntity(NamedTuple):
    """An entity before and after a change; None where it did not exist, or where it is not known."""

    key: EntityKey
    before: StoredEntity | None
    after: StoredEntity | None


class RecordedChange(NamedTuple):
    """A change in the history of an account; ``before`` is None for an insertion, ``after`` for a deletion.

    ``ticks`` is the new Timestamp, of a deletion when it was made. ``after`` is also None if it is not known, because a
    later change was not recorded. The request is that of the actor.
    """

    sequence: int
    op: Op
    table: str
    table_id: int
    key: EntityKey
    ticks: int
    actor: Actor
    before: StoredEntity | None
    after: StoredEntity | None

    @property
    def kind(self) -> str:
        return self.op.word

    @property
    def at(self) -> datetime:
        return to_datetime(self.ticks)


class VersionPage(NamedTuple):
    """Changes of one entity from the newest to the oldest; ``next``: the sequence of the first on the next page."""

    versions: Sequence[RecordedChange]
    next: int | None


class ChangeGroup(NamedTuple, Generic[Who, Where]):
    """The changes that one request made in one table: several entities, or one.

    ``actor`` and ``table``: their ids, as they are stored, or what has these ids. ``key`` is that of the latest change.
    ``is_open``: there may be more changes than the numbers say.
    """

    request: str
    table: Where
    actor: Who
    latest: datetime
    earliest: datetime
    inserted: int
    changed: int
    deleted: int
    key: EntityKey
    is_open: bool

    @property
    def number(self) -> int:
        return self.inserted + self.changed + self.deleted

    @property
    def is_mixed(self) -> bool:
        """Whether it is of more than one kind."""
        return [self.inserted, self.changed, self.deleted].count(0) < 2


class ChangePage(NamedTuple, Generic[Who, Where]):
    """Groups of changes, the newest first; ``is_last``: there are none beyond it in the direction of reading."""

    entries: Sequence[ChangeGroup[Who, Where]]
    is_last: bool
