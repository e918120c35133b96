"""What clients did and saw, with the times at which each operation began and was answered.

Times are those of the monotonic clock, which all processes of the machine share. The version of an entity is its
Timestamp in ticks: the service promises that it grows with each write of the entity.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[str, str]


class Seen(NamedTuple):
    """The state of an entity; version 0 if there was none."""

    version: int
    value: int


ABSENT = Seen(0, 0)


@dataclass(frozen=True, slots=True)
class Write:
    """A write; without ``ended`` and ``version`` if it was not acknowledged: it may have happened, even later.

    No two writes of a key have the same value. Those of a change set have the same ``change_set``.
    """

    session: str
    key: Key
    value: int
    began: float
    ended: float | None = None
    version: int | None = None
    change_set: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What one read saw: of one entity, or of several in one snapshot."""

    session: str
    level: str
    began: float
    ended: float
    seen: Mapping[Key, Seen]


@dataclass
class History:
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # codes of operations that were not acknowledged

    def of_level(self, *levels: str) -> list[Read]:
        return [read for read in self.reads if read.level in levels]
