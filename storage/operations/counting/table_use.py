"""When tables were last written, and how many requests for entities they got in each hour."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from storage.models import Table, TableRequests
from storage.operations.counting.metrics import DAY, HOUR, hour_of
from storage.operations.counting.totals import HOURS
from storage.sql import background
from storage.sql.background import commit_asynchronously

_LATE: Final = timedelta(minutes=30)  # after it, what could not be written is dropped

Hours = tuple[int, ...]  # requests in each of the last 24 hours, the current one last
NO_REQUESTS: Final[Hours] = (0,) * HOURS


class TableUses:
    """What one process has counted of its tables, by id, until it is written."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[datetime, int]] = Counter()
        self._written: dict[int, datetime] = {}

    def add(self, moment: datetime, requests: Mapping[int, int], written: Iterable[int]) -> None:
        hour = hour_of(moment)
        for table_id, number in requests.items():
            self._requests[hour, table_id] += number
        self._written |= dict.fromkeys(written, moment)

    def write(self) -> None:
        if not self._requests and not self._written:
            return
        with transaction.atomic():
            commit_asynchronously()
            # all processes write in the same order, so that they cannot deadlock
            background.add_table_requests(sorted(self._requests.items()))
            locked_elsewhere = self._written.keys() - background.set_written(self._written)
        self._requests.clear()
        self._written = {table_id: self._written[table_id] for table_id in locked_elsewhere}

    def give_up(self) -> None:
        """Drop what is not written."""
        self._requests.clear()
        self._written.clear()

    def forget(self, now: datetime) -> None:
        """Drop what is too old, such as writes to tables that were deleted since."""
        for key in [key for key in self._requests if key[0] + HOUR + _LATE < now]:
            del self._requests[key]
        self._written = {key: moment for key, moment in self._written.items() if moment + _LATE > now}


def record_write(table: Table) -> None:
    """Record that the current transaction writes to a table, as soon as it commits."""
    transaction.on_commit(lambda: _record_now(table.pk))


def _record_now(table_id: int) -> None:
    background.set_written({table_id: timezone.now()})


def last_day(tables: Sequence[Table], now: datetime) -> dict[int, Hours]:
    """Return the requests of the last day by table id; tables without requests are missing."""
    start = _first_hour(now)
    found: dict[int, list[int]] = {}
    rows = TableRequests.objects.filter(table__in=[table.pk for table in tables], hour__gte=start)
    for table_id, hour, requests in rows.values_list("table_id", "hour", "requests"):
        hours = found.setdefault(table_id, [0] * HOURS)
        hours[min((hour - start) // HOUR, HOURS - 1)] += requests
    return {table_id: tuple(hours) for table_id, hours in found.items()}


def requests_of_table(now: datetime) -> Coalesce:
    """Return an expression for the requests of the last day, in a query of tables."""
    mine = TableRequests.objects.filter(table=OuterRef("pk"), hour__gte=_first_hour(now))
    return Coalesce(Subquery(mine.values("table").annotate(total=Sum("requests")).values("total")), 0)


def _first_hour(now: datetime) -> datetime:
    return hour_of(now) - (HOURS - 1) * HOUR


def tidy(now: datetime) -> None:
    """Delete what is too old."""
    TableRequests.objects.filter(hour__lt=now - DAY - HOUR).delete()
