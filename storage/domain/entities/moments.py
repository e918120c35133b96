"""Moments of the past at which entities can be read."""

import re
from dataclasses import dataclass
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.values.edm import TICKS_PER_SECOND, read_datetime, write_datetime


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, or the exact state that a transaction saw.

    Without a ``snapshot``, changes up to ``ticks``, of 100 ns since 1970, have been made. With one, the text of a
    pg_snapshot, those that are visible in it have been made; all changes up to ``ticks`` are, and all that are made
    later get later Timestamps.
    """

    ticks: int
    snapshot: str | None = None

    def __str__(self) -> str:
        """Return the time in RFC 3339 format."""
        return write_datetime(self.ticks)

    @property
    def seconds(self) -> float:
        """Return the seconds since 1970."""
        return self.ticks / TICKS_PER_SECOND

    @property
    def token(self) -> str:
        """Return an opaque token of the moment with its snapshot."""
        return f"{self}~{self.snapshot or ''}"


_SNAPSHOT: Final = re.compile(r"([0-9]{1,18}):([0-9]{1,18}):((?:[0-9]{1,18}(?:,[0-9]{1,18})*)?)", re.ASCII)


def read_moment_token(text: str) -> Moment | None:
    """Parse the token of a moment; None if it is malformed."""
    time, _, snapshot = text.partition("~")
    moment, match = read_moment(time), _SNAPSHOT.fullmatch(snapshot)
    if moment is None or match is None:
        return None
    first, end = int(match[1]), int(match[2])
    running = [int(it) for it in match[3].split(",")] if match[3] else []
    # PostgreSQL refuses others
    is_ordered = (
        0 < first <= end and running == sorted(set(running)) and all(first <= it < end for it in running)
    )
    return Moment(moment.ticks, snapshot) if is_ordered else None


def read_moment(text: str) -> Moment | None:
    """Parse an RFC 3339 time; None if it is malformed."""
    try:
        return Moment(read_datetime(text)) if len(text) > len("2026-11-22") else None
    except StorageError:
        return None
