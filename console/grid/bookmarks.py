"""Starred and recently opened tables of a user."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final, TypeAlias

from django.db.models import QuerySet
from django.utils import timezone

from console.models import Bookmark, User
from storage.models import Table

AccountIds: TypeAlias = Collection[int] | QuerySet[Any, Any]

_MOMENT: Final = timedelta(minutes=1)  # opening a table again within this time costs no write


def find(user: User, table: Table) -> Bookmark:
    """Return a user's bookmark of a table, unsaved if there is none."""
    found: Bookmark | None = Bookmark.objects.filter(user=user, table=table).first()
    return found or Bookmark(user=user, table=table)


def record_visit(bookmark: Bookmark) -> None:
    """Record that a user opened a table."""
    now = timezone.now()
    if bookmark.opened_at is None or bookmark.opened_at < now - _MOMENT:
        _write(Bookmark(user_id=bookmark.user_id, table_id=bookmark.table_id, opened_at=now), "opened_at")


def star(user: User, table: Table, *, on: bool) -> None:
    """Star a table, or remove its star."""
    _write(Bookmark(user=user, table=table, is_starred=on), "is_starred")


def _write(bookmark: Bookmark, field: str) -> None:
    Bookmark.objects.bulk_create(
        [bookmark], update_conflicts=True, unique_fields=("user", "table"), update_fields=(field,)
    )


def starred_tables(user: User, account_ids: AccountIds) -> list[Table]:
    found = _tables(user, account_ids).filter(is_starred=True)
    return [bookmark.table for bookmark in found.order_by("table__folded_name", "pk")[:12]]


def recent_tables(user: User, account_ids: AccountIds) -> list[Table]:
    found = _tables(user, account_ids).exclude(opened_at=None)
    return [bookmark.table for bookmark in found.order_by("-opened_at")[:8]]


def _tables(user: User, account_ids: AccountIds) -> QuerySet[Bookmark]:
    of_user = Bookmark.objects.filter(user=user, table__deleted_at=None, table__account_id__in=account_ids)
    return of_user.select_related("table__account")
