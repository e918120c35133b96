"""States of jobs and their progress; storage.jobs.running runs them."""

from datetime import timedelta
from enum import StrEnum
from typing import Final


class JobStatus(StrEnum):
    """Status of a job. The values are stored."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        return self in ENDED


class Unit(StrEnum):
    """Unit in which the progress of a job is counted."""

    BYTES = "bytes"
    ENTITIES = "entities"
    ROWS = "rows"
    TABLES = "tables"


class Wish(StrEnum):
    """Requested action for a job, read between steps. The values are stored."""

    NONE = ""
    PAUSE = "pause"
    CANCEL = "cancel"


ENDED: Final = frozenset({JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED})
RESUMABLE: Final = frozenset({JobStatus.PAUSED, JobStatus.FAILED, JobStatus.CANCELLED})

RETENTION: Final = timedelta(days=7)  # lifetime of a job after its end
FILE_RETENTION: Final = timedelta(days=1)  # lifetime of a file after it was complete, or its job ended
FAILURES_KEPT: Final = 100  # the first ones; a kind writes all of them to a file if they matter


def time_left(done: int, total: int | None, rate: float) -> timedelta | None:
    """Estimate the remaining time of a job from its rate in units per second; None if unknown."""
    if total is None or rate <= 0 or total < done:
        return None
    return timedelta(seconds=round((total - done) / rate))


def percentage(done: int, total: int | None) -> int | None:
    """Return the percentage done, below 100 until everything is; None if the total is unknown or nothing."""
    if not total:
        return None
    return 100 if done >= total else done * 100 // total
