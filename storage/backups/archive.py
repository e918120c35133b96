"""Last known state of the WAL archive, from a file in the data folder.

The server writes the file every few seconds; the metrics, the doctor and the console read it, so that none of
them waits for an archive that does not respond.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings

NAME: Final = "summary.json"
CONFIG: Final = "config.json"  # is there while the folder has an archive
STALE: Final = timedelta(minutes=5)
LATE: Final = timedelta(minutes=5)  # age from which the oldest waiting segment is late


class Problem(StrEnum):
    UNREADABLE = "unreadable"  # the archive, with the reason
    FAILING = "failing"  # a segment cannot be archived, with the reason
    LAGGING = "lagging"
    INTERRUPTED = "interrupted"  # segments are missing since the last base backup
    NO_BASE = "no base"  # backup, without which nothing can be restored
    OVERDUE = "overdue"  # the next base backup
    TOO_LARGE = "too large"  # although only what the last base backup needs is kept
    STALE = "stale"  # the server does not update what this is read from


class Period(NamedTuple):
    start: datetime
    end: datetime


class Found(NamedTuple):
    """A problem of the archive."""

    problem: Problem
    reason: str = ""  # sentences in English, or empty


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """The state of the archive, as the server writes it to a file."""

    at: datetime
    folder: str
    periods: tuple[Period, ...] = ()  # any moment of them can be restored; the oldest first
    base_at: datetime | None = None
    size: int = 0  # bytes
    lag: float = 0.0  # seconds that the oldest segment has waited
    problems: tuple[Found, ...] = ()

    def write(self, folder: Path) -> None:
        draft = folder / f"{NAME}.new"
        draft.write_text(json.dumps(asdict(self), default=datetime.isoformat))
        draft.replace(folder / NAME)


def is_archiving(data: Path) -> bool:
    return (data / "archive" / CONFIG).exists()


def summary() -> ArchiveSummary | None:
    """Return the state of the archive; None without an archive or before the first check."""
    return read(settings.OPTIONS.data)


def read(data: Path) -> ArchiveSummary | None:
    if not is_archiving(data):
        return None
    try:
        stored = json.loads((data / "archive" / NAME).read_text())
        at = datetime.fromisoformat(stored["at"])
        problems = [Found(Problem(name), reason) for name, reason in stored["problems"]]
        if datetime.now(UTC) - at > STALE:
            problems.insert(0, Found(Problem.STALE))
        return ArchiveSummary(
            at=at,
            folder=stored["folder"],
            periods=tuple(Period(*map(datetime.fromisoformat, it)) for it in stored["periods"]),
            base_at=None if stored["base_at"] is None else datetime.fromisoformat(stored["base_at"]),
            size=stored["size"],
            lag=stored["lag"],
            problems=tuple(problems),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def describe(found: Found) -> str:
    """Describe a problem of the archive to operators."""
    return _TEXTS[found.problem].format(reason=found.reason)


_TEXTS: Final = {
    Problem.UNREADABLE: "{reason}",
    Problem.FAILING: "The log cannot be archived: {reason} PostgreSQL keeps it until that succeeds, up to a limit.",
    Problem.LAGGING: "Some of the log has waited for more than five minutes.",
    Problem.INTERRUPTED: "Some of the log since the last base backup is missing. The server makes a new base backup.",
    Problem.NO_BASE: "There is no base backup yet, so nothing can be restored. The server makes one.",
    Problem.OVERDUE: "The last base backup is older than twice the interval. The log of the server says why.",
    Problem.TOO_LARGE: "It is larger than its limit, although it has only what the last base backup needs.",
    Problem.STALE: "The server has not looked at it for more than five minutes.",
}
