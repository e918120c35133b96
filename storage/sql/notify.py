"""News between the processes that share a database."""

from collections.abc import AsyncIterator
from typing import Final

import psycopg
from django.db import connection

CHANNEL: Final = "tablero_catalog"


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
            async for notification in conn.notifies():
                yield notification.payload
    except psycopg.OperationalError as error:
        raise OSError(str(error).strip()) from error
