"""What every request needs to know: the accounts with their keys, and which relation a table is.

A snapshot in each process, kept true by notifications from whoever changes something, and not used while the
connection that brings them is down. What it has may still be a moment old: a statement on a relation that is gone
fails, and the table is then looked up anew; a table it does not have is always looked up.
"""

import asyncio
import logging
from time import monotonic
from typing import Final, NamedTuple

from storage.domain.errors import TableNotFound
from storage.operations import accounts, tables
from storage.operations.threads import in_thread
from storage.sql.notify import listen
from storage.sql.relations import relation_name

logger = logging.getLogger(__name__)

_PAUSE: Final = 0.5  # seconds between attempts to listen
_DOUBT: Final = 0.5  # seconds for which a snapshot of the accounts is believed when it lacks one


class KnownAccount(NamedTuple):
    id: int
    name: str
    keys: tuple[bytes, ...]
    enabled: bool


class KnownTable(NamedTuple):
    relation: str
    name: str


class Catalog:
    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._accounts: dict[str, KnownAccount] | None = None
        self._loaded_at = 0.0
        self._tables: dict[tuple[int, str], KnownTable] = {}
        self._listening = False
        self._generation = 0
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        ready = asyncio.Event()
        self._listener = asyncio.create_task(self._listen(ready))
        async with asyncio.timeout(10):
            await ready.wait()
        await self._load_accounts()

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)

    async def account(self, name: str) -> KnownAccount | None:
        known = self._accounts
        # one that is not known may have been added a moment ago; strangers may ask no more often than that
        if known is None or (name not in known and monotonic() - self._loaded_at > _DOUBT):
            known = await self._load_accounts()
        return known.get(name)

    async def table(self, account: KnownAccount, folded_name: str) -> KnownTable:
        """Raises TableNotFound."""
        key = (account.id, folded_name)
        known = self._tables.get(key)
        if known is not None:
            return known
        generation = self._generation
        table = await in_thread(tables.find, account.id, folded_name)
        if table is None:
            raise TableNotFound
        known = KnownTable(relation_name(table.pk), table.name)
        if self._listening and generation == self._generation:
            self._tables[key] = known
        return known

    def forget_table(self, account: KnownAccount, folded_name: str) -> None:
        self._tables.pop((account.id, folded_name), None)

    async def _load_accounts(self) -> dict[str, KnownAccount]:
        generation = self._generation
        self._loaded_at = monotonic()
        known = await in_thread(_accounts)
        if self._listening and generation == self._generation:
            self._accounts = known
        return known

    def _forget(self) -> None:
        self._generation += 1
        self._accounts = None
        self._tables.clear()

    async def _listen(self, ready: asyncio.Event) -> None:
        while True:
            try:
                async for payload in listen(self._conninfo):
                    self._listening = True
                    if payload == "tables":
                        self._generation += 1
                        self._tables.clear()
                    else:
                        self._forget()
                    ready.set()
            except OSError as error:
                logger.warning("No notifications from the database: %s", error)
            self._listening = False
            self._forget()
            await asyncio.sleep(_PAUSE)


def _accounts() -> dict[str, KnownAccount]:
    return {
        account.name: KnownAccount(account.pk, account.name, accounts.keys_of(account), account.enabled)
        for account in accounts.usable()
    }
