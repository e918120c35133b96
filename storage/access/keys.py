"""The state of an account's keys: their age, who uses them, and which tokens they signed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from storage.access import retired_keys, sas
from storage.accounts import key_dates
from storage.domain.requests.observed import Authentication, retired_key_name
from storage.domain.sas.known import KnownToken
from storage.metrics import usage
from storage.metrics.usage import ClientUsage, Usage
from storage.models import Account, RetiredKey

WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class KeyState:
    """Usage of an account key: the known SAS ``tokens`` that it signed and its ``uses`` in the last 24 hours.

    ``old`` holds its predecessors that are still accepted.
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
    """A replaced key that is still accepted; uses of keys with the same number are counted together."""

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
    """Return the states of key 1 and key 2."""
    tokens, old = sas.known(account, now), retired_keys.still_accepted(account, now)
    return [_state(account, number, tokens, old, now) for number in (1, 2)]


def state(account: Account, number: int, now: datetime) -> KeyState:
    return states(account, now)[number - 1]


def _state(
    account: Account, number: int, tokens: list[KnownToken], old: list[RetiredKey], now: datetime
) -> KeyState:
    name = f"key{number}"
    since = key_dates.since(account, number)
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


def clients(account: Account, state: KeyState, now: datetime) -> list[ClientUsage]:
    """Return the clients that used a key within seven days, not counting its predecessors."""
    found = usage.clients(account.pk, Authentication.KEY, state.name, max(now - WEEK, state.since))
    return [client for client in found if client.last >= state.since]
