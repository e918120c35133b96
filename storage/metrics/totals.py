"""Contents and traffic of accounts, with one query for all of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Max, Sum

from storage.metrics.metrics import (
    HOURS,
    first_hour,
    hour_counts,
    place_of,
)
from storage.metrics.remembered import MANY_TABLES, Remembered
from storage.models import RequestCount, StoredAccessPolicy
from storage.sql import background
from storage.sql.background import Contents as Contents

_contents: Final = Remembered[Contents]()


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests in each of the last 24 hours, the current one last; ``last``: the minute or hour of the latest."""

    hours: Sequence[int] = (0,) * HOURS
    last: datetime | None = None


def contents(account_ids: Collection[int]) -> dict[int, Contents]:
    """Return the contents by account; those of an account with thousands of tables may be a minute old."""
    known = {pk: found for pk in account_ids if (found := _contents.get(pk)) is not None}
    others = [pk for pk in account_ids if pk not in known]
    fresh = background.totals(others) if others else {}
    for pk, found in fresh.items():
        if found.tables > MANY_TABLES:
            _contents.put(pk, found)
    return known | fresh


def count_policies(account_id: int) -> int:
    """Count the stored access policies of all tables of an account."""
    return StoredAccessPolicy.objects.filter(table__account_id=account_id, table__deleted_at=None).count()


def traffic(account_ids: Collection[int], now: datetime) -> dict[int, Traffic]:
    """Return the traffic by account; accounts without requests for a month are missing."""
    start = first_hour(now)
    hours: dict[int, list[int]] = {}
    last: dict[int, datetime] = {}
    counted = hour_counts(account_ids, start).values_list("account_id", "hour")
    for account_id, hour, number, latest in counted.annotate(Sum("requests"), Max("period")):
        hours.setdefault(account_id, [0] * HOURS)[place_of(hour, start)] += number
        last[account_id] = max(last.get(account_id, latest), latest)
    quiet = set(account_ids) - last.keys()
    if quiet:
        month = RequestCount.objects.filter(account_id__in=quiet, minutes=60).order_by()
        last |= dict(month.values_list("account_id").annotate(Max("period")))
    return {
        account_id: Traffic(tuple(hours.get(account_id, Traffic().hours)), moment)
        for account_id, moment in last.items()
    }
