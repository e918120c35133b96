"""Consistency levels: how current the data of a request must be, and which writes it must include.

The levels and the headers are those of Cosmos DB: https://learn.microsoft.com/azure/cosmos-db/consistency-levels
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Consistency(StrEnum):
    """Consistency level, strongest first."""

    STRONG = "Strong"  # every acknowledged write is seen
    BOUNDED_STALENESS = "BoundedStaleness"  # every write that was acknowledged longer ago than the bound
    SESSION = "Session"  # everything that the session has written and read, by its token
    CONSISTENT_PREFIX = "ConsistentPrefix"  # the writes up to some point, none without those before it
    EVENTUAL = "Eventual"  # the same, for PostgreSQL replays writes in their order

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS: Final = {level: rank for rank, level in enumerate(Consistency)}
_BY_NAME: Final = {level.lower(): level for level in Consistency} | {"bounded": Consistency.BOUNDED_STALENESS}

STALENESS_LIMIT: Final = 86_400  # seconds: the longest bound of an account


def read_level(text: str) -> Consistency | None:
    """Parse a consistency level in any letter case; None if it is unknown."""
    return _BY_NAME.get(text.strip().lower())


@dataclass(slots=True)
class Session:
    """Log positions of a session: ``token`` before a request, and ``position`` including it, None without one."""

    token: int = 0
    position: int | None = None

    def note(self, position: int) -> None:
        if self.position is None or position > self.position:
            self.position = position


@dataclass(frozen=True, slots=True)
class ReadTerms:
    """Requested consistency of reads, below strong."""

    level: Consistency
    max_staleness: float
    session: Session | None = None


# as Cosmos DB writes them: a partition of the data, its version, and a position in its log
_TOKEN: Final = re.compile(r"0:-1#([0-9]{1,19})")
_TOKENS_LIMIT: Final = 100  # in one header


def write_token(position: int) -> str:
    return f"0:-1#{position}"


def read_token(text: str) -> int | None:
    """Parse a session token, or the latest of several separated by commas; None if malformed."""
    parts = text.split(",", _TOKENS_LIMIT)
    matches = [_TOKEN.fullmatch(part.strip()) for part in parts]
    if not all(matches):
        return None
    return max(int(match[1]) for match in matches if match is not None)
