"""Asynchronous operations of the Table service for the protocol, by account and table name."""

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from django.utils import timezone

from storage.access import policies
from storage.accounts import service_properties
from storage.core import registry
from storage.core.reading import Partition, ReadRouter, Synchronization
from storage.core.relation_forms import LOCAL
from storage.core.subject import Hook
from storage.core.tracer import Tracer
from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.identity import Trust
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.changes import Change, Delete
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.moments import Moment
from storage.domain.errors import (
    ChangeSetError,
    DamagedPage,
    InsufficientAccountPermissions,
    OperationTimedOut,
    ServerBusy,
    StorageError,
    TableNotFound,
)
from storage.domain.filters.keys import key_range
from storage.domain.filters.query import EntityQuery, Page, TableQuery
from storage.domain.refusals import Reason
from storage.domain.requests.consistency import ReadTerms, Session
from storage.domain.requests.strictness import TABLE_DELETION
from storage.domain.service_properties.properties import ServiceProperties
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_ticks
from storage.entities import entities
from storage.entities.entities import Steps
from storage.history import past
from storage.relations import table_relations
from storage.relations.history import Actors
from storage.runtime import throughput
from storage.runtime.catalog import Catalog, KnownAccount, KnownTable, StandbyCatalog
from storage.runtime.clock import keep_noting
from storage.runtime.job_news import JobNews
from storage.runtime.live_feed import LiveFeed
from storage.runtime.observer import Observer
from storage.runtime.pending_entries import PendingEntries
from storage.runtime.stream_access import AccessChanges
from storage.runtime.threads import in_thread
from storage.runtime.throughput import Throughput
from storage.runtime.watches import Watches
from storage.sql import batch, pages
from storage.sql import entities as sql
from storage.sql.failures import Canceled, NodeLost, RolledBack, UnexpectedFailure
from storage.sql.interruption import interrupt_older
from storage.sql.lanes import Lanes
from storage.sql.past import Past, as_of
from storage.sql.relations import relation_name
from storage.sql.statement import Statement
from storage.sql.tables import make
from storage.tables import tables

if TYPE_CHECKING:
    from storage.access.identity import Identity

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_BACKGROUND_DELAY: Final = 0.3  # seconds
_DELETIONS_LIMIT: Final = 1000  # remembered deletions of tables
_MAKING_LIMIT: Final = 1000  # remembered tables whose relations were made before their first use
_RECOVERY: Final = 20.0  # seconds; a database that was killed answers again after a few


def _identity(trust: Trust | None) -> "Identity | None":
    """Return the reader of bearer tokens if an issuer is configured; imported only then, to save memory."""
    if trust is None:
        return None
    from storage.access.identity import Identity

    return Identity(trust)


def _import_background() -> tuple[
    Callable[[], Coroutine[Any, Any, None]], Callable[[JobNews], Coroutine[Any, Any, None]]
]:
    from storage.runtime import job_runner, periodic

    return periodic.run, job_runner.run


class Service:
    def __init__(
        self,
        conninfo: str,
        trust: Trust | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._tracer = tracer
        self.identity = _identity(trust)
        self.observer = Observer()
        self.access_changes = AccessChanges()
        self._job_news = JobNews()
        self._lanes = Lanes(conninfo)
        self._router: ReadRouter | None = registry.first_answer(
            Hook.READ_ROUTER, conninfo, self._leave_former
        )
        self._catalog = Catalog(
            conninfo,
            self.access_changes,
            self._job_news,
            # where other databases answer too, these are asked instead
            self._lanes.until_reachable if self._router is None else None,
        )
        self._actors = Actors(self._lanes)
        self.live_feed = LiveFeed(self._lanes)
        self._throughput = Throughput(self._lanes)
        self._pending_entries = PendingEntries(self._lanes)
        self._watches = Watches(conninfo, self._lanes)
        self._standby = StandbyCatalog(self._router) if self._router is not None else None
        self._background: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        # changes that invalidate catalogs run one at a time: waiting ones would occupy threads
        self._turn = asyncio.Lock()
        self._creating = asyncio.Lock()
        # whether the table that was used or deleted last after its creation was used: then new ones get their relations
        # at once; and those that get them, by id, until they are used or deleted
        self._makes_relations = False
        self._making: dict[int, asyncio.Task[bool]] = {}
        # when this process deleted tables, by account and folded name, in seconds of the monotonic clock
        self._deletions: dict[tuple[int, str], float] = {}

    def _leave_former(self, moment: float) -> None:
        """Close connections to a former primary, as one that hangs would keep requests waiting."""
        self._lanes.give_up_older(moment)
        interrupt_older(moment)

    async def open(self) -> None:
        await self._lanes.open(recovery=_RECOVERY)
        await self._catalog.open()
        await self.observer.open()
        if self._router is not None:
            self._router.open()
        self._noting = asyncio.create_task(keep_noting(self._lanes))
        self._background = asyncio.create_task(self._run_background())

    async def close(self) -> None:
        for task in filter(None, (self._background, self._noting, *self._making.values())):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._router is not None:
            await self._router.close()
        await self._watches.close()
        await self._pending_entries.close()
        await self.live_feed.close()
        for end in registry.hooks(Hook.SERVICE_END):
            await end()
        await self.observer.close()
        await self._catalog.close()
        self._lanes.close()

    async def _run_background(self) -> None:
        """Run periodic work and jobs, imported after the first requests to shorten the start."""
        await asyncio.sleep(_BACKGROUND_DELAY)
        run_periodic, run_jobs = await asyncio.to_thread(_import_background)
        gc.freeze()  # as the server freezes its objects when it starts
        # unlike gather(), which ends with the first that is cancelled, waits for both
        async with asyncio.TaskGroup() as group:
            group.create_task(run_periodic())
            group.create_task(run_jobs(self._job_news))

    async def account(self, name: str, *, secondary: bool = False) -> KnownAccount | None:
        """Return an account; by its secondary address also while only a standby responds."""
        if secondary and self._standby is not None:
            return await self._standby.after_primary(
                self._catalog.cached_account(name),
                partial(self._catalog.account, name),
                partial(self._standby.account, name),
            )
        return await self._catalog.account(name)

    async def table(self, account: KnownAccount, table: str) -> KnownTable:
        """Return a table by its folded name; raises TableNotFound."""
        return await self._catalog_of(account).table(account, table)

    async def run(self, statement: Statement[T]) -> T:
        """Run a statement on the primary."""
        return await self._lanes.run(statement)

    def knows_table(self, account_id: int, folded_name: str) -> bool:
        """Return whether the catalog has a table, without querying the database."""
        return self._catalog.has_cached(account_id, folded_name)

    def _catalog_of(self, account: KnownAccount) -> Catalog | StandbyCatalog:
        if account.standby and self._standby is not None:
            return self._standby
        return self._catalog

    async def _look_up(
        self, account: KnownAccount, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read-only control operation, on a standby if needed."""
        if account.standby and self._standby is not None:
            return await self._standby.read(operation, *args, **kwargs)
        return await self._in_thread(operation, *args, **kwargs)

    async def _in_thread(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a control operation in a thread; raises ServerBusy if the database is unreachable."""
        await self._lanes.until_reachable()
        return await in_thread(operation, *args, **kwargs)

    def synchronizations(self) -> Sequence[Synchronization]:
        """Return the replication state of the databases beside the primary."""
        return self._router.synchronizations() if self._router is not None else ()

    # tables

    async def is_being_deleted(self, account: KnownAccount, name: str) -> bool:
        """Return whether a table of this name was deleted so lately that Azure would not be done with it.

        In a friendly account only deletions by this process count, as others would have to be looked up.
        """
        folded = fold_table_name(name, account.kind)
        if account.strict:
            since = timezone.now() - timedelta(seconds=TABLE_DELETION)
            return await self._in_thread(tables.is_name_of_deleted, account.row, folded, since)
        deleted = self._deletions.get((account.id, folded))
        return deleted is not None and time.monotonic() - deleted < TABLE_DELETION

    def _note_deletion(self, account: KnownAccount, folded: str) -> None:
        deletions = self._deletions
        deletions.pop((account.id, folded), None)
        if len(deletions) >= _DELETIONS_LIMIT:
            deletions.pop(next(iter(deletions)))  # the oldest
        deletions[account.id, folded] = time.monotonic()

    async def create_table(self, account: KnownAccount, name: str, *, by: Actor = SERVER) -> int:
        """Create a table (Create Table); return its creation time in ticks."""
        _check_writable(account)
        create = self._create_local_table if account.new_form is LOCAL else self._create_table
        created = await create(account, name, by)
        self._deletions.pop((account.id, fold_table_name(name, account.kind)), None)
        return created

    async def _create_local_table(self, account: KnownAccount, name: str, by: Actor) -> int:
        generation = self._catalog.generation
        created = await self._run_on_tables(tables.creation(account, name, by=by))
        known = KnownTable(created.id, relation_name(created.id), name, {}, 0, relation_pending=True)
        self._catalog.add_table(account, fold_table_name(name, account.kind), known, generation)
        if self._catalog.has_older:
            await self._run_on_tables(make(known.id, account.id, account.kind))
        elif self._makes_relations:
            if len(self._making) >= _MAKING_LIMIT:
                self._making.pop(next(iter(self._making)))  # its first request makes sure of it
            self._making[known.id] = asyncio.create_task(self._make_soon(account, known))
        return created.ticks

    async def _make_soon(self, account: KnownAccount, known: KnownTable) -> bool:
        """Make the relation of a table while its client gets the answer; return False if that failed."""
        try:
            await self._run_on_tables(make(known.id, account.id, account.kind))
        except (StorageError, UnexpectedFailure):
            return False
        return True

    async def _run_on_tables(self, statement: Statement[T]) -> T:
        """Run a statement that locks tables; raises OperationTimedOut."""
        try:
            return await self._lanes.run(statement)
        except Canceled:
            raise OperationTimedOut from None

    async def _with_relation(self, account: KnownAccount, table: str, pending: KnownTable) -> KnownTable:
        """Make the relation of a table that is used for the first time, unless it is being made already."""
        self._makes_relations = True
        making = self._making.pop(pending.id, None)
        if making is not None:
            await asyncio.wait([making])
        if making is None or not making.result():
            await self._run_on_tables(make(pending.id, account.id, account.kind))
        known = pending._replace(relation_pending=False)
        self._catalog.replace_table(account, table, pending, known)
        return known

    async def _create_table(self, account: KnownAccount, name: str, by: Actor) -> int:
        create = partial(tables.create, account.row, name, by=by, is_checked=True)
        # one at a time, because the database does no more: those that wait would occupy threads
        turn = asyncio.ensure_future(self._creating.acquire())
        try:
            await asyncio.wait([turn], timeout=account.new_form.creation_wait)
            if not turn.done():
                logger.warning("A table was not created, because others are being created on the nodes.")
                raise ServerBusy(Reason.NODES_ARE_BUSY.of())
            return to_ticks((await self._in_thread(create)).created_at)
        finally:
            if turn.done() and not turn.cancelled():
                self._creating.release()
            turn.cancel()

    async def delete_table(self, account: KnownAccount, name: str, *, by: Actor = SERVER) -> None:
        """Delete a table (Delete Table); it can be restored while the account keeps its history."""
        _check_writable(account)
        folded = fold_table_name(name, account.kind)
        known = self._catalog.cached_table(account, folded)
        if known is not None and known.relation_pending:
            self._makes_relations = False
            self._making.pop(known.id, None)
        if not await self._run_on_tables(tables.deletion(account, name, by=by)):
            await self._in_thread(tables.delete, account.row, name, by=by, is_checked=True)
        self._catalog.forget_table(account, folded)
        self._note_deletion(account, folded)

    async def get_table(self, account: KnownAccount, name: str) -> str:
        """Return the name of a table as created (Get Table)."""
        return (await self._look_up(account, tables.get, account.row, name)).name

    async def query_tables(self, account: KnownAccount, query: TableQuery) -> tuple[list[str], str | None]:
        return await self._look_up(account, tables.query, account.row, query)

    # access; ``table`` is a folded name

    async def policies(self, account: KnownAccount, table: str) -> list[SignedIdentifier]:
        """Return the policies of a table (Get Table ACL)."""
        return await self._look_up(account, policies.stored_by_name, account.row, table)

    async def replace_policies(
        self,
        account: KnownAccount,
        table: str,
        identifiers: Sequence[SignedIdentifier],
        *,
        by: Actor = SERVER,
    ) -> None:
        """Replace the policies of a table (Set Table ACL), effective immediately."""
        _check_writable(account)
        async with self._turn:
            await self._in_thread(policies.replace_by_name, account.row, table, identifiers, by=by)

    async def replace_properties(
        self,
        account: KnownAccount,
        update: Callable[[ServiceProperties], ServiceProperties],
        *,
        by: Actor = SERVER,
    ) -> None:
        """Replace the service properties by the result of ``update`` (Set Table Service Properties)."""
        _check_writable(account)
        async with self._turn:
            await self._in_thread(service_properties.replace, account.row, update, by=by)

    # entities; ``table`` is a folded name

    async def check_table(self, account: KnownAccount, table: str) -> None:
        """Check that a table exists; raises TableNotFound."""
        await self._catalog_of(account).table(account, table)

    async def change(
        self,
        account: KnownAccount,
        table: str,
        change: Change,
        *,
        by: Actor = SERVER,
        terms: ReadTerms | None = None,
    ) -> int:
        """Apply a change; return the new Timestamp in ticks."""
        session = _session(terms)
        _check_writable(account)
        recorder = await self._actors.recorder(account.id, by) if account.records else None
        return await self._write(
            account,
            table,
            lambda t: self._lanes.run(sql.change(t.relation, change, recorder), session),
            lambda: change.key.partition_key,
            _properties(change),
        )

    async def apply(
        self,
        account: KnownAccount,
        table: str,
        changes: Sequence[Change],
        rest: Callable[[], Sequence[Change]] | None = None,
        *,
        by: Actor = SERVER,
        terms: ReadTerms | None = None,
    ) -> list[int]:
        """Apply changes atomically; raises ChangeSetError."""
        session = _session(terms)
        if account.outdated:
            raise ServerBusy
        if account.read_only:
            raise ChangeSetError(0, InsufficientAccountPermissions())
        recorder = await self._actors.recorder(account.id, by) if account.records else None
        others: Sequence[Change] | None = None if rest is not None else ()

        def remaining() -> Sequence[Change]:
            nonlocal others
            if others is None and rest is not None:
                others = rest()
            return others or ()

        async def run(known: KnownTable) -> list[int]:
            if session is None and others is None and self._lanes.are_idle:
                try:
                    halves = batch.Halves(known.relation, changes, recorder)
                    return await self._lanes.run_halves(halves.first, lambda: halves.second(remaining()))
                except (batch.NotInHalves, RolledBack):
                    pass  # at once then
            every = [*changes, *remaining()]
            return await self._lanes.run(batch.apply(known.relation, every, recorder), session)

        properties = _properties(changes[0]) if changes else 0
        return await self._write(account, table, run, lambda: _only_partition(changes), properties, len)

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
        """Return an entity, at present or as of a moment; without ``terms``, consistency is strong."""

        if moment is not None:

            def get_then(then: Past) -> Awaitable[StoredEntity]:
                return self._lanes.run(as_of(pages.point(then.relation, key, query), then))

            return await self._as_of(
                account, table, moment, get_then, lambda _: throughput.READ, includes_deleted=includes_deleted
            )

        async def get(known: KnownTable) -> StoredEntity:
            statement = pages.point(known.relation, key, query)
            if terms is not None:
                return await self._read(account, terms, lambda lanes: lanes.run(statement, terms.session))
            return await self._lanes.run(statement)

        return await self._on(
            account,
            table,
            get,
            lambda _: throughput.READ,
            lambda: key.partition_key,
            terms,
            is_read=True,
        )

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
        """Return a page of entities, at present or as of a moment; without ``terms``, consistency is strong."""

        def cost(page: Page[StoredEntity]) -> float:
            return throughput.QUERY + throughput.ENTITY * len(page.entities)

        if moment is not None:

            def walk_then(then: Past) -> Awaitable[Page[StoredEntity]]:
                steps: Steps[Page[StoredEntity]] = entities.query(then.relation, query, time.monotonic)
                return self._lanes.walk(steps, partial(as_of, past=then))

            return await self._as_of(
                account, table, moment, walk_then, cost, includes_deleted=includes_deleted
            )

        async def walk(known: KnownTable) -> Page[StoredEntity]:
            indexed_query = replace(query, indexed=known.indexed) if known.indexed else query

            def read(lanes: Lanes) -> Awaitable[Page[StoredEntity]]:
                steps: Steps[Page[StoredEntity]] = entities.query(
                    known.relation, indexed_query, time.monotonic
                )
                return lanes.walk(steps, session=_session(terms))

            page = read(self._lanes) if terms is None else self._read(account, terms, read)
            return await self.observer.time_query(known.id, indexed_query, page)

        return await self._on(
            account,
            table,
            walk,
            cost,
            lambda: key_range(query.filter).partition.single,
            terms,
            is_read=True,
        )

    async def _as_of(
        self,
        account: KnownAccount,
        table: str,
        moment: Moment,
        run: Callable[[Past], Awaitable[T]],
        cost: Callable[[T], float],
        *,
        includes_deleted: bool,
    ) -> T:
        """Run a statement on the table that had a name at a moment."""

        async def find_and_run() -> T:
            existing, then = await in_thread(
                past.find_by_name, account.row, table, moment, includes_deleted=includes_deleted
            )
            known = KnownTable(existing.pk, then.source, existing.name, {}, existing.throughput)
            return await self._run_on(account, known, lambda _: run(then), cost, lambda: None)

        try:
            return await find_and_run()
        except TableNotFound:
            # its relation may have been renamed, because it was deleted or restored
            return await find_and_run()

    async def _read(
        self, account: KnownAccount, terms: ReadTerms, read: Callable[[Lanes], Awaitable[T]]
    ) -> T:
        """Read from a suitable standby, otherwise from the primary."""
        source = None
        if self._router is not None:
            source = await self._router.choose(terms, is_required=account.standby)
        if source is not None:
            try:
                return await read(source.lanes)
            except TableNotFound:
                if account.standby:
                    raise  # else it may not be there yet
            except (ServerBusy, UnexpectedFailure):
                source.mark_suspect()
        if account.standby or (source is not None and not self._primary_answers):
            raise ServerBusy
        return await read(self._lanes)

    @property
    def _primary_answers(self) -> bool:
        return self._router is None or self._router.primary_answers

    async def _write(
        self,
        account: KnownAccount,
        table: str,
        run: Callable[[KnownTable], Awaitable[T]],
        partition: Partition,
        properties: int,
        count: Callable[[T], int] = lambda _: 1,
    ) -> T:
        """Run a write; ``properties`` is about their number in each change, ``count`` the number of changes."""

        async def write(known: KnownTable) -> T:
            result = await run(known)
            self.observer.record_write(known.id)
            self._pending_entries.add(known.relation, properties * count(result))
            return result

        return await self._on(
            account, table, write, lambda result: throughput.WRITE * count(result), partition
        )

    async def _on(
        self,
        account: KnownAccount,
        table: str,
        run: Callable[[KnownTable], Awaitable[T]],
        cost: Callable[[T], float],
        partition: Partition,
        terms: ReadTerms | None = None,
        *,
        is_read: bool = False,
    ) -> T:
        """Run a statement on a table with one or more partitions; ``cost`` computes the request units of its result."""
        catalog = self._catalog_of(account)
        if terms is None or self._standby is None or account.standby:
            known = await catalog.table(account, table)
        else:  # a standby may be asked for it, also if the primary is lost meanwhile
            known = await self._standby.after_primary(
                self._catalog.cached_table(account, table),
                partial(self._catalog.table, account, table),
                partial(self._standby.table, account, table),
            )
        if known.relation_pending:
            known = await self._with_relation(account, table, known)
        try:
            return await self._run_on(account, known, run, cost, partition)
        except NodeLost:
            # It may be back: connections to it from before are noticed to be lost when they are first used. It is
            # unknown whether a write took effect, so only the client can decide to try again.
            if not is_read:
                raise
            return await self._run_on(account, known, run, cost, partition)
        except TableNotFound:
            # the relation was dropped and nothing was done: try once with a new table of the same name, or with the
            # same one, whose function may have been renewed on the nodes
            catalog.forget_table(account, table)
            new = await catalog.table(account, table)
            is_same = new == known and not known.waits_elsewhere
            if is_same and (account.standby or not await in_thread(table_relations.complete, known.id)):
                raise
            return await self._run_on(account, new, run, cost, partition)

    async def _run_on(
        self,
        account: KnownAccount,
        known: KnownTable,
        run: Callable[[KnownTable], Awaitable[T]],
        cost: Callable[[T], float],
        partition: Partition,
    ) -> T:
        """Run a statement subject to the table's throughput; raises OperationTimedOut."""
        if self._tracer is not None:
            run = self._tracer.trace_statement(run)
        # the units are in the primary: while that is lost, a secondary answers as many reads as it can
        is_limited = known.throughput > 0 and not account.standby
        if is_limited:
            await self._throughput.admit(known.id, known.throughput)
        try:
            if known.waits_elsewhere:
                result = await self._watches.run(known.relation, partition, lambda: run(known))
            else:
                result = await run(known)
        except Canceled:
            raise OperationTimedOut from None
        except DamagedPage:
            logger.error("The table %s/%s has a damaged page.", account.name, known.name)
            raise
        if is_limited:
            self._throughput.charge(known.id, known.throughput, cost(result))
        return result


def _only_partition(changes: Sequence[Change]) -> str | None:
    """Return the common partition of a change set."""
    return changes[0].key.partition_key if changes else None


def _properties(change: Change) -> int:
    return 0 if isinstance(change, Delete) else len(change.entity.properties)


def _session(terms: ReadTerms | None) -> Session | None:
    return None if terms is None else terms.session


def _check_writable(account: KnownAccount) -> None:
    """Raise the error for writes to a read-only or outdated account."""
    if account.outdated:
        raise ServerBusy
    if account.read_only:
        raise InsufficientAccountPermissions
