"""SAS tokens known to the server, without signatures, and their state."""

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
from storage.domain.values.ticks import to_ticks

SOON: Final = timedelta(days=7)  # or the last tenth of a lifetime that is shorter than ten weeks
SOON_FRACTION: Final = 10

# by lower-case table name and identifier
Policies = Mapping[str, Mapping[str, AccessPolicy]]


@dataclass(frozen=True, slots=True)
class KnownToken:
    """SAS token issued or used here; ``token`` lacks its signature."""

    fingerprint: str
    token: TableSas | AccountSas
    label: str = ""
    is_registered: bool = False
    is_blocked: bool = False
    created: datetime | None = None
    first_used: datetime | None = None
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
        """Return the table as spelled in the token; empty for an account SAS."""
        return self.token.table if isinstance(self.token, TableSas) else ""

    @property
    def identifier(self) -> str:
        """Return the identifier of the policy that the token references."""
        return self.token.identifier if isinstance(self.token, TableSas) else ""


class TokenState(StrEnum):
    """State of a token; only the first three are accepted now or later."""

    ACTIVE = "active"
    EXPIRES_SOON = "expires-soon"
    NOT_YET_VALID = "not-yet-valid"
    EXPIRED = "expired"
    REVOKED = "revoked"  # its key was removed
    ORPHANED = "orphaned"  # its policy was removed
    CONFLICTING = "conflicting"  # token and policy both set a field, or neither sets a required one
    BLOCKED = "blocked"


ACCEPTED_STATES: Final = frozenset({TokenState.ACTIVE, TokenState.EXPIRES_SOON})


def token_state(known: KnownToken, policies: Policies, now: datetime) -> TokenState:
    if known.is_blocked:
        return TokenState.BLOCKED
    if known.key is None or (known.key_ends is not None and known.key_ends <= now):
        return TokenState.REVOKED
    state = state_by_terms(known.token, policies, now, created=known.created or known.first_used)
    if state is TokenState.ACTIVE and known.key_ends is not None and known.key_ends - now <= SOON:
        return TokenState.EXPIRES_SOON
    return state


def state_by_terms(
    token: TableSas | AccountSas, policies: Policies, now: datetime, *, created: datetime | None = None
) -> TokenState:
    """Return the state of a validly signed, unblocked token; its lifetime starts no earlier than ``created``."""
    if is_orphaned(token, policies):
        return TokenState.ORPHANED
    agreed = terms_of(token, policies)
    if agreed is None:
        return TokenState.CONFLICTING
    start, expiry = validity_period(agreed)
    moment = to_ticks(now)
    if expiry is None or moment >= expiry:
        return TokenState.EXPIRED
    if start is not None and moment < start:
        return TokenState.NOT_YET_VALID
    begin = max(start or 0, to_ticks(created) if created is not None else 0)
    soon = min(SOON.total_seconds() * TICKS_PER_SECOND, (expiry - begin) / SOON_FRACTION)
    return TokenState.EXPIRES_SOON if expiry - moment <= soon else TokenState.ACTIVE


def terms_of(token: TableSas | AccountSas, policies: Policies) -> AccessPolicy | None:
    """Combine the terms of token and policy; None if the combination is invalid."""
    if is_orphaned(token, policies):
        return None
    try:
        return combine_terms(token, find_policy(token, policies))
    except AuthenticationFailed:
        return None


def is_orphaned(token: TableSas | AccountSas, policies: Policies) -> bool:
    """Return whether the token references a policy that does not exist."""
    return isinstance(token, TableSas) and bool(token.identifier) and find_policy(token, policies) is None


def find_policy(token: TableSas | AccountSas, policies: Policies) -> AccessPolicy | None:
    if not isinstance(token, TableSas):
        return None
    return policies.get(token.folded, {}).get(token.identifier)
