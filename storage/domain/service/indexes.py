"""Indexes of single properties: what they are called, and how many a table may have."""

from enum import StrEnum
from typing import Final

INDEX_LIMIT: Final = 20  # in a table: each one makes writes slower

INDEXED_FROM: Final = 10_000  # entities; testing fewer takes some milliseconds


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
