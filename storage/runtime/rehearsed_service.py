"""The service as a rehearsed request finds it: pages may end early, and a secondary may be behind."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from storage.access import policies
from storage.core.reading import Synchronization
from storage.core.rehearsals import Fault
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.moments import Moment
from storage.domain.errors import OutOfRangeInput, ResourceNotFound, TableNotFound
from storage.domain.filters.query import EntityQuery, Page, Position, TableQuery
from storage.domain.requests.consistency import ReadTerms
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_datetime
from storage.history import past
from storage.runtime.catalog import KnownAccount
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.tables import tables

T = TypeVar("T")


@dataclass(slots=True)
class Seen:
    """Effect of a request on what it read."""

    entities: int | None = None  # their number, or that of tables; None without a page
    is_cut: bool = False  # a page ended early


class RehearsedService(Service):
    """View of a service for one request under a fault; it shares everything with that service."""

    def __init__(self, service: Service, fault: Fault, seen: Seen) -> None:
        vars(self).update(vars(service))
        self._cut = fault.cut
        self._lag = fault.lag
        self._seen = seen

    def _then(self) -> Moment | None:
        """Return the moment that a secondary has reached; None for the present."""
        return Moment(int((time.time() - self._lag) * TICKS_PER_SECOND)) if self._lag else None

    async def _at(
        self, account: KnownAccount, moment: Moment | None, read: Callable[[Moment | None], Awaitable[T]]
    ) -> T:
        """Read as of a moment of the request's own, or of the secondary."""
        if moment is not None or not self._lag:
            return await read(moment)
        then = self._then()
        try:
            return await read(then)
        except OutOfRangeInput:
            pass
        if then is not None and await in_thread(_is_younger, account, then):
            raise TableNotFound
        return await read(None)  # its history does not reach so far

    async def get(
        self,
        account: KnownAccount,
        table: str,
        key: EntityKey,
        query: EntityQuery,
        moment: Moment | None = None,
        terms: ReadTerms | None = None,
        *,
        includes_deleted: bool = False,
    ) -> StoredEntity:
        def get(then: Moment | None) -> Awaitable[StoredEntity]:
            includes = includes_deleted or then is not moment
            return super(RehearsedService, self).get(
                account, table, key, query, then, terms, includes_deleted=includes
            )

        return await self._at(account, moment, get)

    async def query(
        self,
        account: KnownAccount,
        table: str,
        query: EntityQuery,
        moment: Moment | None = None,
        terms: ReadTerms | None = None,
        *,
        includes_deleted: bool = False,
    ) -> Page[StoredEntity]:
        def walk(then: Moment | None) -> Awaitable[Page[StoredEntity]]:
            includes = includes_deleted or then is not moment
            return super(RehearsedService, self).query(
                account, table, query, then, terms, includes_deleted=includes
            )

        page = self._shorten(await self._at(account, moment, walk))
        self._seen.entities = len(page.entities)
        return page

    def _shorten(self, page: Page[StoredEntity]) -> Page[StoredEntity]:
        """End a page before one of its entities, whose key becomes the next position."""
        if self._cut is None or not page.entities:
            return page
        keys = [entity.key for entity in page.entities]
        kept = self._cut.length([key.partition_key for key in keys])
        if kept == len(keys):
            return page
        self._seen.is_cut = True
        return Page(page.entities[:kept], Position(*keys[kept]))

    async def get_table(self, account: KnownAccount, name: str) -> str:
        then = self._then()
        if then is None:
            return await super().get_table(account, name)
        try:
            return (await in_thread(past.find_table, account.row, name, then)).name
        except TableNotFound:
            raise ResourceNotFound from None

    async def query_tables(self, account: KnownAccount, query: TableQuery) -> tuple[list[str], str | None]:
        then = self._then()
        if then is None:
            names, following = await super().query_tables(account, query)
        else:
            at = to_datetime(then.ticks)
            names, following = await in_thread(tables.query, account.row, query, at=at)
        kept = self._cut.length(names) if self._cut is not None and names else len(names)
        self._seen.entities = kept
        if kept == len(names):
            return names, following
        self._seen.is_cut = True
        return names[:kept], fold_table_name(names[kept], account.kind)

    async def policies(self, account: KnownAccount, table: str) -> list[SignedIdentifier]:
        then = self._then()
        if then is None:
            return await super().policies(account, table)
        return await in_thread(_former_policies, account, table, then)

    def synchronizations(self) -> Sequence[Synchronization]:
        if not self._lag:
            return super().synchronizations()
        return [Synchronization(is_in_use=True, at=time.time() - self._lag)]


def _is_younger(account: KnownAccount, moment: Moment) -> bool:
    """Return whether an account was created after a moment."""
    return account.row.created_at > to_datetime(moment.ticks)


def _former_policies(account: KnownAccount, folded_name: str, moment: Moment) -> list[SignedIdentifier]:
    """Return the policies that the table with a name had at a moment; raises ResourceNotFound."""
    try:
        table = past.find_table(account.row, folded_name, moment)
    except TableNotFound:
        raise ResourceNotFound from None
    former = policies.as_of(table, to_datetime(moment.ticks))
    return policies.stored(table) if former is None else former
