"""Waiting for other processes and threads."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds, for a machine that is busy


def wait_for(what: Callable[[], T], patience: float = PATIENCE) -> T:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + patience
    while not (result := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return result
