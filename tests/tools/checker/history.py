"""What clients did and saw, with the times at which each operation began and was answered.

Times are those of the monotonic clock, which all processes of the machine share. The version of an entity is its
Timestamp in ticks: the service promises that it grows with each write of the entity.

Each write has a value of its own, which it leaves in the property ``n``. Merges leave it in another property as well,
so that what is there tells which writes it was made of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Key = tuple[str, str]
OTHERS = "abc"  # properties that merges write besides


class Seen(NamedTuple):
    """The state of an entity; version 0 if there was none."""

    version: int
    value: int
    others: frozenset[tuple[str, int]] = frozenset()


ABSENT = Seen(0, 0)


class Kind(Enum):
    """Operations that change an entity, with their methods."""

    INSERT = "POST"
    REPLACE = "PUT"  # with If-Match
    MERGE = "MERGE"
    UPSERT = "PUT", "without If-Match"
    UPSERT_MERGE = "MERGE", "without If-Match"
    DELETE = "DELETE"

    @property
    def method(self) -> str:
        return self.value[0] if isinstance(self.value, tuple) else self.value

    @property
    def is_conditional(self) -> bool:
        return self in (Kind.REPLACE, Kind.MERGE, Kind.DELETE)

    @property
    def merges(self) -> bool:
        return self in (Kind.MERGE, Kind.UPSERT_MERGE)


@dataclass(frozen=True, slots=True)
class Write:
    """A write; without ``ended`` and ``version`` if it was not acknowledged: it may have happened, even later.

    No two writes of a key have the same value. Those of a change set have the same ``change_set``. A deletion has no
    version. ``refused`` is the code of a write that did nothing.
    """

    session: str
    key: Key
    value: int
    began: float
    ended: float | None = None
    version: int | None = None
    change_set: int | None = None
    kind: Kind = Kind.UPSERT
    other: str = ""  # the other property that a merge writes
    if_match: int = 0  # a version; 0 means any
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What one read saw: of one entity, or of several in one snapshot; ``moment`` in ticks if it was of the past."""

    session: str
    level: str
    began: float
    ended: float
    seen: Mapping[Key, Seen]
    moment: int | None = None


class Change(NamedTuple):
    """A change as the feed, or the list of versions of an entity, tells of it."""

    sequence: int
    key: Key
    version: int  # of a deletion: when it was made
    before: Seen
    after: Seen
    request: str


@dataclass
class History:
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # codes of operations that were not acknowledged
    without_effect: list[Write] = field(default_factory=list)  # a conflict, or nothing there
    past: list[Read] = field(default_factory=list)

    def of_level(self, *levels: str) -> list[Read]:
        return [read for read in self.reads if read.level in levels]
