"""Resources that only the process that started a job has, such as a local file.

A job taken over by another process does not find them, and ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

_here: Final[dict[str, Any]] = {}


@contextmanager
def offering(what: object) -> Iterator[str]:
    """Register a local resource for a job during the block; yields the name to look it up."""
    name = str(uuid4())
    _here[name] = what
    try:
        yield name
    finally:
        del _here[name]


def find(name: str) -> Any | None:
    return _here.get(name)
