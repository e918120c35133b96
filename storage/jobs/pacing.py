"""Pacing of jobs: adapts step sizes and pauses, so that requests are not slowed down.

A job takes the share of the database that any other session gets: while it is the only active one, it does
not rest; with three others, it works a quarter of the time. The number of active sessions is measured after
each step.
"""

import time
from dataclasses import dataclass, field
from typing import Final

from storage.sql.connections import count_active

_STEP: Final = (
    0.2  # seconds that a step should take: how long a cancellation, or a request for the same rows, waits
)
_LEAST, _MOST = 16, 20_000  # entities
_GROWTH: Final = 2.0  # at most, from step to step
_SMOOTHING: Final = 0.3  # the weight of the latest measurement
_MOST_OTHERS: Final = 9.0  # a job always gets a tenth of the time
_LONGEST_REST: Final = 2.0  # seconds


@dataclass(slots=True)
class Pace:
    """The pace of a job."""

    others: float = 0.0  # number of other sessions that were recently active
    began: float = field(default_factory=time.monotonic)

    def begin_step(self) -> None:
        self.began = time.monotonic()

    def after_step(self, size: int) -> tuple[int, float]:
        """Return the size of the next step, and the pause before it in seconds."""
        took = max(1e-4, time.monotonic() - self.began)
        self.others += (count_active() - self.others) * _SMOOTHING
        size = round(size * min(_GROWTH, max(1 / _GROWTH, _STEP / took)))
        return max(_LEAST, min(_MOST, size)), min(_LONGEST_REST, took * min(_MOST_OTHERS, self.others))
