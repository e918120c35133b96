"""Expiry of accounts: frozen at the end of their lifetime, deleted later."""

from datetime import datetime

from storage.accounts import removal
from storage.accounts.account_settings import to_json
from storage.accounts.locking import lock_if_exists
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core import lifetimes
from storage.domain.access.actor import SERVER
from storage.models import Account
from storage.sql.attempts import attempting_each


def expire(now: datetime) -> None:
    """Freeze expired accounts, and delete those whose purge delay has passed."""
    late = Account.objects.filter(expires_at__lte=now, frozen_at=None)
    over = Account.objects.filter(
        frozen_at__lte=now - lifetimes.PURGE_DELAY, protected=False, read_only=False
    )
    with attempting_each("Not every expired account could be frozen or deleted") as attempt:
        for act, due in ((_freeze, late), (_purge, over)):
            for name in due.values_list("name", flat=True):
                with attempt():
                    act(name, now)


def _freeze(name: str, now: datetime) -> None:
    with invalidating_catalogs():
        account = lock_if_exists(name)
        if account is None or account.expires_at is None or account.expires_at > now:
            return  # its lifetime was extended meanwhile
        before = account.enabled
        account.frozen_at, account.enabled = now, False
        account.save(update_fields=("frozen_at", "enabled"))
        activity.record(
            AccountVerb.EXPIRE,
            SERVER,
            account=account,
            before={"enabled": before},
            after={"enabled": False},
            detail=to_json({"expires_at": account.expires_at}),
        )


def _purge(name: str, now: datetime) -> None:
    account = Account.objects.filter(name=name).first()
    if account is not None:
        removal.purge(account, now)
