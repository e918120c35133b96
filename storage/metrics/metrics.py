"""Request counts by minute and hour: each process writes its own, readers get sums over all."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import TruncHour

from storage.domain.access.grants import Operation
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.requests.observed import Authentication
from storage.domain.values.stored import read_member
from storage.metrics.ledger import LATE, Ledger
from storage.models import REQUEST_COUNT_KEY, RequestCount

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
HOURS: Final = 24

_MINUTES_KEPT: Final = timedelta(days=1)
_HOURS_KEPT: Final = timedelta(days=31)

_KIND: Final = RequestKind._fields
_VALUES: Final = ("requests", "ingress", "egress", "server_time", "total_time", "latencies")


class Counts(Ledger[tuple[datetime, RequestKind], Tally]):
    """The counts of one process until they are written, by minute and kind."""

    is_whole, settled, late = True, 2 * MINUTE, LATE

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def add(self, minute: datetime, counted: Mapping[RequestKind, Tally]) -> None:
        for kind, tally in counted.items():
            if kind.account_id:
                total = self._counted.get((minute, kind), Tally())
                total.add(tally)
                self._count((minute, kind), total)

    def _order(self, key: tuple[datetime, RequestKind]) -> tuple[datetime, str]:
        return key[0], str(key[1])

    def _store(self, counted: Mapping[tuple[datetime, RequestKind], Tally]) -> None:
        RequestCount.objects.bulk_create(
            [_row(self._process, *key, tally) for key, tally in counted.items()],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=REQUEST_COUNT_KEY,
            update_fields=_VALUES,
        )


def _row(process: str, period: datetime, kind: RequestKind, tally: Tally, minutes: int = 1) -> RequestCount:
    counted = {name: getattr(tally, name) for name in _VALUES}
    known = kind._replace(operation=kind.operation or "")  # type: ignore[arg-type]
    return RequestCount(process=process, minutes=minutes, period=period, **known._asdict(), **counted)


# reading


@dataclass(frozen=True, slots=True)
class Count:
    """The requests of a kind in a period, of all processes."""

    period: datetime
    kind: RequestKind
    tally: Tally


def counts(account_id: int, since: datetime, until: datetime, *, length: timedelta = MINUTE) -> list[Count]:
    """Return counts by period and kind; the periods start at or after ``since`` and before ``until``.

    Minutes are kept for a day, hours for a month. Hours that are not summed up yet are missing.
    """
    rows = RequestCount.objects.filter(
        account_id=account_id, minutes=length // MINUTE, period__gte=since, period__lt=until
    )
    return _summed(rows.order_by("period"))


def _summed(rows: Iterable[RequestCount]) -> list[Count]:
    """Sum rows that are ordered by period."""
    return [
        Count(period, kind, tally)
        for period, group in groupby(rows, key=lambda row: row.period)
        for kind, tally in _tallies(group).items()
    ]


def _tallies(rows: Iterable[RequestCount]) -> dict[RequestKind, Tally]:
    found: dict[RequestKind, Tally] = {}
    for row in rows:
        kind = _read_kind(*(getattr(row, name) for name in _KIND))
        found.setdefault(kind, Tally()).add(Tally(*(getattr(row, name) for name in _VALUES)))
    return found


def _read_kind(
    account_id: int, secondary: bool, operation: str, authentication: str, status: int, error: str
) -> RequestKind:
    return RequestKind(
        account_id,
        secondary,
        read_member(Operation, operation) if operation else None,
        read_member(Authentication, authentication),
        status,
        error,
    )


def hour_counts(account_ids: Collection[int], since: datetime) -> QuerySet[Any, Any]:
    """Select rows with their ``hour`` that together count each request once: of hours, and minutes not yet in them."""
    counted_once = Q(minutes=HOUR // MINUTE) | (Q(minutes=1) & ~Q(process=""))
    rows = RequestCount.objects.filter(counted_once, account_id__in=account_ids, period__gte=since)
    return rows.order_by().annotate(hour=TruncHour("period"))


# keeping


def tidy(now: datetime) -> None:
    """Sum up the hours that no process writes any more, and delete what is too old."""
    end = hour_of(now - LATE - 2 * MINUTE)
    unsummed = RequestCount.objects.filter(minutes=1, period__lt=end).exclude(process="")
    hours = unsummed.annotate(hour=TruncHour("period")).values_list("account_id", "hour").distinct()
    for account_id, hour in hours.order_by("hour"):
        _sum_up(account_id, hour)
    RequestCount.objects.filter(minutes=1, period__lt=now - _MINUTES_KEPT - HOUR).delete()
    RequestCount.objects.filter(minutes=60, period__lt=now - _HOURS_KEPT).delete()


@transaction.atomic
def _sum_up(account_id: int, hour: datetime) -> None:
    """Replace the rows of all processes by one row of each kind, for each minute and for the hour."""
    rows = RequestCount.objects.filter(account_id=account_id, period__gte=hour, period__lt=hour + HOUR)
    minutes = rows.filter(minutes=1).order_by("period")
    per_minute = [_row("", count.period, count.kind, count.tally) for count in _summed(minutes)]
    per_hour = [_row("", hour, kind, tally, minutes=60) for kind, tally in _tallies(minutes).items()]
    rows.delete()
    RequestCount.objects.bulk_create(per_minute + per_hour)


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def first_hour(now: datetime) -> datetime:
    """Return the first of the last 24 hours, of which the current one is the last."""
    return hour_of(now) - (HOURS - 1) * HOUR


def place_of(hour: datetime, first: datetime) -> int:
    """Return the place of an hour among these; one in the future, by another server's clock, is the last."""
    return min((hour - first) // HOUR, HOURS - 1)
