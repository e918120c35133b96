"""Known SAS tokens of an account, as a searchable list and as a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from django.utils.safestring import SafeString

from console.access.sas.labels import BADGES, REASONS, STATES
from console.access.sas.sentences import describe_summary, show_moment
from console.site.times import describe_distance
from storage.access import sas as sas_operations
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import TokenSummary, summarize
from storage.domain.sas.known import (
    KnownToken,
    Policies,
    TokenState,
    find_policy,
    is_orphaned,
    terms_of,
    token_state,
)
from storage.domain.values.ticks import to_second
from storage.models import Account


@dataclass(frozen=True, slots=True)
class RegistryRow:
    known: KnownToken
    state: TokenState
    terms: AccessPolicy  # the terms of the token and its policy together, as far as they are known
    summary: TokenSummary
    now: datetime

    @property
    def state_label(self) -> str:
        return str(STATES[self.state])

    @property
    def badge(self) -> str:
        return BADGES[self.state]

    @property
    def reason(self) -> str:
        return str(REASONS[self.state])

    @property
    def is_of_table(self) -> bool:
        return isinstance(self.known.token, TableSas)

    @property
    def permissions(self) -> str:
        return self.terms.permission or ""

    @property
    def expires(self) -> datetime | None:
        return None if self.summary.expiry is None else to_second(self.summary.expiry)

    @property
    def ends(self) -> datetime | None:
        """Return when the token stops working: at its expiry, or earlier with the old key that signed it."""
        return min(filter(None, (self.expires, self.known.key_ends)), default=None)

    @property
    def ends_with_key(self) -> bool:
        return self.ends is not None and self.ends == self.known.key_ends

    @property
    def expires_at(self) -> SafeString:
        return show_moment(self.expires) if self.expires else SafeString("")

    @property
    def expires_in(self) -> str:
        return describe_distance(self.expires, self.now) if self.expires else ""

    def sentence(self, account: str) -> SafeString:
        return describe_summary(self.summary, account)


def list_tokens(account: Account, now: datetime) -> list[RegistryRow]:
    policies = sas_operations.policies_of(account)
    return [describe_token(token, policies, now) for token in sas_operations.known(account, now)]


def describe_token(known: KnownToken, policies: Policies, now: datetime) -> RegistryRow:
    terms = terms_of(known.token, policies) or _partial_terms(known, policies)
    return RegistryRow(known, token_state(known, policies, now), terms, summarize(known.token, terms), now)


def _partial_terms(known: KnownToken, policies: Policies) -> AccessPolicy:
    """Return the partial terms of a token that its policy makes unusable."""
    policy = None if is_orphaned(known.token, policies) else find_policy(known.token, policies)
    return combine_terms(known.token, policy)


def combine_terms(token: TableSas | AccountSas, policy: AccessPolicy | None) -> AccessPolicy:
    """Combine a token's own terms with the policy's for those it leaves out."""
    stored = policy or AccessPolicy()
    return AccessPolicy(
        token.start or stored.start,
        token.expiry or stored.expiry,
        token.permissions or stored.permission,
    )


def filter_rows(rows: Sequence[RegistryRow], text: str, state: str) -> list[RegistryRow]:
    """Filter rows by a text in any letter case, and by a state or any ("")."""
    lowered = text.strip().lower()
    return [row for row in rows if lowered in _searched_text(row) and state in {"", row.state.value}]


def _searched_text(row: RegistryRow) -> str:
    known = row.known
    parts = (
        known.label,
        known.table,
        known.identifier,
        known.fingerprint,
        known.author,
        known.owner,
        known.purpose,
        known.agent,
        known.address,
        row.state_label,
    )
    return "\n".join(parts).lower()


# as a file
FIELDS: Final[Mapping[str, Callable[[RegistryRow], Any]]] = {
    "fingerprint": attrgetter("known.fingerprint"),
    "label": attrgetter("known.label"),
    "kind": lambda row: sas_operations.kind_of(row.known.token),
    "table": attrgetter("known.table"),
    "permissions": attrgetter("permissions"),
    "policy": attrgetter("known.identifier"),
    "key": lambda row: f"key{row.known.key}" if row.known.key else "",
    "start": lambda row: row.terms.start or "",
    "expiry": lambda row: row.terms.expiry or "",
    "parameters": lambda row: dict(sas.to_parameters(row.known.token)),
    "state": attrgetter("state.value"),
    "author": attrgetter("known.author"),
    "created": lambda row: row.known.created.isoformat() if row.known.created else "",
    "purpose": attrgetter("known.purpose"),
    "owner": attrgetter("known.owner"),
    "last_used": lambda row: row.known.last_used.isoformat() if row.known.last_used else "",
    "uses_24h": attrgetter("known.uses"),
    "address": attrgetter("known.address"),
    "agent": attrgetter("known.agent"),
}
