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
    """Run a transaction that commits while no process has a catalog in memory.

    Raises django.db.OperationalError and changes nothing when a process does not drop its catalog in time. Calls can
    be nested: the outermost one is the transaction. A process that loses its connection to the database drops its
    catalog when it notices, within five seconds.
    """
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
