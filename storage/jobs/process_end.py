"""The end of this process, for threads of requests: nothing can cancel them, and the process waits for them."""

from threading import Event
from typing import Final

_is_ending: Final = Event()


def announce() -> None:
    _is_ending.set()


def revoke() -> None:
    """Take it back, as tests do: their process goes on."""
    _is_ending.clear()


def wait(seconds: float) -> bool:
    """Wait for some seconds, unless the process ends; return whether it does."""
    return _is_ending.wait(seconds)
