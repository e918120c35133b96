"""The metrics tables of an account: written by a job, read like any table."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q

from storage.domain.entities.changes import Change, Delete, Upsert
from storage.domain.entities.entity import Entity
from storage.domain.errors import ChangeSetError, InsufficientAccountPermissions, StorageError
from storage.domain.requests import analytics
from storage.domain.requests.analytics import MetricsTable, partition_key
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.service.service_properties import Metrics, ServiceProperties
from storage.domain.values.names import is_analytics_name
from storage.models import Account, AnalyticsProgress, Table
from storage.operations.accounts import service_properties
from storage.operations.activity.attempts import attempting_each
from storage.operations.counting import metrics
from storage.operations.counting.metrics import DAY, HOUR, MINUTE, Sums
from storage.operations.tables import tables
from storage.sql import background, batch
from storage.sql.django import run
from storage.sql.relations import relation_name

_SETTLED: Final = timedelta(seconds=10)  # after it, every process has written the counts of a minute
_FINAL: Final = timedelta(minutes=5)  # after it, an hour is not written again
# primary and secondary
_HOURS: Final = (MetricsTable.HOUR_PRIMARY, MetricsTable.HOUR_SECONDARY)
_MINUTES: Final = (MetricsTable.MINUTE_PRIMARY, MetricsTable.MINUTE_SECONDARY)


def check_change(table: str, change: Change) -> None:
    """Refuse writes to metrics tables, except deletions [inferred]; ``table`` is a folded name."""
    if is_analytics_name(table) and not isinstance(change, Delete):
        raise InsufficientAccountPermissions


def check_changes(table: str, changes: Sequence[Change]) -> None:
    """Raise ChangeSetError for the first change that check_change refuses."""
    if not is_analytics_name(table):
        return
    for index, change in enumerate(changes):
        try:
            check_change(table, change)
        except InsufficientAccountPermissions as error:
            raise ChangeSetError(index, error) from None


@dataclass(frozen=True, slots=True)
class _Book:
    """An account whose metrics tables are written."""

    account: Account
    properties: ServiceProperties
    progress: AnalyticsProgress

    @property
    def account_id(self) -> int:
        return self.account.pk


class Writer:
    """Keep the metrics tables of all accounts up to date, without rewriting rows that did not change.

    Minutes are written when they are over. The current hour is written too, so that new metrics are visible at once
    [inferred: the service writes an hour some time after its end]. An account has metrics from its first request on, or
    from when they are first looked at: of thousands of accounts most may never be used.
    """

    def __init__(self) -> None:
        self._written: dict[tuple[int, MetricsTable, datetime], int] = {}

    def write(self, now: datetime) -> None:
        tables_of_metrics = Table.objects.filter(folded_name__startswith="$", deleted_at=None)
        known = set(tables_of_metrics.values_list("account_id", flat=True))
        books = _books(Q(pk__in=known) | Q(service_properties__isnull=False))
        first = min((_first_hour(book, now) for book in books), default=now)
        hours = metrics.sums(min(first, metrics.hour_of(now)), now, HOUR)
        news = self._accounts_with_news(hours)
        books += _books(Q(pk__in=news - {book.account_id for book in books}))
        with attempting_each("Not the metrics of every account could be written") as attempt:
            for book in books:
                if not (
                    book.account_id in news or self._is_due(book, now, is_known=book.account_id in known)
                ):
                    continue  # without a transaction
                # the account or one of its tables may be deleted meanwhile
                with attempt(), suppress(StorageError, IntegrityError), transaction.atomic():
                    background.commit_asynchronously()
                    self._write_book(book, hours, now)
        self._written = {key: number for key, number in self._written.items() if key[2] > now - 2 * HOUR}

    def _accounts_with_news(self, hours: Sums) -> set[int]:
        """Return the accounts that had requests which are not written yet."""
        return {
            account_id
            for (account_id, period), counted in hours.items()
            for table, number in zip(_HOURS, _requests(counted), strict=True)
            if number and self._written.get((account_id, table, period)) != number
        }

    def _is_due(self, book: _Book, now: datetime, *, is_known: bool) -> bool:
        """Return whether there is something to write besides new requests; ``is_known``: it has a metrics table."""
        progress, properties = book.progress, book.properties
        if properties.minute_metrics.enabled or progress.minute is not None:
            return True
        if not is_known:
            return False
        if progress.capacity is None or progress.capacity < now - HOUR:
            return True
        if progress.hour is None or not properties.hour_metrics.enabled:
            return (progress.hour is None) is properties.hour_metrics.enabled
        is_written = (book.account_id, MetricsTable.HOUR_PRIMARY, progress.hour) in self._written
        is_over = progress.hour + HOUR + _SETTLED <= now
        return (is_over and not is_written) or progress.hour < metrics.hour_of(now - _FINAL)

    def _write_book(self, book: _Book, hours: Sums, now: datetime) -> None:
        progress = book.progress
        before = (progress.hour, progress.minute, progress.capacity)
        progress.hour = self._write_hours(book, hours, now) if book.properties.hour_metrics.enabled else None
        progress.minute = self._write_minutes(book, now) if book.properties.minute_metrics.enabled else None
        if progress.capacity is None or progress.capacity < now - HOUR:
            progress.capacity = now
            _expire(book, now)
            if book.properties.hour_metrics.enabled:
                _write_capacity(book, now)
        if before != (progress.hour, progress.minute, progress.capacity):
            progress.save()

    def _write_hours(self, book: _Book, hours: Sums, now: datetime) -> datetime:
        """Write hours; return the first one that is not final."""
        first = _first_hour(book, now)
        for period in _periods(first, now, HOUR):
            counted = hours.get((book.account_id, period), {})
            over = period + HOUR + _SETTLED <= now
            self._write_period(book, _HOURS, period, counted, book.properties.hour_metrics, over)
        return max(first, metrics.hour_of(now - _FINAL))

    def _write_minutes(self, book: _Book, now: datetime) -> datetime:
        """Write minutes; return the first one that is not written."""
        end = (now - _SETTLED).replace(second=0, microsecond=0)
        first = max(book.progress.minute or end, end - DAY)
        counted = metrics.sums(first, end, MINUTE, book.account_id) if first < end else {}
        for period in _periods(first, end, MINUTE):
            # while no server ran, there was nothing to measure
            over = period >= end - HOUR
            of_minute = counted.get((book.account_id, period), {})
            self._write_period(book, _MINUTES, period, of_minute, book.properties.minute_metrics, over)
        return end

    def _write_period(
        self,
        book: _Book,
        primary_and_secondary: Sequence[MetricsTable],
        period: datetime,
        counted: Mapping[RequestKind, Tally],
        wanted: Metrics,
        over: bool,
    ) -> None:
        for table, secondary in zip(primary_and_secondary, (False, True), strict=True):
            mine = {kind: tally for kind, tally in counted.items() if kind.secondary is secondary}
            number = sum(tally.requests for tally in mine.values())
            if not mine and (secondary or not over):
                continue
            if self._written.get((book.account_id, table, period)) == number:
                continue
            rows = analytics.group_by_row_key(mine, include_apis=wanted.include_apis)
            _store(
                book.account,
                table,
                [analytics.transactions_entity(period, key, found) for key, found in rows.items()],
            )
            self._written[book.account_id, table, period] = number


def _books(wanted: Q) -> list[_Book]:
    found = list(Account.objects.filter(wanted).order_by("pk").only("name", "kind", "service_properties"))
    progress = AnalyticsProgress.objects.in_bulk([account.pk for account in found])
    return [
        _Book(
            account,
            service_properties.for_account(account),
            progress.get(account.pk) or AnalyticsProgress(account_id=account.pk),
        )
        for account in found
    ]


def _requests(counted: Mapping[RequestKind, Tally]) -> tuple[int, int]:
    """Return the number of requests to the primary and to the secondary."""
    secondary = sum(tally.requests for kind, tally in counted.items() if kind.secondary)
    return sum(tally.requests for tally in counted.values()) - secondary, secondary


def _first_hour(book: _Book, now: datetime) -> datetime:
    this = metrics.hour_of(now)
    return max(book.progress.hour or this, this - DAY)


def _periods(first: datetime, end: datetime, length: timedelta) -> Iterator[datetime]:
    while first < end:
        yield first
        first += length


def _store(account: Account, name: MetricsTable, entities: Sequence[Entity]) -> None:
    table = tables.find(account, name.lower())
    if table is not None:
        run(batch.apply(relation_name(table.pk), [Upsert(entity, merge=False) for entity in entities]))


def _write_capacity(book: _Book, now: datetime) -> None:
    """Write today's capacity from PostgreSQL's statistics; the service has capacity of blobs only [inferred]."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    names = dict(Table.objects.filter(account=book.account, deleted_at=None).values_list("pk", "folded_name"))
    sizes = background.sizes_of(list(names))
    entities = []
    for row_key, is_analytics in (("data", False), ("analytics", True)):
        mine = [size for pk, size in sizes.items() if is_analytics_name(names[pk]) is is_analytics]
        capacity, rows = sum(size.capacity for size in mine), sum(size.rows for size in mine)
        entities.append(analytics.capacity_entity(day, row_key, capacity, len(mine), rows))
    _store(book.account, MetricsTable.CAPACITY, entities)


def _expire(book: _Book, now: datetime) -> None:
    """Delete rows older than the account's retention."""
    hours, minutes = book.properties.hour_metrics.retention, book.properties.minute_metrics.retention
    kept = {**dict.fromkeys((*_HOURS, MetricsTable.CAPACITY), hours), **dict.fromkeys(_MINUTES, minutes)}
    for table in Table.objects.filter(
        account_id=book.account_id, deleted_at=None, folded_name__startswith="$"
    ):
        name = analytics.find_metrics_table(table.folded_name)
        days = kept.get(name) if name is not None else None
        if days is not None:
            background.delete_before(table.pk, partition_key(now - timedelta(days=days)))
