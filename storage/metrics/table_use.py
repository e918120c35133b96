"""Last writes to tables, and their requests per hour."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from storage.metrics.last_day import Hours, day_rows, traffic_by
from storage.metrics.ledger import LATE, Ledger
from storage.models import Table
from storage.sql import background
from storage.sql.background import commit_asynchronously


class TableWrites(Ledger[tuple[int], datetime]):
    """Unstored times of the last write, by table id."""

    def add(self, moment: datetime, written: Iterable[int]) -> None:
        self._counted |= {(table_id,): moment for table_id in written}

    def write(self) -> None:
        if self._counted:
            with transaction.atomic():
                commit_asynchronously()
                done = background.set_written({table_id: at for (table_id,), at in self._counted.items()})
            # others were locked elsewhere
            self._counted = {key: at for key, at in self._counted.items() if key[0] not in done}

    def forget(self, now: datetime) -> None:
        """Drop old writes that could not be stored, such as those to deleted tables."""
        self._counted = {key: at for key, at in self._counted.items() if at + LATE > now}


def record_write(table: Table) -> None:
    """Record a write to a table when the current transaction commits."""
    transaction.on_commit(lambda: _record_now(table.pk))


def _record_now(table_id: int) -> None:
    background.set_written({table_id: timezone.now()})


def last_day(tables: Sequence[Table], now: datetime) -> dict[int, Hours]:
    """Return the requests per hour of the last day by table id, without idle tables."""
    rows = day_rows(now).filter(
        account_id__in={table.account_id for table in tables}, table_id__in=[table.pk for table in tables]
    )
    return {table_id: traffic.hours for table_id, traffic in traffic_by("table_id", rows, now).items()}


def requests_of_table(now: datetime) -> Coalesce:
    """Return a query expression for a table's requests of the last day."""
    mine = day_rows(now).filter(account_id=OuterRef("account_id"), table_id=OuterRef("pk"))
    return Coalesce(Subquery(mine.values("table_id").annotate(total=Sum("requests")).values("total")), 0)
