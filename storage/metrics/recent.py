"""What accounts were asked for in the last minutes, and how that went: what alarms look at."""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate

from storage.domain.requests.metrics import LATENCY_BOUNDS
from storage.domain.requests.outcomes import is_server_failure
from storage.models import RequestCount


@dataclass(slots=True)
class RecentRequests:
    """``failed`` by an error of the server; ``refused`` for lack of permission. ``latencies`` as in Tally."""

    requests: int = 0
    failed: int = 0
    refused: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))

    @property
    def share_wrong(self) -> float:
        """The share of failed and refused requests, in percent."""
        return 100 * (self.failed + self.refused) / self.requests if self.requests else 0.0

    def exceeded(self, share: float) -> float:
        """Return the longest bound in seconds that more than a share of the requests, such as 0.05, exceeded."""
        counted = list(accumulate(self.latencies))
        place = bisect_left(counted, (1 - share) * counted[-1]) if counted[-1] else 0
        return LATENCY_BOUNDS[place - 1] if place else 0.0


def recent_requests(now: datetime, span: timedelta) -> dict[int, RecentRequests]:
    """Return the requests of the last minutes by account; the current minute counts too."""
    rows = RequestCount.objects.filter(minutes=1, period__gt=now - span - timedelta(minutes=1))
    found: dict[int, RecentRequests] = {}
    for account_id, status, requests, latencies in rows.values_list(
        "account_id", "status", "requests", "latencies"
    ).iterator():
        total = found.setdefault(account_id, RecentRequests())
        total.requests += requests
        total.failed += requests if is_server_failure(status) else 0
        total.refused += requests if status in (401, 403) else 0
        total.latencies = [one + other for one, other in zip(total.latencies, latencies, strict=True)]
    return found
