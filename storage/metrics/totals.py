"""Contents and traffic of accounts, each read with one query for all accounts."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max

from storage.metrics.last_day import Traffic, day_rows, traffic_by
from storage.metrics.remembered import MANY_TABLES, Remembered
from storage.metrics.series import KEPT, WHOLE
from storage.models import RequestSeries, StoredAccessPolicy
from storage.sql import background
from storage.sql.background import Contents as Contents

_MONTH: Final = timedelta(days=31)
_contents: Final = Remembered[Contents]()


def contents(account_ids: Collection[int]) -> dict[int, Contents]:
    """Return the contents by account; up to a minute old for accounts with thousands of tables."""
    known = {pk: content for pk in account_ids if (content := _contents.get(pk)) is not None}
    others = [pk for pk in account_ids if pk not in known]
    fresh = background.totals(others) if others else {}
    for pk, content in fresh.items():
        if content.tables > MANY_TABLES:
            _contents.put(pk, content)
    return known | fresh


def count_policies(account_id: int) -> int:
    """Count the stored access policies of all tables of an account."""
    return StoredAccessPolicy.objects.filter(table__account_id=account_id, table__deleted_at=None).count()


def traffic(account_ids: Collection[int], now: datetime) -> dict[int, Traffic]:
    """Return the traffic by account, without accounts idle for a month."""
    by_account = traffic_by(
        "account_id", day_rows(now).filter(account_id__in=account_ids, table_id=WHOLE), now
    )
    quiet = set(account_ids) - by_account.keys()
    if quiet:
        month = RequestSeries.objects.filter(
            account_id__in=quiet, table_id=WHOLE, minutes=max(KEPT), period__gt=now - _MONTH
        )
        last = month.values_list("account_id").annotate(Max("period"))
        by_account |= {account_id: Traffic(last=moment) for account_id, moment in last}
    return by_account
