"""What is known of the two keys of an account: since when they are, who uses them, which tokens they signed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from storage.domain.activity import Verb
from storage.domain.observed import SIGNED_BY, Authentication
from storage.models import Account, Activity
from storage.operations import usage
from storage.operations.usage import ClientUsage, Usage

WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class KeyState:
    """``tokens`` are the shared access signatures that were seen and that this key still verifies, the last used first.

    ``uses`` are those of 24 hours.
    """

    number: int
    since: datetime
    last: Usage | None
    tokens: list[Usage]

    @property
    def name(self) -> str:
        return f"key{self.number}"

    @property
    def uses(self) -> int:
        return self.last.uses if self.last else 0


def states(account: Account, now: datetime) -> list[KeyState]:
    tokens = usage.credentials(account.pk, now, Authentication.SAS)
    return [_state(account, number, tokens, now) for number in (1, 2)]


def state(account: Account, number: int, now: datetime) -> KeyState:
    return _state(account, number, usage.credentials(account.pk, now, Authentication.SAS), now)


def _state(account: Account, number: int, tokens: list[Usage], now: datetime) -> KeyState:
    name = f"key{number}"
    since = _since(account, name)
    last = usage.credential(account.pk, Authentication.KEY, name, now)
    return KeyState(
        number,
        since,
        last if last is not None and last.last >= since else None,
        # what an earlier key had signed is dead, and was not used since
        [token for token in tokens if (SIGNED_BY, name) in token.parameters and token.last >= since],
    )


def _since(account: Account, name: str) -> datetime:
    rotations = Activity.objects.filter(account=account, verb=Verb.KEY_ROTATE)
    last = rotations.filter(Q(detail__key=name) | Q(detail__declared=True)).order_by("-pk").first()
    return account.created_at if last is None else last.at


def clients(account: Account, state: KeyState, now: datetime) -> list[ClientUsage]:
    """Who used a key within seven days, since it is there."""
    found = usage.clients(account.pk, Authentication.KEY, state.name, max(now - WEEK, state.since))
    return [client for client in found if client.last >= state.since]
