"""The versions of an entity: what each change made of it, when, and whose it was."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import StoredEntity


class VersionKind(StrEnum):
    """What a change did."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Version(NamedTuple):
    """A change of an entity; ``before`` is None for an insertion, ``after`` for a deletion.

    ``ticks`` is the new Timestamp, of a deletion when it was made. ``after`` is also None if it is not known, because a
    later change was not recorded.
    """

    sequence: int
    kind: VersionKind
    ticks: int
    actor: Actor
    before: StoredEntity | None
    after: StoredEntity | None


class VersionPage(NamedTuple):
    """Versions from the newest to the oldest; ``next``: the sequence of the first one on the next page."""

    versions: Sequence[Version]
    next: int | None
