"""A token of which the server knows, without its signature, and how it stands with it now."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import AuthenticationFailed
from storage.domain.sas.terms import combine_terms, validity_period
from storage.domain.sas.tokens import AccountSas, TableSas
from storage.domain.values.edm import TICKS_PER_SECOND

SOON: Final = timedelta(days=7)

# those of each table, by its folded name and by identifier
Policies = Mapping[str, Mapping[str, AccessPolicy]]


@dataclass(frozen=True, slots=True)
class KnownToken:
    """One that was made here or that somebody has used; ``token`` is without its signature.

    ``key`` is the number of the key that verifies it, None when none does any more; ``key_ends`` is when that is over,
    of a key that was replaced and is still accepted. Who made it, and when, is not known of one that was only seen;
    ``uses`` are those of 24 hours.
    """

    fingerprint: str
    token: TableSas | AccountSas
    label: str = ""
    is_registered: bool = False
    is_blocked: bool = False
    created: datetime | None = None
    last_used: datetime | None = None
    uses: int = 0
    key: int | None = None
    key_ends: datetime | None = None
    purpose: str = ""
    owner: str = ""
    author: str = ""
    address: str = ""  # where it was last used from
    agent: str = ""

    @property
    def table(self) -> str:
        """As the token spells it; empty for one of the whole account."""
        return self.token.table if isinstance(self.token, TableSas) else ""

    @property
    def identifier(self) -> str:
        """Of the policy that it names."""
        return self.token.identifier if isinstance(self.token, TableSas) else ""


class TokenState(StrEnum):
    """How a token stands; what is not among the first three is refused."""

    ACTIVE = "active"
    EXPIRES_SOON = "expires-soon"
    NOT_YET_VALID = "not-yet-valid"
    EXPIRED = "expired"
    REVOKED = "revoked"  # the key that made it is no more
    ORPHANED = "orphaned"  # the policy that it names is no more
    CONFLICTING = "conflicting"  # it and its policy say the same thing, or neither says what must be said
    BLOCKED = "blocked"


ACCEPTED_STATES: Final = frozenset({TokenState.ACTIVE, TokenState.EXPIRES_SOON})


def token_state(known: KnownToken, policies: Policies, now: datetime) -> TokenState:
    if known.is_blocked:
        return TokenState.BLOCKED
    if known.key is None or (known.key_ends is not None and known.key_ends <= now):
        return TokenState.REVOKED
    found = state_by_terms(known.token, policies, now)
    if found is TokenState.ACTIVE and known.key_ends is not None and known.key_ends - now <= SOON:
        return TokenState.EXPIRES_SOON
    return found


def state_by_terms(token: TableSas | AccountSas, policies: Policies, now: datetime) -> TokenState:
    """How it would stand if it were signed and not blocked."""
    if is_orphaned(token, policies):
        return TokenState.ORPHANED
    agreed = terms_of(token, policies)
    if agreed is None:
        return TokenState.CONFLICTING
    start, expiry = validity_period(agreed)
    moment = ticks(now)
    if expiry is None or moment >= expiry:
        return TokenState.EXPIRED
    if start is not None and moment < start:
        return TokenState.NOT_YET_VALID
    return (
        TokenState.EXPIRES_SOON
        if expiry - moment <= SOON.total_seconds() * TICKS_PER_SECOND
        else TokenState.ACTIVE
    )


def terms_of(token: TableSas | AccountSas, policies: Policies) -> AccessPolicy | None:
    """What token and policy say together; None when that makes no good token, whatever the time is."""
    if is_orphaned(token, policies):
        return None
    try:
        return combine_terms(token, find_policy(token, policies))
    except AuthenticationFailed:
        return None


def is_orphaned(token: TableSas | AccountSas, policies: Policies) -> bool:
    """Whether it names a policy that there is not."""
    return isinstance(token, TableSas) and bool(token.identifier) and find_policy(token, policies) is None


def find_policy(token: TableSas | AccountSas, policies: Policies) -> AccessPolicy | None:
    if not isinstance(token, TableSas):
        return None
    return policies.get(token.folded, {}).get(token.identifier)


def ticks(moment: datetime) -> int:
    """Since 1970."""
    return int(moment.timestamp()) * TICKS_PER_SECOND + moment.microsecond * (TICKS_PER_SECOND // 10**6)
