"""The record of activity only grows: a trigger refuses what would change it. What is too old is the exception."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def tidying() -> Iterator[None]:
    """Inside, rows of the record may be deleted; in a transaction, and no longer than that lasts."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL tablero.tidying = 'on'")
        try:
            yield
        finally:
            if not connection.needs_rollback:
                cursor.execute("SET LOCAL tablero.tidying = 'off'")
