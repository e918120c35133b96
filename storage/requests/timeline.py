"""Timeline of requests by outcome, for a filter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db.models import Count, F, IntegerField, Sum, Value
from django.db.models.functions import Cast, Extract, Floor

from storage.domain.errors import StorageError
from storage.domain.requests.outcomes import Outcome, outcome_of_status
from storage.domain.requests.series import SeriesKind
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.stored import read_member
from storage.domain.values.time_buckets import TimeBucket
from storage.metrics import series
from storage.metrics.reports import Range
from storage.models import Account
from storage.requests.requests import TIMEOUT, RequestFilter, matching
from storage.sql.django import limited
from storage.tables import tables


@dataclass(frozen=True, slots=True)
class Timeline:
    """Requests over time; buckets count by outcome."""

    buckets: Sequence[TimeBucket]
    is_counted: bool  # whether all requests are in the numbers, not only those in the log
    kept: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of requests by outcome."""
        return {it.value: sum(bucket.counts[it] for bucket in self.buckets) for it in Outcome}


def timeline(account: Account, criteria: RequestFilter, periods: Range) -> Timeline:
    """Count the requests of an account in each period; raises OperationTimedOut."""
    criteria = replace(criteria, account_ids=[account.pk], since=periods.since, until=periods.until)
    step = timedelta(minutes=periods.step)
    buckets = [TimeBucket(start, start + step) for start in periods.periods]
    table_id = _counted_table(account, criteria)
    with limited(TIMEOUT):
        if table_id is None:
            _count_kept(buckets, criteria, periods)
        else:
            _count_all(buckets, criteria, periods, account, table_id)
        kept = matching(criteria).count()
    return Timeline(buckets, table_id is not None, kept)


def _counted_table(account: Account, criteria: RequestFilter) -> int | None:
    """Return the id of the table whose counts answer a filter, or WHOLE; None if counts cannot answer it."""
    counted = RequestFilter(
        criteria.account_ids,
        status=criteria.status,
        code=criteria.code,
        operation=criteria.operation,
        table=criteria.table,
        since=criteria.since,
        until=criteria.until,
    )
    if criteria != counted:
        return None
    if not criteria.table:
        return series.WHOLE
    try:
        table = tables.find(account, fold_table_name(criteria.table, AccountKind(account.kind)))
    except StorageError:
        return None
    return None if table is None else table.pk


def _count_all(
    buckets: Sequence[TimeBucket], criteria: RequestFilter, periods: Range, account: Account, table_id: int
) -> None:
    counted_periods = series.read(account.pk, table_id, periods.periods, periods.until, periods.stored)
    for bucket, counted in zip(buckets, counted_periods, strict=True):
        for kind, traffic in counted.kinds.items():
            if _is_wanted(kind, criteria):
                bucket.counts[outcome_of_status(kind.status)] += traffic.requests


def _is_wanted(kind: SeriesKind, criteria: RequestFilter) -> bool:
    return (
        criteria.status in (None, kind.status)
        and criteria.code in ("", kind.error)
        and criteria.operation in (None, kind.operation)
    )


def _count_kept(buckets: Sequence[TimeBucket], criteria: RequestFilter, periods: Range) -> None:
    seconds = Extract("at", "epoch") - Value(periods.since.timestamp())
    place = Cast(Floor(seconds / Value(60.0 * periods.step)), IntegerField())
    rows = (
        matching(criteria)
        .annotate(place=place)
        .values("place", "outcome")
        .annotate(number=Count("pk") + Sum(F("alike")))
        .order_by()
    )
    for row in rows:
        buckets[row["place"]].counts[read_member(Outcome, row["outcome"])] += row["number"]
