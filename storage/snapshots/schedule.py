"""Snapshots: valid names, reasons, and schedules."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

NAME_LIMIT: Final = 64
# how long snapshots that the server takes by itself are kept
AUTOMATIC_LIFETIME: Final = timedelta(days=14)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._-]")
_DAYS_OF_WEEK: Final = 7


class SnapshotReason(StrEnum):
    """Reason for a snapshot. The values are stored."""

    USER = "user"
    SCHEDULE = "schedule"
    RESTORE = "restore"  # a snapshot of the present, before it is replaced by another one
    DELETION = "deletion"  # before many entities or a table are deleted
    BRANCH = "branch"  # where a branch began

    @property
    def is_automatic(self) -> bool:
        return self is not SnapshotReason.USER


def is_snapshot_name(name: str) -> bool:
    """Return whether a name has up to 64 letters, digits, periods, hyphens and underscores."""
    return _NAME.fullmatch(name) is not None


def numbered_name(text: str, number: int) -> str:
    """Derive a snapshot name from a text, numbered to avoid taken names."""
    name = _NOT_ALLOWED.sub("-", text)
    if number == 1:
        return name[:NAME_LIMIT]
    suffix = f"-{number}"
    return name[: NAME_LIMIT - len(suffix)] + suffix


@dataclass(frozen=True, slots=True)
class Schedule:
    """Daily schedule, or weekly on a ``weekday``."""

    hour: Annotated[int, "In UTC."]
    weekday: Annotated[int | None, "0 is Monday; null: every day."] = None
    keep: Annotated[int, "How many snapshots of the schedule are kept."] = 7

    def next_after(self, moment: datetime) -> datetime:
        """Return when the first snapshot after a time, in UTC, is due."""
        due = moment.replace(hour=self.hour, minute=0, second=0, microsecond=0)
        if self.weekday is not None:
            due += timedelta(days=(self.weekday - due.weekday()) % _DAYS_OF_WEEK)
        if due > moment:
            return due
        return due + timedelta(days=1 if self.weekday is None else _DAYS_OF_WEEK)
