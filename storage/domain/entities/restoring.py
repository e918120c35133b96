"""What making entities equal to images of them does, and what it leaves alone."""

from dataclasses import dataclass
from enum import StrEnum

from storage.domain.entities.entity import EntityKey, StoredEntity


class Skip(StrEnum):
    """Why an entity was left alone."""

    CHANGED = "changed"  # it is no longer in the expected version
    GONE = "gone"  # it was deleted
    EXISTS = "exists"  # it was to be inserted, but is there


class Effect(StrEnum):
    """What applying an image would do."""

    INSERTED = "inserted"
    CHANGED = "changed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Preview:
    """How many entities each effect has, and some of them."""

    numbers: dict[Effect, int]
    samples: list["Sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """An entity as it is and as its image is; None where it does not exist."""

    effect: Effect
    key: EntityKey
    now: StoredEntity | None
    then: StoredEntity | None


@dataclass(frozen=True, slots=True)
class Skipped:
    key: EntityKey
    reason: Skip
