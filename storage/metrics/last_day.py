"""Requests and errors of the last day, by hour."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import TruncHour

from storage.domain.errors import NotImplemented
from storage.domain.requests.outcomes import Outcome, is_server_failure, outcome_of_status
from storage.domain.requests.series import PeriodCounts
from storage.metrics import series
from storage.metrics.series import DAY, HOUR, QUARTER, WHOLE

HOURS: Final = 24

Hours = tuple[int, ...]  # requests in each of the last 24 hours, the current one last


@dataclass(frozen=True, slots=True)
class Hour:
    """Requests of one hour; ``refused`` counts client errors, ``failed`` server errors."""

    start: datetime
    requests: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True)
class Day:
    """The last 24 hours of an account, the current one last."""

    hours: Sequence[Hour]
    counts: PeriodCounts

    @property
    def requests(self) -> int:
        return self.counts.requests

    @property
    def refused(self) -> int:
        return sum(hour.refused for hour in self.hours)

    @property
    def failed(self) -> int:
        return sum(hour.failed for hour in self.hours)

    @property
    def unsupported(self) -> int:
        """Return the number of requests for functions and options that Table storage does not have."""
        return self.counts.requests_where(lambda status: status == NotImplemented.status)

    @property
    def wrong(self) -> int:
        return self.refused + self.failed

    @property
    def errors(self) -> list[tuple[str, int]]:
        """Return error codes with their numbers, most frequent first."""
        by_code: Counter[str] = Counter()
        for (_, code), number in self.counts.by_code().items():
            if code:
                by_code[code] += number
        return by_code.most_common()


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests in the last 24 hours."""

    hours: Hours = (0,) * HOURS
    last: datetime | None = None  # the start of the period of the latest request within a month


def last_day(account_id: int, now: datetime) -> Day:
    first = _first_hour(now)
    starts = [first + place * HOUR for place in range(HOURS)]
    # by another server's clock, some may be in the future: they count for the last hour
    quarters = series.read(account_id, WHOLE, starts, now + DAY, QUARTER)
    hours = [_hour(start, counts) for start, counts in zip(starts, quarters, strict=True)]
    return Day(hours, series.sum_counts(quarters))


def _hour(start: datetime, counts: PeriodCounts) -> Hour:
    refused = counts.requests_where(lambda status: outcome_of_status(status) is Outcome.REFUSED)
    return Hour(start, counts.requests, refused, counts.requests_where(is_server_failure))


def day_rows(now: datetime) -> QuerySet[Any]:
    """Select the rows that together count each request of the last day once."""
    return series.rows(QUARTER).filter(period__gte=_first_hour(now))


def traffic_by(column: str, rows: QuerySet[Any], now: datetime) -> dict[int, Traffic]:
    """Sum request counts by a column, such as the table, and by hour of the last day."""
    first = _first_hour(now)
    hours: dict[int, list[int]] = {}
    last: dict[int, datetime] = {}
    counted = rows.annotate(hour=TruncHour("period", tzinfo=UTC)).values_list(column, "hour")
    for key, hour, number, latest in counted.annotate(Sum("requests"), Max("period")):
        place = min((hour - first) // HOUR, HOURS - 1)  # one in the future, as above
        hours.setdefault(key, [0] * HOURS)[place] += number
        last[key] = max(last.get(key, latest), latest)
    return {key: Traffic(tuple(numbers), last[key]) for key, numbers in hours.items()}


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _first_hour(now: datetime) -> datetime:
    """Return the first of the last 24 hours, including the current one."""
    return hour_of(now) - (HOURS - 1) * HOUR
