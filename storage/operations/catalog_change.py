"""Changes that every process of every server heeds from its next request on: keys, policies, service properties."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

from storage.sql.notify import turn, wait_for_snapshots

_inside: ContextVar[bool] = ContextVar("inside", default=False)


@contextmanager
def invalidating_catalogs() -> Iterator[None]:
    """A transaction that commits while nobody works with what it changes.

    Raises django.db.OperationalError, with nothing done, when a process does not let go of its snapshot in time.
    Several such changes are made together by one around them all.
    A process cut off from the database by the network heeds it when it notices: within five seconds.
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
