"""Catalog: per-process cache of accounts with keys and tables with policies, used by every request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from time import monotonic
from typing import Final, NamedTuple, ParamSpec, TypeVar

from storage.access import retired_keys
from storage.access.retired_keys import AcceptedKey
from storage.accounts import account_settings, accounts, sealed_keys, service_properties
from storage.core import registry
from storage.core.reading import ReadRouter
from storage.core.rehearsals import Rehearser
from storage.core.relation_forms import LOCAL, RelationForm
from storage.core.subject import Hook
from storage.domain.access.addresses import Network
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import ServerBusy, TableNotFound
from storage.domain.requests.consistency import Consistency, ReadTerms
from storage.domain.requests.strictness import Strictness
from storage.domain.service_properties.properties import ServiceProperties
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import is_account_name
from storage.domain.values.stored import is_known, read_member
from storage.health import database_version
from storage.models import Account, BlockedSas
from storage.relations import history
from storage.runtime.job_news import JobNews
from storage.runtime.stream_access import AccessChanges
from storage.runtime.threads import in_thread, on_standby
from storage.sql.comparing import NO_TABLE
from storage.sql.forms import waits_elsewhere
from storage.sql.notify import LEASE, Event, News, listen
from storage.sql.relations import relation_of
from storage.tables import indexes, tables

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_PAUSE: Final = 0.5  # seconds between attempts to listen
_PRIMARY_PATIENCE: Final = 1.0  # seconds for the primary where a standby can answer too
_STANDBY_SECONDS: Final = 2.0  # for which what a standby says is used
_STANDBY_LIMIT: Final = 10_000  # accounts, and tables


class KnownAccount(NamedTuple):
    id: int
    name: str
    keys: tuple[bytes, ...]
    enabled: bool
    shared_key_access: bool
    networks: tuple[Network, ...]
    properties: ServiceProperties
    kind: AccountKind = AccountKind.STORAGE
    read_only: bool = False
    blocked: frozenset[str] = frozenset()  # fingerprints of shared access signatures
    retired: tuple[AcceptedKey, ...] = ()
    records: bool = False  # changes, in its history
    consistency: Consistency = Consistency.STRONG
    max_staleness: float = 0.0  # seconds
    standby: bool = False  # whether it was read from a standby, because the primary does not answer
    # whether this server must not write, because a newer version has upgraded the database
    outdated: bool = False
    new_form: RelationForm = LOCAL  # form of the relations of its new tables
    rehearser: Rehearser | None = None  # if failures may be rehearsed
    strict: bool = False  # whether it refuses what Azure refuses

    @property
    def row(self) -> Account:
        """Return an account instance with only id, name and kind; operations load other fields on demand."""
        return Account.from_db(None, ("id", "name", "kind"), (self.id, self.name, self.kind.value))


class KnownTable(NamedTuple):
    """Cached table; its property indexes may be slightly outdated."""

    id: int
    relation: str
    name: str
    # by identifier; empty for an identifier without the element AccessPolicy
    policies: Mapping[str, AccessPolicy]
    throughput: int
    indexed: frozenset[str] = frozenset()  # the properties with an index of their own
    relation_pending: bool = False  # its relation may have to be made before it is used

    @property
    def waits_elsewhere(self) -> bool:
        """Return whether the relation's rows are on other servers, for which statements have to wait."""
        return waits_elsewhere(self.relation)


class Catalog:
    def __init__(
        self,
        conninfo: str,
        access_changes: AccessChanges | None = None,
        job_news: JobNews | None = None,
        until_reachable: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Create a catalog; announcements about access and jobs are forwarded."""
        self._conninfo = conninfo
        self._until_reachable = until_reachable
        self._access_changes = access_changes or AccessChanges()
        self._job_news = job_news or JobNews()
        self._accounts: dict[str, KnownAccount] = {}
        self._names: Collection[str] | None = None  # names of all accounts, known after a look-up failed
        self._tables: dict[tuple[int, str], KnownTable] = {}
        self.has_older = False  # whether a server runs for which each table must have a relation
        self._held = False  # whether this process holds the lock that allows caching
        self._expires_at = 0.0  # on the monotonic clock
        self._generation = 0
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        ready = asyncio.Event()
        self._listener = asyncio.create_task(self._listen(ready))
        async with asyncio.timeout(10):
            await ready.wait()

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)

    async def account(self, name: str) -> KnownAccount | None:
        is_current = monotonic() < self._expires_at
        known = self._accounts.get(name) if is_current else None
        # accounts that do not exist are not looked up again
        is_unknown = is_current and self._names is not None and name not in self._names
        if known is None and not is_unknown and is_account_name(name):
            generation = self._generation
            if self._until_reachable is not None:
                await self._until_reachable()
            known = await in_thread(_account, name)
            # read once, not for each name; one that this server may not use is among them
            names = await in_thread(accounts.names) if known is None and self._held else set()
            if self._held and generation == self._generation:
                if known is not None:
                    self._accounts[name] = known
                else:
                    self._names = names - {name}
        return known

    async def table(self, account: KnownAccount, folded_name: str) -> KnownTable:
        """Return a table of an account; raises TableNotFound."""
        key = (account.id, folded_name)
        known = self._tables.get(key)
        if known is not None and monotonic() < self._expires_at:
            return known
        generation = self._generation
        if self._until_reachable is not None:
            await self._until_reachable()
        known = await in_thread(_table, account.row, folded_name)
        if known is None:
            raise TableNotFound
        self.add_table(account, folded_name, known, generation)
        return known

    @property
    def generation(self) -> int:
        """Return a number that changes when something is forgotten, for ``add_table``."""
        return self._generation

    def add_table(self, account: KnownAccount, folded_name: str, known: KnownTable, generation: int) -> None:
        """Cache a table that was read or created since a generation, unless something was forgotten meanwhile."""
        if self._held and generation == self._generation:
            self._tables[account.id, folded_name] = known

    def replace_table(
        self, account: KnownAccount, folded_name: str, known: KnownTable, new: KnownTable
    ) -> None:
        """Replace what is cached of a table, unless that was forgotten."""
        if self._tables.get((account.id, folded_name)) is known:
            self._tables[account.id, folded_name] = new

    def cached_account(self, name: str) -> KnownAccount | None:
        return self._accounts.get(name) if monotonic() < self._expires_at else None

    def cached_table(self, account: KnownAccount, folded_name: str) -> KnownTable | None:
        return self._tables.get((account.id, folded_name)) if monotonic() < self._expires_at else None

    def has_cached(self, account_id: int, folded_name: str) -> bool:
        return (account_id, folded_name) in self._tables

    def forget_table(self, account: KnownAccount, folded_name: str) -> None:
        self._tables.pop((account.id, folded_name), None)

    def _forget(self) -> None:
        self._generation += 1
        self._accounts.clear()
        self._names = None
        self._tables.clear()

    async def _listen(self, ready: asyncio.Event) -> None:
        while True:
            try:
                async for event in listen(self._conninfo):
                    self._handle(event)
                    ready.set()
            except OSError as error:
                logger.warning("No notifications from the database: %s", error)
            except Exception:
                logger.exception("No notifications from the database")
            finally:
                # the lock is lost with the connection
                self._held = False
                self._forget()
            await asyncio.sleep(_PAUSE)

    def _handle(self, event: Event) -> None:
        match event.news:
            case News.TABLE:
                self._generation += 1
                self._tables.pop(event.table, None)
            case News.TABLES:
                self._generation += 1
                self._tables.clear()
            case News.PRESENCE:
                for announce in registry.hooks(Hook.PRESENCE_NEWS):
                    announce(event.table[0])
            case News.ACCESS:
                self._access_changes.announce()
            case News.JOBS:
                self._job_news.announce()
            case News.STILL_HELD:
                self.has_older = event.has_older
                self._note_writer(event.writer)
                self._expires_at = event.at + LEASE
            case News.HELD:
                self.has_older = event.has_older
                self._note_writer(event.writer)
                self._held = True
                self._expires_at = event.at + LEASE
                self._forget()  # reads in progress began without the lock
                self._job_news.announce()  # news that came while nothing listened are lost
            case News.CHANGE:
                self._held = False
                self._forget()

    def _note_writer(self, writer: int) -> None:
        was_outdated = database_version.is_outdated()
        database_version.note(writer)
        if database_version.is_outdated() != was_outdated:
            self._forget()


_STANDBY: Final = ReadTerms(Consistency.EVENTUAL, 0.0)


class StandbyCatalog:
    """Catalog of a standby, for reads while the primary is down."""

    def __init__(self, router: ReadRouter, clock: Callable[[], float] = monotonic) -> None:
        self._router = router
        self._clock = clock
        self._accounts: dict[str, tuple[float, KnownAccount | None]] = {}
        self._tables: dict[tuple[int, str], tuple[float, KnownTable | None]] = {}

    async def account(self, name: str) -> KnownAccount | None:
        """Return an account by name; raises ServerBusy if no standby responds."""
        kept = self._accounts.get(name)
        if kept is not None and kept[0] > self._clock():
            return kept[1]
        if not is_account_name(name):
            return None
        account = await self.read(_account, name)
        known = account and account._replace(standby=True)
        _keep(self._accounts, name, (self._clock() + _STANDBY_SECONDS, known))
        return known

    async def table(self, account: KnownAccount, folded_name: str) -> KnownTable:
        """Return a table of an account; raises TableNotFound, or ServerBusy if no standby responds."""
        key = (account.id, folded_name)
        kept = self._tables.get(key)
        if kept is not None and kept[0] > self._clock():
            known = kept[1]
        else:
            known = await self.read(_table, account.row, folded_name)
            _keep(self._tables, key, (self._clock() + _STANDBY_SECONDS, known))
        if known is None:
            raise TableNotFound
        return known

    def forget_table(self, account: KnownAccount, folded_name: str) -> None:
        self._tables.pop((account.id, folded_name), None)

    async def after_primary(
        self, cached: T | None, ask_primary: Callable[[], Awaitable[T]], ask: Callable[[], Awaitable[T]]
    ) -> T:
        """Return the cached value, the primary's, or a standby's once the primary is down."""
        if cached is not None:
            return cached
        for is_last in (False, True):
            if not self._router.primary_answers:
                break
            try:
                return await self._soon(ask_primary)
            except ServerBusy:
                if is_last and self._router.primary_answers:
                    raise
            if is_last or not self._router.primary_answers:
                break
            looking = asyncio.create_task(self._router.look_again())
            await asyncio.wait([looking], timeout=_PRIMARY_PATIENCE)
            looking.cancel()
        return await ask()

    async def _soon(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Await a query on the primary; raise ServerBusy as soon as the primary is considered down."""
        looking = asyncio.ensure_future(ask())
        await asyncio.wait([looking], timeout=_PRIMARY_PATIENCE)
        if not looking.done() and not self._router.primary_answers:
            looking.cancel()
            raise ServerBusy
        return await looking

    async def read(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation on a standby; raises ServerBusy."""
        # the primary may be back meanwhile, and no standby known yet to have what it has now
        source = await self._router.choose(_STANDBY, is_required=True)
        if source is None:
            raise ServerBusy
        try:
            return await on_standby(source.alias, operation, *args, **kwargs)
        except ServerBusy:
            source.mark_suspect()
            raise


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= _STANDBY_LIMIT:
        kept.clear()
    kept[key] = value


def _account(name: str) -> KnownAccount | None:
    account = accounts.find(name)
    if account is None:
        return None
    return KnownAccount(
        account.pk,
        account.name,
        sealed_keys.keys_of(account),
        account.enabled,
        account.shared_key_access,
        account_settings.networks_of(account),
        service_properties.for_account(account),
        AccountKind(account.kind),
        account.read_only,
        frozenset(BlockedSas.objects.filter(account=account).values_list("fingerprint", flat=True)),
        retired_keys.accepted(account),
        history.is_recorded(account),
        _consistency(account),
        float(account.max_staleness),
        outdated=database_version.read_writer() > database_version.WRITER,
        new_form=registry.new_form_of(account),
        strict=account.strictness == Strictness.AZURE,
        rehearser=registry.first_answer(Hook.REHEARSER, account),
    )


def _consistency(account: Account) -> Consistency:
    """Return the consistency level of an account; an unknown level of a newer version counts as strong."""
    level = read_member(Consistency, account.consistency)
    return level if is_known(level) else Consistency.STRONG


def _table(account: Account, folded_name: str) -> KnownTable | None:
    table = tables.find(account, folded_name)
    if table is None:
        return None
    policies = {policy.identifier: policy.terms for policy in table.policies.all()}
    # only on a standby, which cannot make it
    relation = NO_TABLE if table.relation_pending else relation_of(table)
    return KnownTable(table.pk, relation, table.name, policies, table.throughput, indexes.indexed(table.pk))
