"""Dates of key rotations, kept longer than the activity log."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from storage.models import Account, KeyRotation

NUMBERS = (1, 2)


class OldKey(NamedTuple):
    account: Account
    number: int
    since: datetime


def note_rotation(account: Account, numbers: Iterable[int]) -> None:
    """Record the rotation of keys, in the caller's transaction."""
    for number in numbers:
        KeyRotation.objects.update_or_create(
            account=account, number=number, defaults={"rotated_at": timezone.now()}
        )


def since(account: Account, number: int) -> datetime:
    """Return the time since which an account has its current key 1 or 2."""
    found = KeyRotation.objects.filter(account=account, number=number)
    return found.values_list("rotated_at", flat=True).first() or account.created_at


def older_than(moment: datetime) -> Iterator[OldKey]:
    """Yield the accepted keys of enabled accounts older than a time."""
    enabled = Account.objects.filter(enabled=True, shared_key_access=True)
    for number in NUMBERS:
        rotated = KeyRotation.objects.filter(account=OuterRef("pk"), number=number).values("rotated_at")
        aged = enabled.annotate(since=Coalesce(Subquery(rotated), F("created_at")))
        for account in aged.filter(since__lt=moment).order_by("since"):
            yield OldKey(account, number, account.since)
