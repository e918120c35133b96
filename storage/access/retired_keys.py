"""Replaced account keys: accepted during a grace period, then kept for a month to recognize the SAS they signed."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings

from storage.accounts import refusals, sealed_keys
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import SERVER, Actor
from storage.domain.requests.observed import retired_key_name
from storage.models import Account, RetiredKey

RETENTION: Final = timedelta(days=30)  # after the end of the grace period


class AcceptedKey(NamedTuple):
    """Replaced account key in its grace period."""

    name: str
    key: bytes
    until: float  # seconds since 1970; the user of the key must check it


def accepted(account: Account) -> tuple[AcceptedKey, ...]:
    """Return the replaced keys that are still in their grace period."""
    opened = opened_of(account, still_accepted(account, datetime.now(UTC)))
    return tuple(
        AcceptedKey(retired_key_name(retired.number), key, retired.accepted_until.timestamp())
        for retired, key in opened
        # the public key is not accepted where it cannot be a current key either
        if settings.DEVELOPMENT_ACCOUNT_ALLOWED or key != sealed_keys.DEVELOPMENT_KEY
    )


def for_account(account: Account) -> list[RetiredKey]:
    """Return all known replaced keys, the latest first."""
    return list(RetiredKey.objects.filter(account=account).order_by("-pk"))


def still_accepted(account: Account, now: datetime) -> list[RetiredKey]:
    return list(RetiredKey.objects.filter(account=account, accepted_until__gt=now).order_by("number", "-pk"))


def opened_of(account: Account, retired: Iterable[RetiredKey]) -> list[tuple[RetiredKey, bytes]]:
    """Return replaced keys with their decrypted values, without those encrypted by a lost secret."""
    opened = []
    for row in retired:
        with suppress(refusals.SealedOtherwise):
            opened.append((row, sealed_keys.unseal(account, row.sealed)))
    return opened


def end(account: Account, which: int, *, by: Actor = SERVER) -> bool:
    """End the grace period of the replaced keys of key 1 or 2; return False if there are none."""
    now = datetime.now(UTC)
    with invalidating_catalogs():
        old = RetiredKey.objects.filter(account=account, number=which, accepted_until__gt=now)
        if not old.update(accepted_until=now):
            return False
        activity.record(AccountVerb.KEY_END, by, account=account, detail={"key": retired_key_name(which)})
    return True


def reseal() -> None:
    rows = RetiredKey.objects.select_related("account")
    sealed_keys.reseal(rows, lambda row: row.account.name, "sealed")


def tidy(now: datetime) -> None:
    RetiredKey.objects.filter(accepted_until__lt=now - RETENTION).delete()
