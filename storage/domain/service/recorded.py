"""Changes of entities that were made: what each did to its entity, and in a history also who made it and when."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.values.ticks import to_datetime


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
