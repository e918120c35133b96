"""Observed operations of clients, with the times at which each began and was answered.

Times are those of the monotonic clock, which all processes of the machine share. The version of an entity is its
Timestamp in ticks: the service promises that it grows with each write of the entity.

Each write has a value of its own, which it leaves in the property ``n``. Merges leave it in another property as well,
so that an entity shows which writes it was made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Key = tuple[str, str]
OTHERS = "abc"  # properties that merges write besides
# kinds of reads that a replica may answer
WEAKER = ("BoundedStaleness", "ConsistentPrefix", "Eventual", "secondary")


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
    """A write; no two writes of a key have the same value."""

    session: str
    key: Key
    value: int
    began: float
    ended: float | None = None  # None without an acknowledgement: it may have happened, even later
    version: int | None = None  # None also for a deletion
    change_set: int | None = None  # the same number for all writes of a change set
    kind: Kind = Kind.UPSERT
    other: str = ""  # the other property that a merge writes
    if_match: int = 0  # a version; 0 means any
    refused: str = ""  # the code of a write without effect


@dataclass(frozen=True, slots=True)
class Read:
    """An observation of one entity, or of several in one snapshot."""

    session: str
    level: str
    began: float
    ended: float
    seen: Mapping[Key, Seen]
    moment: int | None = None  # ticks of a read of the past


class Change(NamedTuple):
    """A change in the feed, or in the list of versions of an entity."""

    sequence: int
    key: Key
    version: int  # the time of a deletion
    before: Seen
    after: Seen
    request: str


class Restored(NamedTuple):
    """The changes of the clients' table in a restored database, and when the restore was asked for."""

    began: float
    changes: Sequence[Change]


@dataclass
class History:
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # codes of operations that were not acknowledged
    without_effect: list[Write] = field(default_factory=list)  # a conflict, or nothing there
    past: list[Read] = field(default_factory=list)

    def of_level(self, *levels: str) -> list[Read]:
        return [read for read in self.reads if read.level in levels]
