"""Recently run filters of a user."""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from console.models import RecentQuery, User
from storage.models import Table
from storage.tables import tables

LIMIT: Final = 50  # for each user
_TEXT_LENGTH: Final = 16_000  # characters


def record_run(user: User, table: Table, text: str) -> None:
    """Record a filter in one statement; excess ones are hidden until ``tidy`` deletes them."""
    if len(text) > _TEXT_LENGTH or "\0" in text:
        return
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
    RecentQuery.objects.bulk_create(
        [RecentQuery(user=user, table=table, digest=digest, text=text, used_at=timezone.now())],
        update_conflicts=True,
        unique_fields=("user", "table", "digest"),
        update_fields=("used_at",),
    )


def for_table(user: User, table: Table, *, top: int = LIMIT) -> list[RecentQuery]:
    """Return the recent queries of a table, latest first."""
    return [recent for recent in _latest(user) if recent.table_id == table.pk][:top]


def for_account(user: User, account_id: int) -> list[RecentQuery]:
    """Return the recent queries of an account, latest first."""
    return [recent for recent in _latest(user) if recent.table.account_id == account_id]


def _latest(user: User) -> list[RecentQuery]:
    found = RecentQuery.objects.filter(user=user).select_related("table__account").order_by("-used_at")
    return [recent for recent in found[:LIMIT] if recent.table.deleted_at is None]


def clear(user: User, account_id: int) -> None:
    RecentQuery.objects.filter(user=user, table__account=account_id).delete()


def tidy(now: datetime) -> None:
    """Delete filters beyond the limit, and filters of tables deleted 30 days ago."""
    rank = Window(RowNumber(), partition_by=F("user"), order_by=F("used_at").desc())
    hidden = RecentQuery.objects.annotate(rank=rank).filter(rank__gt=LIMIT)
    RecentQuery.objects.filter(pk__in=list(hidden.values_list("pk", flat=True))).delete()
    deleted = tables.deleted_before(now - timedelta(days=30))
    RecentQuery.objects.filter(table__in=deleted.values("pk")).delete()
