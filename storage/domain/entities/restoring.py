"""Effects of making entities equal to images of them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.fits import Misfit


class Skip(StrEnum):
    """Reason why an entity or table was skipped."""

    CHANGED = "changed"  # it is no longer in the expected version
    GONE = "gone"  # it was deleted
    EXISTS = "exists"  # it was to be inserted, but is there
    MOVED = "moved"  # its key was changed, and what has its other key is skipped
    ONLY_TARGET = "only-target"  # a table that was not named
    MISFIT = "misfit"  # it does not fit into an account of the other kind


class TableAction(StrEnum):
    """Effect on a table itself."""

    KEEP = "keep"
    CREATE = "create"
    RESTORE = "restore"  # it is deleted, but not dropped yet
    DELETE = "delete"


class Effect(StrEnum):
    """Effect of applying an image."""

    INSERTED = "inserted"
    CHANGED = "changed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Sample:
    """Entity in its current state and as in its image; None where it does not exist."""

    effect: Effect
    key: EntityKey
    now: StoredEntity | None
    then: StoredEntity | None
    reason: Skip | None = None  # why it is skipped


@dataclass(frozen=True, slots=True)
class Skipped:
    """Skipped entity, or table if ``key`` is None; ``misfit`` tells why it does not fit."""

    effect: ClassVar[Effect] = Effect.SKIPPED
    key: EntityKey | None
    reason: Skip
    misfit: Misfit | None = None
