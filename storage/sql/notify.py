"""News between the processes that share a database."""

from collections.abc import AsyncIterator
from typing import Final

import psycopg
from django.db import connection

CHANNEL: Final = "tablero_catalog"

_SILENCE: Final = 5.0  # seconds


def notify(payload: str) -> None:
    """Tells every listener, itself included, when the current transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))


async def listen(conninfo: str) -> AsyncIterator[str]:
    """Yields an empty payload once it listens, then every notification; raises OSError when the connection is lost."""
    try:
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as conn:
            await conn.execute(f"LISTEN {CHANNEL}")
            yield ""
            while True:
                async for notification in conn.notifies(timeout=_SILENCE):
                    yield notification.payload
                await conn.execute("SELECT 1")  # a connection that ended unnoticed would be silent as well
    except psycopg.OperationalError as error:
        raise OSError(str(error).strip()) from error
