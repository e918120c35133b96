"""Rules of property indexes: quotas, and when the server adds and drops them."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

INDEXED_FROM: Final = 5_000  # entities; testing fewer takes hardly longer than the rest of a request

# Adaptive indexes: a query that took so long and read at least INDEXED_FROM rows was a costly scan, because on a busy
# machine time alone says little; so many of them within the period are worth an index.
COSTLY_SCAN: Final = 0.003  # seconds of a query
SCAN_PERIOD: Final = timedelta(days=7)
SCANS_NEEDED: Final = 2
# The budget of a table: each index makes a write up to 10 µs slower and takes space.
EAGER_LIMIT: Final = 4  # with so many indexes, more scans are needed for another
SCANS_NEEDED_BEYOND: Final = 20
ADAPTIVE_LIMIT: Final = 8
ACCOUNT_LIMIT: Final = 200  # adaptive indexes in all tables of an account
DISK_SHARE: Final = 0.5  # bytes of all property indexes, relative to the size of the table without them
ENTRY_BYTES: Final = 60  # of a new index, about
UNUSED_PERIOD: Final = timedelta(days=28)  # after it, an adaptive index is dropped


class IndexState(StrEnum):
    """State of an index. The values are stored."""

    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    DROPPING = "dropping"


class IndexOrigin(StrEnum):
    """Origin of an index: a user or the server. The values are stored."""

    HAND = "hand"
    ADVICE = "advice"  # the explanation of a query
    ADAPTIVE = "adaptive"  # the server, because of the queries it ran


class IndexReason(NamedTuple):
    """Costly scans for which the server created an index."""

    filter: Annotated[str, "Of the last of these queries, without its values."]
    scans: Annotated[int, "Queries that had to read many entities."]
    seconds: Annotated[float, "How long they took together."]
