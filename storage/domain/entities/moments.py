"""Moments of the past at which entities can be read."""

from dataclasses import dataclass

from storage.domain.errors import StorageError
from storage.domain.values.edm import TICKS_PER_SECOND, read_datetime, write_datetime


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, or the exact state that a transaction saw.

    Without a ``snapshot``, changes up to ``ticks``, of 100 ns since 1970, have been made. With one, the text of a
    pg_snapshot, those that are visible in it have been made; all changes up to ``ticks`` are.
    """

    ticks: int
    snapshot: str | None = None

    def __str__(self) -> str:
        """The time as RFC 3339."""
        return write_datetime(self.ticks)

    @property
    def seconds(self) -> float:
        """Seconds since 1970."""
        return self.ticks / TICKS_PER_SECOND


def read_moment(text: str) -> Moment | None:
    """Read a time as RFC 3339; None if it is not one."""
    try:
        return Moment(read_datetime(text)) if len(text) > len("2026-11-22") else None
    except StorageError:
        return None
