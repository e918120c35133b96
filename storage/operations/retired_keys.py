"""Keys that were replaced: accepted while their grace lasts, then kept for a month to recognize what they signed."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings

from storage.domain.access.actor import SERVER, Actor
from storage.domain.requests.observed import retired_key_name
from storage.domain.service.activity import Verb
from storage.models import Account, RetiredKey
from storage.operations import accounts, activity
from storage.operations.catalog_change import invalidating_catalogs

RETENTION: Final = timedelta(days=30)  # after it was last accepted


class AcceptedKey(NamedTuple):
    """``until``: in seconds since 1970; it is for whoever uses the key to look."""

    name: str
    key: bytes
    until: float


def accepted(account: Account) -> tuple[AcceptedKey, ...]:
    """Those that still open the account."""
    opened = opened_of(account, still_accepted(account, datetime.now(UTC)))
    return tuple(
        AcceptedKey(retired_key_name(retired.number), key, retired.accepted_until.timestamp())
        for retired, key in opened
        # where it must not be used, it must not be used any longer either
        if settings.DEVELOPMENT_ACCOUNT_ALLOWED or key != accounts.DEVELOPMENT_KEY
    )


def for_account(account: Account) -> list[RetiredKey]:
    """All that are known, the last replaced first."""
    return list(RetiredKey.objects.filter(account=account).order_by("-pk"))


def still_accepted(account: Account, now: datetime) -> list[RetiredKey]:
    return list(RetiredKey.objects.filter(account=account, accepted_until__gt=now).order_by("number", "-pk"))


def opened_of(account: Account, retired: Iterable[RetiredKey]) -> list[tuple[RetiredKey, bytes]]:
    """With what they are in the clear."""
    return [(row, accounts.unseal(account, row.sealed)) for row in retired]


def end(account: Account, which: int, *, by: Actor = SERVER) -> bool:
    """Accept the old keys of this number no longer; False if none was."""
    now = datetime.now(UTC)
    with invalidating_catalogs():
        old = RetiredKey.objects.filter(account=account, number=which, accepted_until__gt=now)
        if not old.update(accepted_until=now):
            return False
        activity.record(Verb.KEY_END, by, account=account, detail={"key": retired_key_name(which)})
    return True


def tidy(now: datetime) -> None:
    RetiredKey.objects.filter(accepted_until__lt=now - RETENTION).delete()
