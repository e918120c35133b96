"""Recorded changes of entities, single or grouped by request, and pages of them."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.values.ticks import to_datetime

Who = TypeVar("Who")
Where = TypeVar("Where")
Item = TypeVar("Item")


class Op(StrEnum):
    """Operation on an entity. The values are stored."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"

    @property
    def word(self) -> str:
        return self.name.lower()


class RecordedChange(NamedTuple):
    """Recorded change of an entity, from the history or, without one, from the activity log."""

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


class ChangeGroup(NamedTuple, Generic[Who, Where]):
    """Group of changes by one request in one table, or by many requests of a client within a minute."""

    request: str  # empty if there are several
    table: Where  # the id, as it is stored, or the table
    actor: Who  # the id, as it is stored, or the actor
    latest: datetime
    earliest: datetime
    inserted: int
    changed: int
    deleted: int
    key: EntityKey  # the key of the latest change
    is_open: bool  # there may be more changes than the numbers say
    requests: int = 1
    actor_id: int = 0  # the id of the actor with its address and client

    @property
    def number(self) -> int:
        return self.inserted + self.changed + self.deleted

    @property
    def is_mixed(self) -> bool:
        """Return whether the group has changes of more than one kind."""
        return [self.inserted, self.changed, self.deleted].count(0) < 2


class ChangePage(NamedTuple, Generic[Item]):
    """Page of changes, or of groups of changes, newest first."""

    entries: Sequence[Item]
    # where the next page in the direction of reading begins: the sequence of its first change, or the Timestamp of the
    # last group before it; None if nothing follows
    next: int | None
