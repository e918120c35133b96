"""Announcements of jobs to the threads that run them, to avoid polling."""

from threading import Condition
from typing import Final

LONGEST_WAIT: Final = (
    15.0  # seconds without news, after which jobs are looked for: older servers announce none
)


class JobNews:
    """Announcements to this process's threads that a job may be available."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        self.longest_wait = longest_wait
        self.number = 0
        self._changed = Condition()

    def announce(self) -> None:
        with self._changed:
            self.number += 1
            self._changed.notify_all()

    def wait_after(self, number: int, seconds: float) -> None:
        """Wait until the number of announcements differs from ``number``, or for some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.number != number, min(seconds, self.longest_wait))
