"""Resources that only the process that has started a job can give it, such as a file of its machine.

Another process that takes the job over does not find them, and ends the job.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

_here: Final[dict[str, Any]] = {}


@contextmanager
def offering(what: object) -> Iterator[str]:
    """Keep something for a job of this process for the length of the block; yields the name by which it is found."""
    name = str(uuid4())
    _here[name] = what
    try:
        yield name
    finally:
        del _here[name]


def find(name: str) -> Any | None:
    return _here.get(name)
