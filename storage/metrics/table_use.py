"""When tables were last written, and how many requests for entities they got in each hour."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from storage.metrics.ledger import LATE, Ledger
from storage.metrics.metrics import (
    DAY,
    HOUR,
    HOURS,
    first_hour,
    hour_of,
    place_of,
)
from storage.models import Table, TableRequests
from storage.sql import background
from storage.sql.background import commit_asynchronously

Hours = tuple[int, ...]  # requests in each of the last 24 hours, the current one last


class TableUses(Ledger[tuple[datetime, int], int]):
    """What one process has counted of its tables until it is written, by hour and id; and which were written when."""

    late = HOUR + LATE

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[int, datetime] = {}

    def add(self, moment: datetime, requests: Mapping[int, int], written: Iterable[int]) -> None:
        for table_id, number in requests.items():
            key = (hour_of(moment), table_id)
            self._count(key, self._counted.get(key, 0) + number)
        self._written |= dict.fromkeys(written, moment)

    def write(self) -> None:
        super().write()
        if self._written:
            with transaction.atomic():
                commit_asynchronously()
                done = background.set_written(self._written)
            # others were locked elsewhere
            self._written = {key: moment for key, moment in self._written.items() if key not in done}

    def give_up(self) -> None:
        super().give_up()
        self._written.clear()

    def forget(self, now: datetime) -> None:
        """Also drop writes to tables that were deleted since."""
        super().forget(now)
        self._written = {key: moment for key, moment in self._written.items() if moment + LATE > now}

    def _store(self, counted: Mapping[tuple[datetime, int], int]) -> None:
        keys, rows = (
            {"hour": "timestamptz", "table_id": "bigint"},
            [(*key, it) for key, it in counted.items()],
        )
        background.add_up("storage_tablerequests", keys, {"requests": "bigint"}, rows)


def record_write(table: Table) -> None:
    """Record that the current transaction writes to a table, as soon as it commits."""
    transaction.on_commit(lambda: _record_now(table.pk))


def _record_now(table_id: int) -> None:
    background.set_written({table_id: timezone.now()})


def last_day(tables: Sequence[Table], now: datetime) -> dict[int, Hours]:
    """Return the requests of the last day by table id; tables without requests are missing."""
    start = first_hour(now)
    found: dict[int, list[int]] = {}
    rows = TableRequests.objects.filter(table__in=[table.pk for table in tables], hour__gte=start)
    for table_id, hour, requests in rows.values_list("table_id", "hour", "requests"):
        hours = found.setdefault(table_id, [0] * HOURS)
        hours[place_of(hour, start)] += requests
    return {table_id: tuple(hours) for table_id, hours in found.items()}


def requests_of_table(now: datetime) -> Coalesce:
    """Return an expression for the requests of the last day, in a query of tables."""
    mine = TableRequests.objects.filter(table=OuterRef("pk"), hour__gte=first_hour(now))
    return Coalesce(Subquery(mine.values("table").annotate(total=Sum("requests")).values("total")), 0)


def tidy(now: datetime) -> None:
    """Delete what is too old."""
    TableRequests.objects.filter(hour__lt=now - DAY - HOUR).delete()
