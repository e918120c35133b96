"""What is known of the keys of an account: since when they are, who uses them, which tokens they signed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from storage.domain.requests.observed import Authentication, retired_key_name
from storage.domain.sas.known import KnownToken
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, RetiredKey
from storage.operations import retired_keys, sas, usage
from storage.operations.usage import ClientUsage, Usage

WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class KeyState:
    """``tokens`` are the known shared access signatures that this key verifies; ``uses`` are those of 24 hours.

    ``old`` are those that it took the place of and that are still accepted.
    """

    number: int
    since: datetime
    last: Usage | None
    tokens: list[KnownToken]
    old: list["OldKey"]

    @property
    def name(self) -> str:
        return f"key{self.number}"

    @property
    def uses(self) -> int:
        return self.last.uses if self.last else 0


@dataclass(frozen=True, slots=True)
class OldKey:
    """A key that was replaced and is still accepted; of two of a number the uses are counted together."""

    number: int
    until: datetime
    last: Usage | None
    clients: list[ClientUsage]

    @property
    def name(self) -> str:
        return retired_key_name(self.number)

    @property
    def uses(self) -> int:
        return self.last.uses if self.last else 0


def states(account: Account, now: datetime) -> list[KeyState]:
    tokens, old = sas.known(account, now), retired_keys.still_accepted(account, now)
    return [_state(account, number, tokens, old, now) for number in (1, 2)]


def state(account: Account, number: int, now: datetime) -> KeyState:
    return states(account, now)[number - 1]


def _state(
    account: Account, number: int, tokens: list[KnownToken], old: list[RetiredKey], now: datetime
) -> KeyState:
    name = f"key{number}"
    since = _since(account, name)
    last = usage.credential(account.pk, Authentication.KEY, name, now)
    return KeyState(
        number,
        since,
        last if last is not None and last.last >= since else None,
        [token for token in tokens if token.key == number and token.key_ends is None],
        [_old(account, retired, now) for retired in old if retired.number == number],
    )


def _old(account: Account, retired: RetiredKey, now: datetime) -> OldKey:
    name = retired_key_name(retired.number)
    return OldKey(
        retired.number,
        retired.accepted_until,
        usage.credential(account.pk, Authentication.KEY, name, now),
        usage.clients(account.pk, Authentication.KEY, name, max(now - WEEK, retired.retired_at)),
    )


def _since(account: Account, name: str) -> datetime:
    rotations = Activity.objects.filter(account=account, verb=Verb.KEY_ROTATE)
    last = rotations.filter(Q(detail__key=name) | Q(detail__declared=True)).order_by("-pk").first()
    return account.created_at if last is None else last.at


def clients(account: Account, state: KeyState, now: datetime) -> list[ClientUsage]:
    """Who used a key within seven days, since it is there."""
    found = usage.clients(account.pk, Authentication.KEY, state.name, max(now - WEEK, state.since))
    return [client for client in found if client.last >= state.since]
