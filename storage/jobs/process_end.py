"""Shutdown flag of this process, for threads of requests, which cannot be cancelled."""

from threading import Event
from typing import Final

_is_ending: Final = Event()


def announce() -> None:
    _is_ending.set()


def revoke() -> None:
    """Reset the flag that the process is ending, for tests."""
    _is_ending.clear()


def wait(seconds: float) -> bool:
    """Sleep for some seconds or until the process ends; return whether it is ending."""
    return _is_ending.wait(seconds)
