"""Error collection for batches: a failed item does not stop the others."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from storage.sql.django import is_lost


@contextmanager
def attempting_each(message: str) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yield a context manager for each item; all failures are raised together at the end."""
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
