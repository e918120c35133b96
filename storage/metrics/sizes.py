"""Sizes of accounts and tables over time, sampled from PostgreSQL's statistics and stored on change."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import TruncDay

from storage.metrics.series import WHOLE, Place
from storage.models import Account, SizeSample, Table
from storage.sql import background, history

INTERVAL: Final = timedelta(minutes=15)
_ALL_KEPT: Final = timedelta(days=8)  # then the last one of each day
_KEPT: Final = timedelta(days=90)
_LATE: Final = timedelta(hours=1)  # by which the statistics may be behind
_CHUNK: Final = 500  # tables in one query


class Size(NamedTuple):
    """Size of an account or table: estimated ``entities``; ``size`` and ``history`` are bytes on disk.

    Only an account has a history.
    """

    entities: int = 0
    size: int = 0
    history: int = 0


def sample(now: datetime) -> None:
    """Store the sizes that have changed since the last sample."""
    last = SizeSample.objects.order_by("-at").values_list("at", flat=True).first()
    sizes: dict[Place, Size] = _of_accounts()
    tables = Table.objects.filter(deleted_at=None)
    if last is not None:
        tables = tables.filter(Q(written_at__gt=last - _LATE) | Q(created_at__gt=last - _LATE))
    accounts = dict(tables.values_list("pk", "account_id"))
    pks = iter(accounts)
    while chunk := list(islice(pks, _CHUNK)):
        for pk, size in background.sizes_of(chunk).items():
            sizes[accounts[pk], pk] = Size(size.rows, size.capacity)
    before = latest(sizes)
    SizeSample.objects.bulk_create(
        [
            SizeSample(account_id=account_id, table_id=table_id, at=now, **size._asdict())
            for (account_id, table_id), size in sizes.items()
            if before.get((account_id, table_id)) != size
        ],
        batch_size=1000,
        ignore_conflicts=True,
    )


def _of_accounts() -> dict[Place, Size]:
    accounts = list(Account.objects.values_list("pk", flat=True))
    contents = background.totals(accounts) if accounts else {}
    histories: defaultdict[int, int] = defaultdict(int)
    for (account_id, _), size in history.sizes_of_used().items():
        histories[account_id] += size
    nothing = background.Contents()
    return {
        (pk, WHOLE): Size(contents.get(pk, nothing).entities, contents.get(pk, nothing).size, histories[pk])
        for pk in accounts
    }


def latest(places: Collection[Place], until: datetime | None = None) -> dict[Place, Size]:
    """Return the last sampled sizes before a time, by account and table."""
    rows = SizeSample.objects.filter(
        account_id__in={account_id for account_id, _ in places},
        table_id__in={table_id for _, table_id in places},
    )
    if until is not None:
        rows = rows.filter(at__lt=until)
    newest = rows.order_by("account_id", "table_id", "-at").distinct("account_id", "table_id")
    return {
        (account_id, table_id): Size(*size)
        for account_id, table_id, *size in newest.values_list("account_id", "table_id", *Size._fields)
    }


def read(place: Place, periods: Sequence[datetime], end: datetime) -> list[Size | None]:
    """Return the last known size at the end of each period; None before the first sample."""
    account_id, table_id = place
    known = latest([place], periods[0]).get(place)
    rows = SizeSample.objects.filter(
        account_id=account_id, table_id=table_id, at__gte=periods[0], at__lt=end
    ).order_by("at")
    samples = [(at, Size(*size)) for at, *size in rows.values_list("at", *Size._fields)]
    times = [at for at, _ in samples]

    def at_ends() -> Iterator[Size | None]:
        for following in (*periods[1:], end):
            place = bisect_left(times, following)
            yield samples[place - 1][1] if place else known

    return list(at_ends())


def tidy(now: datetime) -> None:
    """Delete expired samples; keep the last sample of each past day, and each last known size."""
    samples = SizeSample.objects.annotate(day=TruncDay("at"))
    later = samples.filter(
        account_id=OuterRef("account_id"), table_id=OuterRef("table_id"), at__gt=OuterRef("at")
    )
    samples.filter(Exists(later.filter(day=OuterRef("day"))), at__lt=now - _ALL_KEPT).delete()
    samples.filter(Exists(later.filter(at__lt=now - _KEPT)), at__lt=now - _KEPT).delete()
    tables = Table.objects.filter(pk=OuterRef("table_id"))
    samples.filter(~Exists(tables), ~Q(table_id=WHOLE), at__lt=now - _KEPT).delete()
