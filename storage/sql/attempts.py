"""Attempts at the items of a background job; an item that fails does not stop the others.

A lost database connection does stop the job: every other item would fail as well.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from storage.sql.django import is_lost


@contextmanager
def attempting_each(message: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield what each item is done in; raise all failures together, with the message, at the end."""
    failed: list[Exception] = []

    @contextmanager
    def attempt() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if is_lost(error):
                raise
            failed.append(error)

    yield attempt
    if failed:
        raise ExceptionGroup(message, failed)
