"""Condition of notices about hot partitions."""

from collections.abc import Iterator
from typing import Final

from storage.core.notices import Found, Look
from storage.domain.requests.targets import PARTITION_TARGET
from storage.metrics import series
from storage.metrics.series import MINUTE
from storage.models import Account, Table

_MINUTES: Final = 5  # whole minutes before the current one, so that a short peak is none
_LONGEST: Final = 64  # characters of a key that a notice names


def find_hot_partitions(look: Look) -> Iterator[Found]:
    """Yield the busiest partition of each table that is near Azure's target, as a percentage of it."""
    until = look.now.replace(second=0, microsecond=0)
    since = until - _MINUTES * MINUTE
    least = _requests_at(look.least_threshold)
    # most servers have no account with so many requests, whose tables need not be read
    busy = [pk for pk, counts in series.read_latest(since - MINUTE).items() if counts.requests >= least]
    if not busy:
        return
    known = set(Account.objects.filter(pk__in=busy).values_list("pk", flat=True))
    counted = series.read_tables(known, since, until)
    tables = Table.objects.filter(pk__in=[table_id for _, table_id in counted], deleted_at=None)
    names = dict(tables.values_list("pk", "name"))
    for (account_id, table_id), counts in sorted(counted.items()):
        top = counts.partitions.top(1)
        if not top or table_id not in names or top[0][1] < _requests_at(look.threshold(account_id)):
            continue
        [(partition, requests)] = top
        rate = requests / (_MINUTES * MINUTE.total_seconds())
        facts = {
            "partition": partition[:_LONGEST],
            "table": names[table_id],
            "rate": round(rate),
            "minutes": _MINUTES,
            "share": min(100, round(100 * requests / counts.requests)),
            "percent": round(100 * rate / PARTITION_TARGET),
        }
        yield Found(account_id, names[table_id], facts)


def _requests_at(percent: float) -> float:
    """Return the requests to a partition for which it has a percentage of the target."""
    return percent / 100 * PARTITION_TARGET * _MINUTES * MINUTE.total_seconds()
