"""Time series of requests by account and table, written per minute and process, aggregated for 90 days."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.utils import timezone

from storage.domain.requests.series import PeriodCounts, read_counts, read_kinds, write_counts
from storage.domain.values.kinds import AccountKind
from storage.metrics.ledger import LATE, Ledger
from storage.models import REQUEST_SERIES_KEY, RequestSeries, Table
from storage.sql.django import storable_text

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
QUARTER: Final = 15  # minutes

SERVER: Final = 0  # the account of counts that only say that a server ran
WHOLE: Final = 0  # the table of counts of a whole account
# for how long periods are kept, by their length in minutes
KEPT: Final[Mapping[int, timedelta]] = {
    1: timedelta(days=1, hours=1),
    QUARTER: timedelta(days=8),
    120: timedelta(days=90, hours=2),
}
_LONGER: Final = (QUARTER, 120)
_NEW: Final = Q(minutes=1) & ~Q(process="")  # rows that are not added up yet
_TABLES_LIMIT: Final = (
    1000  # that one process counts in a minute; requests for others count for their account only
)
_ROWS_LIMIT: Final = (
    500_000  # then those of tables are deleted before their time: the shortest and oldest first
)
_BATCH: Final = 10_000
_LONGEST_NAME: Final = 255  # characters of the name of a table

Key = tuple[datetime, int, str]  # a minute, an account, and the name of a table or nothing for the account
Place = tuple[int, int]  # account and table by id


class Series(Ledger[Key, PeriodCounts]):
    """Unwritten counts of one process, by minute, account and table name."""

    is_whole, settled, late = True, 2 * MINUTE, LATE

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process
        self._began: datetime | None = None

    def is_new(self, minute: datetime) -> bool:
        """Return whether a minute has no counts yet, not even that the server ran."""
        return minute != self._began

    def add(self, minute: datetime, counted: Mapping[tuple[int, str], PeriodCounts]) -> None:
        if self.is_new(minute):
            self._began = minute
            self._count((minute, SERVER, ""), PeriodCounts())
        tables = sum(1 for key in self._counted if key[0] == minute and key[2])
        for (account_id, name), counts in counted.items():
            key = (minute, account_id, name)
            total = self._counted.get(key)
            if total is None:
                tables += bool(name)
                if name and tables > _TABLES_LIMIT:
                    continue
                total = PeriodCounts()
            total.add(counts)
            self._count(key, total)

    def _store(self, counted: Mapping[Key, PeriodCounts]) -> None:
        tables = table_ids({key[1:] for key in self._counted})
        new = {(minute, account_id, tables.get((account_id, name))) for minute, account_id, name in counted}
        # a table may have been addressed by several spellings
        rows: defaultdict[tuple[datetime, int, int], PeriodCounts] = defaultdict(PeriodCounts)
        for (minute, account_id, name), counts in self._counted.items():
            table_id = tables.get((account_id, name))
            if table_id is not None and (minute, account_id, table_id) in new:
                rows[minute, account_id, table_id].add(counts)
        RequestSeries.objects.bulk_create(
            [
                _row(account_id, table_id, 1, minute, counts, self._process)
                for (minute, account_id, table_id), counts in sorted(rows.items(), key=lambda row: row[0])
            ],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=REQUEST_SERIES_KEY,
            update_fields=("counts",),
        )
        for key in [key for key in self._counted if key[1:] not in tables]:
            del self._counted[key]  # there is no such table; others must have its place


def table_ids(names: Collection[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """Return table ids by account and name, WHOLE for an empty name; unknown names are omitted."""
    ids: dict[tuple[int, str], int] = dict.fromkeys((it for it in names if not it[1]), WHOLE)
    # failed requests may name tables in characters that PostgreSQL cannot store
    named = [key for key in names if key[1] and storable_text(key[1], _LONGEST_NAME) == key[1]]
    if not named:
        return ids
    rows = Table.objects.filter(
        account_id__in={account_id for account_id, _ in named},
        folded_name__in={spelling for _, name in named for spelling in (name, name.lower())},
        deleted_at=None,
    )
    known = {
        (account_id, folded): (pk, kind)
        for pk, account_id, folded, kind in rows.values_list(
            "pk", "account_id", "folded_name", "account__kind"
        )
    }
    for account_id, name in named:
        pk, kind = known.get((account_id, name.lower()), (None, ""))
        if pk is None or kind == AccountKind.COSMOS:
            pk, _ = known.get((account_id, name), (None, ""))
        if pk is not None:
            ids[account_id, name] = pk
    return ids


def _row(
    account_id: int, table_id: int, minutes: int, period: datetime, counts: PeriodCounts, process: str = ""
) -> RequestSeries:
    return RequestSeries(
        account_id=account_id,
        table_id=table_id,
        minutes=minutes,
        period=period,
        process=process,
        counts=write_counts(counts),
    )


# reading


def rows(minutes: int) -> QuerySet[RequestSeries]:
    """Select rows that together count each request once, at a resolution in minutes."""
    return RequestSeries.objects.filter(Q(minutes=minutes) | _NEW)


def read(
    account_id: int,
    table_id: int,
    periods: Sequence[datetime],
    end: datetime,
    minutes: int,
    *,
    with_frequent: bool = False,
) -> list[PeriodCounts]:
    """Return the counts of all processes in each period; the last one ends at ``end``."""
    mine = rows(minutes).filter(
        account_id=account_id, table_id=table_id, period__gte=periods[0], period__lt=end
    )
    totals = [PeriodCounts() for _ in periods]
    for period, counts in mine.values_list("period", "counts" if with_frequent else "counts__0"):
        total = totals[bisect_right(periods, period) - 1]
        total.add(read_counts(counts) if with_frequent else PeriodCounts(read_kinds(counts)))
    return totals


def read_latest(since: datetime) -> dict[int, PeriodCounts]:
    """Return the counts of each account in minutes starting after a time."""
    latest = RequestSeries.objects.filter(minutes=1, period__gt=since, table_id=WHOLE)
    totals: defaultdict[int, PeriodCounts] = defaultdict(PeriodCounts)
    for account_id, kinds in latest.exclude(account_id=SERVER).values_list("account_id", "counts__0"):
        totals[account_id].add(PeriodCounts(read_kinds(kinds)))
    return dict(totals)


def read_tables(
    account_ids: Collection[int], since: datetime, until: datetime
) -> dict[tuple[int, int], PeriodCounts]:
    """Return the counts of each table of some accounts in the minutes between two times, by account and table."""
    recent = RequestSeries.objects.filter(
        minutes=1, account_id__in=account_ids, period__gte=since, period__lt=until
    ).exclude(table_id=WHOLE)
    totals: defaultdict[tuple[int, int], PeriodCounts] = defaultdict(PeriodCounts)
    for account_id, table_id, counts in recent.values_list("account_id", "table_id", "counts"):
        totals[account_id, table_id].add(read_counts(counts))
    return dict(totals)


def read_span(account_id: int, since: datetime, until: datetime, now: datetime) -> PeriodCounts:
    """Return the counts of an account between two times, at the finest resolution still kept."""
    short = next((minutes for minutes, kept in KEPT.items() if since >= now - kept), max(KEPT))
    long = next((minutes for minutes in KEPT if minutes > short), short)
    # the short periods are only read at the ends
    first = start_of(since - timedelta(microseconds=1), long) + timedelta(minutes=long)
    last = start_of(until, long)
    within = Q(minutes=long, period__gte=first, period__lt=last)
    at_ends = Q(minutes=short, period__lt=first) | Q(minutes=short, period__gte=last)
    rows = RequestSeries.objects.filter(
        _NEW | within | at_ends,
        account_id=account_id,
        table_id=WHOLE,
        period__gte=since,
        period__lt=until,
    )
    total = PeriodCounts()
    for kinds in rows.values_list("counts__0", flat=True):
        total.add(PeriodCounts(read_kinds(kinds)))
    return total


def first_observed() -> datetime | None:
    """Return the first known period in which a server ran."""
    first: datetime | None = RequestSeries.objects.filter(account_id=SERVER).aggregate(first=Min("period"))[
        "first"
    ]
    return first


def observed_periods(periods: Sequence[datetime], end: datetime, minutes: int) -> list[bool]:
    """Return whether a server ran, for each period; one runs now."""
    servers = rows(minutes).filter(account_id=SERVER, period__gte=periods[0], period__lt=end)
    now = timezone.now()
    observed = [start <= now < following for start, following in pairwise([*periods, end])]
    for moment in set(servers.values_list("period", flat=True)):
        observed[bisect_right(periods, moment) - 1] = True
    return observed


# keeping


def tidy(now: datetime) -> None:
    """Aggregate the rows that are no longer written, and delete expired or excess rows."""
    end = start_of(now - LATE - 2 * MINUTE, QUARTER)
    new = RequestSeries.objects.filter(_NEW, period__lt=end)
    while places := set(new.values_list("account_id", "table_id")[:_BATCH]):
        for place in sorted(places):
            _add_up(place, end)
    for minutes, kept in KEPT.items():
        RequestSeries.objects.filter(minutes=minutes, period__lt=now - kept).delete()
    excess = RequestSeries.objects.count() - _ROWS_LIMIT
    if excess > 0:
        of_tables = RequestSeries.objects.exclude(table_id=WHOLE).order_by("minutes", "period")
        RequestSeries.objects.filter(pk__in=of_tables.values("pk")[:excess]).delete()


@transaction.atomic
def _add_up(place: Place, end: datetime) -> None:
    """Merge the rows of all processes into one per minute, and add them to the rows of longer periods."""
    account_id, table_id = place
    mine = RequestSeries.objects.filter(account_id=account_id, table_id=table_id)
    new = list(mine.filter(_NEW, period__lt=end).order_by("period")[:_BATCH])
    totals: defaultdict[tuple[int, datetime], PeriodCounts] = defaultdict(PeriodCounts)
    for row in new:
        counts = read_counts(row.counts)
        for minutes in (1, *_LONGER):
            totals[minutes, start_of(row.period, minutes)].add(counts)
    before = mine.filter(process="", minutes__in={1, *_LONGER}, period__in={period for _, period in totals})
    for row in before:
        if (row.minutes, row.period) in totals:
            totals[row.minutes, row.period].add(read_counts(row.counts))
    mine.filter(pk__in=[row.pk for row in new]).delete()
    RequestSeries.objects.bulk_create(
        [_row(account_id, table_id, *key, counts) for key, counts in totals.items()],
        batch_size=1000,
        update_conflicts=True,
        unique_fields=REQUEST_SERIES_KEY,
        update_fields=("counts",),
    )


def start_of(moment: datetime, minutes: int) -> datetime:
    """Return the start of the period of some minutes that contains a time, aligned to midnight."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    length = timedelta(minutes=minutes)
    return midnight + (moment - midnight) // length * length


def sum_counts(several: Iterable[PeriodCounts]) -> PeriodCounts:
    total = PeriodCounts()
    for counts in several:
        total.add(counts)
    return total
