"""Idleness of this process: periodic work runs less often while there are no requests."""

from collections.abc import Callable
from time import monotonic
from typing import Final

IDLE_AFTER: Final = 60.0  # seconds without a request; those for its health do not count


class Idleness:
    """Tracker of the last request; a new process does not count as idle."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._requested_at = clock()

    def note_request(self) -> None:
        self._requested_at = self._clock()

    def is_idle(self) -> bool:
        return self._clock() - self._requested_at > IDLE_AFTER


idleness: Final = Idleness()
