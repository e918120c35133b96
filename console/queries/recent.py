"""The filters that a user ran last."""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from console.models import RecentQuery, User
from storage.models import Table

MOST: Final = 50  # of a user
_LONGEST: Final = 16_000  # characters


def ran(user: User, table: Table, text: str) -> None:
    """One statement; what is too much is tidied later, and not shown."""
    if len(text) > _LONGEST or "\0" in text:
        return
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
    RecentQuery.objects.bulk_create(
        [RecentQuery(user=user, table=table, digest=digest, text=text, used_at=timezone.now())],
        update_conflicts=True,
        unique_fields=("user", "table", "digest"),
        update_fields=("used_at",),
    )


def of_table(user: User, table: Table, *, top: int = MOST) -> list[RecentQuery]:
    """The one that ran last comes first."""
    return [recent for recent in _last(user) if recent.table_id == table.pk][:top]


def of_account(user: User, account_id: int) -> list[RecentQuery]:
    return [recent for recent in _last(user) if recent.table.account_id == account_id]


def _last(user: User) -> list[RecentQuery]:
    found = RecentQuery.objects.filter(user=user).select_related("table").order_by("-used_at")
    return [recent for recent in found[:MOST] if recent.table.deleted_at is None]


def forget(user: User, account_id: int) -> None:
    RecentQuery.objects.filter(user=user, table__account=account_id).delete()


def tidy(now: datetime) -> None:
    """What is more than is shown, and what ran in a table that is gone."""
    place = Window(RowNumber(), partition_by=F("user"), order_by=F("used_at").desc())
    numbered = RecentQuery.objects.annotate(place=place).filter(place__gt=MOST)
    RecentQuery.objects.filter(pk__in=list(numbered.values_list("pk", flat=True))).delete()
    gone = Table.objects.filter(deleted_at__lt=now - timedelta(days=30)).values("pk")
    RecentQuery.objects.filter(table__in=gone).delete()
