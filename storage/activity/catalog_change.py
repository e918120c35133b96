"""Changes of cached data in catalogs: keys, policies and properties.

They are effective in every process from its next request on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

from storage.sql.notify import turn, wait_for_snapshots

_inside: ContextVar[bool] = ContextVar("inside", default=False)


@contextmanager
def invalidating_catalogs() -> Iterator[None]:
    """Run a transaction that commits while no process has a cached catalog."""
    if _inside.get():
        yield
        return
    with turn(), transaction.atomic(durable=True):
        wait_for_snapshots()
        token = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(token)
