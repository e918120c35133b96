"""Waiting for other processes and threads."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
PATIENCE: Final = 180.0  # seconds, for a machine that is busy
FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.25


def wait_for(ask: Callable[[], T], awaited: str = "the answer", *, patience: float = PATIENCE) -> T:
    """Ask until the answer is true, and return it.

    The pauses grow, so that questions do not make slower what is slow to come anyway.
    """
    deadline = time.monotonic() + patience
    pause = FIRST_PAUSE
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"waited {patience} s for {awaited}"
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_PAUSE)
    return answer
