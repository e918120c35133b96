"""In-memory counting of requests on the event loop, written in the background."""

import asyncio
import logging
import secrets
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from time import perf_counter, time
from typing import Any, Final

from django.conf import settings
from django.db import InterfaceError, OperationalError

from storage.domain.entities.entity import StoredEntity
from storage.domain.errors import StorageError
from storage.domain.filters.access_plan import plan_access
from storage.domain.filters.keys import key_range
from storage.domain.filters.query import EntityQuery, Page
from storage.domain.requests.metrics import CredentialClient, RequestKind, Tally, UseCount
from storage.domain.requests.observed import Authentication, ObservedRequest
from storage.domain.requests.recorded import KeptRequest, RequestLogSettings, SentRequest, read_fault
from storage.domain.requests.series import (
    BUCKETS,
    HISTOGRAM_BOUNDS,
    PeriodCounts,
    SeriesKind,
    coarsened,
    shorten_key,
    write_credential,
)
from storage.health import database_version
from storage.metrics.query_shapes import QuerySample, QueryShapes
from storage.metrics.series import Series
from storage.metrics.table_use import TableWrites
from storage.metrics.usage import Uses
from storage.requests.recording import RequestLog
from storage.runtime import measurements, prometheus
from storage.runtime.idleness import idleness
from storage.runtime.threads import in_thread
from storage.sql.django import is_lost, storable_text
from storage.tables.adaptive_indexes import ScanCosts, SlowQueries, SlowQuery
from storage.tables.index_rules import COSTLY_SCAN, SCANS_NEEDED

logger = logging.getLogger(__name__)

_INTERVAL: Final = 2.0  # seconds between two writes: what a crash may lose
_LABELS_KEPT: Final = 60.0  # seconds
_SHUTDOWN_TIMEOUT: Final = 5.0  # seconds for the last write
_CLIENTS_LIMIT: Final = 10_000  # clients counted separately between two writes
_AGENT_LIMIT: Final = 256
# entries of the request log, between two writes
_SAMPLES_LIMIT: Final = 500
_ALIKE: Final = 100  # refused or slow requests of a group
_ALIKE_SERVED: Final = 5  # requests of a group that were served, and that have a warning or were rehearsed
_GROUPS_LIMIT: Final = 300
_KEPT_LIMIT: Final = 1_000
_KEPT_SIZE: Final = 8 * 1024 * 1024  # bytes that were sent

_KINDS_LIMIT: Final = 10_000  # kinds of requests between two writes, with their tables
_PARTITIONS_LIMIT: Final = 4096  # partitions counted between two writes

_Table = tuple[int, str]  # account id, and a table's name as addressed


@dataclass(slots=True)
class _Group:
    """Group of similar refused or slow requests: the kept ones, and the number of others."""

    kept: list[KeptRequest] = field(default_factory=list)
    further: int = 0


@dataclass(slots=True)
class _Use:
    """Use of a key or token by a client; ``last`` is in seconds of perf_counter."""

    parameters: tuple[tuple[str, str], ...]
    count: int = 0
    last: float = 0.0


@dataclass(slots=True)
class _Batch:
    """Records since the last write; keys are plain tuples, which cost half as much as named ones."""

    began: datetime
    tallies: dict[tuple[Any, ...], Tally] = field(default_factory=dict)
    uses: dict[tuple[Any, ...], _Use] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # names of accounts
    partitions: dict[tuple[int, str, str], int] = field(default_factory=dict)
    uncounted: dict[_Table, int] = field(default_factory=dict)  # requests for other partitions than those
    queries: dict[_Table, QuerySample] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)  # tables
    slow: SlowQueries = field(default_factory=SlowQueries)
    samples: list[KeptRequest] = field(default_factory=list)
    groups: dict[tuple[Any, ...], _Group] = field(default_factory=dict)
    kept: int = 0  # number in all groups
    kept_size: int = 0  # bytes

    @property
    def is_empty(self) -> bool:
        return not any((self.tallies, self.written, self.slow.groups, self.samples, self.groups))

    def new_group(self, alike: tuple[Any, ...]) -> _Group:
        """Return the group of similar requests, coarser beyond a limit of groups."""
        if len(self.groups) >= _GROUPS_LIMIT:
            alike = alike[:2]
        return self.groups.setdefault(alike, _Group())

    def has_room(self, sent: SentRequest) -> bool:
        """Reserve room to hold a request until the next write; return whether there is any."""
        size = sent.size
        if self.kept_size + size > _KEPT_SIZE:
            return False
        self.kept_size += size
        return True

    def new_tally(self, kind: tuple[Any, ...]) -> Tally:
        """Add a tally for a kind of request; beyond a limit, without the table, which callers can invent."""
        if len(self.tallies) >= _KINDS_LIMIT:
            kind = (*kind[:-1], "")
        return self.tallies.setdefault(kind, Tally(latencies=[0] * BUCKETS))

    def new_use(self, client: tuple[Any, ...], parameters: tuple[tuple[str, str], ...]) -> _Use:
        """Add a use by a client; beyond a limit, only its key or token, then neither."""
        if len(self.uses) >= _CLIENTS_LIMIT:
            client = (*client[:3], "", b"", "")
        is_key = client[1] is Authentication.KEY
        if len(self.uses) >= 2 * _CLIENTS_LIMIT and not is_key and client not in self.uses:
            client = (*client[:2], "", "", b"", "")
        return self.uses.setdefault(client, _Use(parameters))

    def new_partition(self, partition: tuple[int, str, str]) -> None:
        if len(self.partitions) < _PARTITIONS_LIMIT:
            self.partitions[partition] = 1
        else:
            table = partition[:2] if len(self.uncounted) < _PARTITIONS_LIMIT else (partition[0], "")
            self.uncounted[table] = self.uncounted.get(table, 0) + 1

    def add_query(self, table: _Table, query: EntityQuery, agent: bytes, entities: int) -> None:
        queries = self.queries.get(table)
        if queries is None:
            if len(self.queries) >= _PARTITIONS_LIMIT:
                return
            queries = self.queries[table] = QuerySample()
        queries.add(query.filter, agent, entities, is_first=query.start is None)


def _minute(batch: _Batch) -> datetime:
    return batch.began.replace(second=0, microsecond=0)


class Observer:
    """Request counter of one process; ``record`` takes about a microsecond and never fails."""

    def __init__(self) -> None:
        process = secrets.token_hex(8)
        self._batch = _Batch(_now())
        self._series = Series(process)
        self._uses = Uses(process)
        self._query_shapes = QueryShapes()
        self._table_writes = TableWrites()
        self._scans = ScanCosts()
        self._requests = RequestLog()
        log: RequestLogSettings = settings.REQUEST_LOG
        self._slow, self._sample = log.slow, log.sample
        self._prometheus = prometheus.Process()
        self._labelled: frozenset[int] = frozenset()
        self._labelled_at = -inf
        self._is_written = True  # all that was taken from batches
        self._writing = asyncio.Lock()
        self._is_closing = False
        self._is_awaited = asyncio.Event()  # the next write, before its time
        self._hurried_at = -inf
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the background writes."""
        self._batch = _Batch(_now())
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Flush the remaining records, unless the database is not available."""
        self._is_closing = True
        self._is_awaited.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_SHUTDOWN_TIMEOUT)
            self._task.cancel()

    def record(self, observed: ObservedRequest) -> bool:
        """Count a finished request; return whether ``keep`` must be called. Called on the event loop."""
        batch = self._batch
        account_id = observed.account_id
        authentication = observed.authentication
        table = observed.table
        kind = (
            account_id,
            observed.secondary,
            observed.operation,
            authentication,
            observed.status,
            observed.error,
            table,
        )
        tally = batch.tallies.get(kind)
        if tally is None:
            tally = batch.new_tally(kind)
            batch.names[account_id] = observed.account
        started, sent = observed.started, observed.sent
        if not sent:  # the client closed the connection before
            sent = observed.answered = observed.sent = perf_counter()
        seconds = sent - started
        tally.requests = requests = tally.requests + 1
        tally.ingress += observed.ingress
        tally.egress += observed.egress
        tally.server_time += observed.answered - started
        tally.total_time += seconds
        tally.latencies[bisect_left(HISTOGRAM_BOUNDS, seconds)] += 1
        credential = observed.credential
        if credential is not None:
            client = (account_id, authentication, credential.name, observed.address, observed.agent, table)
            use = batch.uses.get(client)
            if use is None:
                use = batch.new_use(client, credential.parameters)
            use.count += 1
            use.last = sent
        if observed.partition is not None:
            partition = (account_id, table, observed.partition)
            number = batch.partitions.get(partition)
            if number is None:
                batch.new_partition(partition)
            else:
                batch.partitions[partition] = number + 1
        elif observed.query is not None:
            batch.add_query((account_id, table), observed.query, observed.agent, observed.entities)
        return (
            requests <= self._sample
            or seconds >= self._slow
            or observed.refusal is not None
            or not observed.status
            or observed.warnings != ()
        )

    def keep(self, observed: ObservedRequest, sent: SentRequest) -> None:
        """Keep a request for the log: the first of several similar ones, and a sample of usual ones."""
        batch, error = self._batch, observed.refusal
        if not observed.account_id:
            observed.refusal = None
            return
        is_usual = error is None and observed.status and observed.sent - observed.started < self._slow
        if is_usual and not observed.warnings and observed.rehearsed is None:
            if len(batch.samples) < _SAMPLES_LIMIT and batch.has_room(sent):
                batch.samples.append(KeptRequest(observed, sent, None))
            return
        alike = (
            observed.account_id,
            "" if error is None else error.code,
            observed.status,
            observed.operation,
            observed.table,
            observed.credential and observed.credential.name,
            observed.warnings,
            observed.rehearsed and (observed.rehearsed.rules, observed.rehearsed.is_applied),
        )
        group = batch.groups.get(alike) or batch.new_group(alike)
        limit = _ALIKE_SERVED if is_usual else _ALIKE
        is_among_first = len(group.kept) < limit and batch.kept < _KEPT_LIMIT and batch.has_room(sent)
        if is_among_first or not group.kept:
            group.kept.append(KeptRequest(observed, sent, read_fault(observed)))
            batch.kept += 1
        else:
            group.further += 1
        observed.refusal = None  # refers to all that the request has read, and through it to itself

    def record_write(self, table_id: int) -> None:
        self._batch.written.add(table_id)

    async def time_query(
        self, table_id: int, query: EntityQuery, page: Awaitable[Page[StoredEntity]]
    ) -> Page[StoredEntity]:
        """Await a query's page, and record a slow query that an index might speed up."""
        began = perf_counter()
        result = await page
        seconds = perf_counter() - began
        if seconds >= COSTLY_SCAN and (names := plan_access(query.filter).index_candidates(query.indexed)):
            number = self._batch.slow.add(SlowQuery(table_id, names, seconds, query, result.next))
            # the index should be there before a client gives up on the query
            if number == SCANS_NEEDED and began - self._hurried_at >= _INTERVAL:
                self._hurried_at = began
                self._is_awaited.set()
        return result

    async def flush(self) -> None:
        """Write recorded requests; a failed write is retried with the next flush."""
        async with self._writing:  # one thread at a time writes the ledgers
            batch, self._batch = self._batch, _Batch(_now())
            if not batch.is_empty:
                idleness.note_request()
            elif self._is_written and not self._series.is_new(_minute(batch)):
                return
            self._is_written = False
            try:
                await in_thread(self._write, batch, self._batch.began)
                self._is_written = True
            except StorageError:
                pass  # the database is not available, which has been logged
            except Exception:
                logger.exception("Counts could not be written")

    async def _run(self) -> None:
        while not self._is_closing:
            # a batch must not cross the end of a minute
            pause = min(_INTERVAL, 60.0 - time() % 60.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_awaited.wait()
            self._is_awaited.clear()
            await self.flush()

    def _write(self, batch: _Batch, now: datetime) -> None:
        self._choose_labels()
        self._take(batch, perf_counter() - time())
        ledgers = (
            self._uses,
            self._series,
            self._query_shapes,
            self._table_writes,
            self._scans,
            self._requests,
        )
        if database_version.is_outdated():
            for ledger in ledgers:
                ledger.give_up()
            return
        for ledger in ledgers:
            ledger.forget(now)
        unanswered: Exception | None = None
        for ledger in ledgers:
            try:
                ledger.write()
            except (OperationalError, InterfaceError) as error:
                if is_lost(error):
                    raise
                # it keeps its counts, and the others are written
                unanswered = unanswered or error
            except Exception:
                # writing the same again would fail again
                ledger.give_up()
                logger.exception("Counts could not be written and are lost")
        if unanswered is not None:
            raise unanswered

    def _choose_labels(self) -> None:
        if perf_counter() - self._labelled_at < _LABELS_KEPT:
            return
        with suppress(OperationalError, InterfaceError):  # as before; the counts must not be lost
            self._labelled = measurements.labelled_accounts()
            self._labelled_at = perf_counter()

    def _take(self, batch: _Batch, offset: float) -> None:
        """Pass a batch to the ledgers; ``offset`` is perf_counter minus the wall clock."""
        minute = _minute(batch)
        hour = minute.replace(minute=0)
        counted: dict[RequestKind, Tally] = {}
        for (*kind, _), tally in batch.tallies.items():
            counted.setdefault(RequestKind(*kind), Tally()).add(coarsened(tally))
        self._series.add(minute, _counts_by_table(batch))
        self._query_shapes.add(batch.began, batch.queries)
        self._table_writes.add(batch.began, batch.written)
        self._scans.add(batch.began, batch.slow)
        self._prometheus.add(counted, batch.names, self._labelled)
        for client, use in batch.uses.items():
            last = datetime.fromtimestamp(use.last - offset, UTC)
            parameters = tuple((name, storable_text(value, 1024)) for name, value in use.parameters)
            self._uses.add(hour, _client(*client[:-1]), UseCount(use.count, last), parameters)
        for group in batch.groups.values():
            for kept in group.kept[:-1]:
                self._requests.add(kept, kept.observed.started - offset)
            self._requests.add(group.kept[-1], group.kept[-1].observed.started - offset, group.further)
        for kept in batch.samples:
            self._requests.add(kept, kept.observed.started - offset)


def _counts_by_table(batch: _Batch) -> dict[_Table, PeriodCounts]:
    """Return the counts by account and table; counts of the whole account have an empty name."""
    by_table: defaultdict[_Table, PeriodCounts] = defaultdict(PeriodCounts)
    for (account_id, _, operation, _, status, error, table), tally in batch.tallies.items():
        for name in {"", table} if account_id else ():
            by_table[account_id, name].traffic(SeriesKind(operation or "", status, error)).add_tally(tally)
    for place, numbers in _frequent(
        ((account_id, table), write_credential(authentication, name), use.count)
        for (account_id, authentication, name, *_, table), use in batch.uses.items()
    ).items():
        by_table[place].credentials.add(numbers)
    for place, numbers in _frequent(_partitions(batch), names_table=True).items():
        by_table[place].partitions.add(numbers)
    for (account_id, table), number in batch.uncounted.items():
        for name in {"", table}:
            by_table[account_id, name].partitions.missed += number
    return by_table


def _frequent(
    counted: Iterable[tuple[_Table, str, int]], *, names_table: bool = False
) -> dict[_Table, dict[str, int]]:
    """Sum counts by account and table; with ``names_table``, keys of accounts begin with the table."""
    by_table: defaultdict[_Table, Counter[str]] = defaultdict(Counter)
    for (account_id, table), key, number in counted:
        text = storable_text(shorten_key(key), 256)
        by_table[account_id, ""][f"{table}/{text}" if names_table else text] += number
        if table:
            by_table[account_id, table][text] += number
    return dict(by_table)


def _partitions(batch: _Batch) -> Iterator[tuple[_Table, str, int]]:
    for (account_id, table, partition), number in batch.partitions.items():
        yield (account_id, table), partition, number
    for place, queries in batch.queries.items():
        keys = Counter(key_range(query.filter).partition.single for query in queries.first)
        for key, number in keys.items():
            if key is not None:
                yield place, key, round(number * queries.number / len(queries.first))


def _client(
    account_id: int, authentication: Authentication, name: str, address: str, agent: bytes
) -> CredentialClient:
    text = agent[:_AGENT_LIMIT].decode("latin-1")
    return CredentialClient(
        account_id,
        authentication,
        storable_text(name, 256),
        storable_text(address, 64),
        storable_text(text, 256),
    )


def _now() -> datetime:
    return datetime.now(UTC)
