"""Conditions of notices about expiring accounts and keys that were not rotated."""

from collections.abc import Iterator
from datetime import timedelta

from storage.accounts import key_dates
from storage.core.lifetimes import PURGE_DELAY
from storage.core.notices import Found, Look
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.models import Account


def find_expiring(look: Look) -> Iterator[Found]:
    until = look.now + timedelta(days=look.most_threshold)
    for account in Account.objects.filter(expires_at__lte=until, frozen_at=None).order_by("expires_at"):
        assert account.expires_at is not None
        warned_for = timedelta(days=look.threshold(account.pk))
        # an account of a few hours, such as one of a test, is meant to expire
        is_lasting = account.expires_at - account.created_at >= 2 * warned_for
        if is_lasting and account.expires_at - look.now <= warned_for:
            yield Found(account.pk, "", {"expires_at": account.expires_at.isoformat()})


def find_expired(look: Look) -> Iterator[Found]:
    for account in Account.objects.exclude(frozen_at=None).order_by("frozen_at"):
        is_lasting = account.frozen_at and account.frozen_at - account.created_at >= 2 * PURGE_DELAY
        if account.purged_at is not None and is_lasting:
            yield Found(account.pk, "", {"deleted_at": account.purged_at.isoformat()})


def find_old_keys(look: Look) -> Iterator[Found]:
    for account, number, since in key_dates.older_than(look.now - timedelta(days=look.least_threshold)):
        age = (look.now - since).days
        # the key of the development account is public and never rotated
        if age >= look.threshold(account.pk) and account.name != DEVELOPMENT_ACCOUNT:
            yield Found(account.pk, f"key{number}", {"key": f"key{number}", "days": age})
