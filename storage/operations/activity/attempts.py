"""Attempts at single items of a background job, of which one that fails does not stop the others."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def attempting_each(message: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield what each item is done in; raise all failures together, with the message, at the end."""
    failed: list[Exception] = []

    @contextmanager
    def attempt() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failed.append(error)

    yield attempt
    if failed:
        raise ExceptionGroup(message, failed)
