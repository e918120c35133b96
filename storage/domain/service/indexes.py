"""Indexes of single properties: how many a table may have, and when the server adds and drops them by itself."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from storage.domain.values.kinds import AccountKind

INDEXED_FROM: Final = 10_000  # entities; testing fewer takes some milliseconds

# Adaptive indexes: so many costly scans, and so many seconds of them, within the period are worth an index.
COSTLY_SCAN: Final = 0.02  # seconds of a query
SCAN_PERIOD: Final = timedelta(days=7)
SCANS_NEEDED: Final = 20
SECONDS_NEEDED: Final = 2.0
# The budget of a table: each index makes a write up to 4 µs slower and takes space.
ADAPTIVE_LIMIT: Final = 8
DISK_SHARE: Final = 0.5  # bytes of all property indexes, by those of the table without them
ENTRY_BYTES: Final = 60  # of a new index, about
UNUSED_PERIOD: Final = timedelta(days=28)  # after it, an adaptive index is dropped


class IndexState(StrEnum):
    """The values are stored."""

    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    DROPPING = "dropping"


class IndexOrigin(StrEnum):
    """Who asked for an index; the values are stored."""

    HAND = "hand"
    ADVICE = "advice"  # the explanation of a query
    ADAPTIVE = "adaptive"  # the server, because of the queries it ran


def is_adaptive_by_default(kind: AccountKind) -> bool:
    """Return whether new accounts of a kind have adaptive indexes: Cosmos DB indexes every property."""
    return kind is AccountKind.COSMOS
