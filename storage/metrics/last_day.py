"""What the clients of an account asked for in the last day, and what went wrong."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from storage.domain.requests.outcomes import Outcome, is_server_failure, outcome_of_status
from storage.metrics.metrics import (
    HOUR,
    HOURS,
    first_hour,
    hour_counts,
    place_of,
)


@dataclass(slots=True)
class Hour:
    """The requests of an hour; ``refused`` by an error of the client, ``failed`` by one of the server."""

    start: datetime
    requests: int = 0
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """The last 24 hours, the current one last; ``errors`` are codes with their numbers, the most frequent first."""

    hours: Sequence[Hour]
    errors: Sequence[tuple[str, int]]
    mean_time: float  # seconds until a response was ready

    @property
    def requests(self) -> int:
        return sum(hour.requests for hour in self.hours)

    @property
    def refused(self) -> int:
        return sum(hour.refused for hour in self.hours)

    @property
    def failed(self) -> int:
        return sum(hour.failed for hour in self.hours)

    @property
    def wrong(self) -> int:
        return self.refused + self.failed

    @property
    def mean_milliseconds(self) -> float:
        return self.mean_time * 1000


def last_day(account_id: int, now: datetime) -> Day:
    first = first_hour(now)
    hours = [Hour(first + place * HOUR) for place in range(HOURS)]
    errors: Counter[str] = Counter()
    seconds = 0.0
    counted = hour_counts([account_id], first).values_list("hour", "status", "error")
    for start, status, error, requests, server_time in counted.annotate(Sum("requests"), Sum("server_time")):
        hour = hours[place_of(start, first)]
        hour.requests += requests
        hour.refused += requests if outcome_of_status(status) is Outcome.REFUSED else 0
        hour.failed += requests if is_server_failure(status) else 0
        seconds += server_time
        if error:
            errors[error] += requests
    total = sum(hour.requests for hour in hours)
    return Day(hours, errors.most_common(), seconds / total if total else 0.0)
