"""The known shared access signatures of an account as a list to look through, and as a file."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.safestring import SafeString

from console.sas import sas_words
from console.site.downloads import write_csv
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy
from storage.domain.sas import TableSas
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
from storage.models import Account
from storage.operations import sas as sas_operations


@dataclass(frozen=True, slots=True)
class Row:
    """A token as it is listed; ``agreed``: what it and its policy say, or what there is of it."""

    known: KnownToken
    state: TokenState
    agreed: AccessPolicy
    summary: TokenSummary
    now: datetime

    @property
    def word(self) -> str:
        return str(sas_words.STATES[self.state])

    @property
    def badge(self) -> str:
        return sas_words.KINDS[self.state]

    @property
    def reason(self) -> str:
        return str(sas_words.REASONS[self.state])

    @property
    def is_of_table(self) -> bool:
        return isinstance(self.known.token, TableSas)

    @property
    def permissions(self) -> str:
        return self.agreed.permission or ""

    @property
    def range(self) -> SafeString:
        return sas_words.reach(self.summary.keys)

    @property
    def expires(self) -> datetime | None:
        return None if self.summary.expiry is None else sas_words.moment_of(self.summary.expiry)

    @property
    def expires_at(self) -> SafeString:
        return sas_words.clock(self.expires) if self.expires else SafeString("")

    @property
    def expires_in(self) -> str:
        return sas_words.distance(self.expires, self.now) if self.expires else ""

    @property
    def last_used(self) -> str:
        return sas_words.distance(self.known.last_used, self.now) if self.known.last_used else ""

    def sentence(self, account: str) -> SafeString:
        return sas_words.sentence(self.summary, account)


def rows(account: Account, now: datetime) -> list[Row]:
    policies = sas_operations.policies_of(account)
    return [row(token, policies, now) for token in sas_operations.known(account, now)]


def row(known: KnownToken, policies: Policies, now: datetime) -> Row:
    agreed = terms_of(known.token, policies) or _what_there_is(known, policies)
    return Row(known, token_state(known, policies, now), agreed, summarize(known.token, agreed), now)


def _what_there_is(known: KnownToken, policies: Policies) -> AccessPolicy:
    """Of a token that its policy makes useless: its own words, and the policy's where it has none."""
    token = known.token
    stored = (
        AccessPolicy() if is_orphaned(token, policies) else find_policy(token, policies) or AccessPolicy()
    )
    return AccessPolicy(
        token.start or stored.start,
        token.expiry or stored.expiry,
        token.permissions or stored.permission,
    )


def matching(found: Sequence[Row], text: str, wanted: str) -> list[Row]:
    """Those that hold the text anywhere and stand as is wanted; no language's own casing."""
    lowered = text.strip().lower()
    return [it for it in found if lowered in _searched(it) and wanted in {"", it.state.value}]


def _searched(it: Row) -> str:
    known = it.known
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
        it.word,
    )
    return "\n".join(parts).lower()


# as a file

_COLUMNS: Final = (
    "fingerprint", "label", "kind", "table", "permissions", "policy", "key", "start", "expiry", "parameters", "state",
    "author", "created", "purpose", "owner", "last_used", "uses_24h", "address", "agent",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    extension: str
    content_type: str
    write: Callable[[Iterable[Row]], Iterator[str]]


def _written(it: Row) -> dict[str, Any]:
    known = it.known
    return {
        "fingerprint": known.fingerprint,
        "label": known.label,
        "kind": sas_operations.kind_of(known.token),
        "table": known.table,
        "permissions": it.permissions,
        "policy": known.identifier,
        "key": f"key{known.key}" if known.key else "",
        "start": it.agreed.start or "",
        "expiry": it.agreed.expiry or "",
        "parameters": dict(sas.to_parameters(known.token)),
        "state": it.state.value,
        "author": known.author,
        "created": known.created.isoformat() if known.created else "",
        "purpose": known.purpose,
        "owner": known.owner,
        "last_used": known.last_used.isoformat() if known.last_used else "",
        "uses_24h": known.uses,
        "address": known.address,
        "agent": known.agent,
    }


def _write_csv(found: Iterable[Row]) -> Iterator[str]:
    rows = map(_written, found)
    return write_csv(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))


def _write_ndjson(found: Iterable[Row]) -> Iterator[str]:
    for it in found:
        yield json.dumps(_written(it)) + "\n"


FORMS: Final[Mapping[str, Form]] = {
    "csv": Form("csv", "text/csv; charset=utf-8", _write_csv),
    "ndjson": Form("ndjson", "application/x-ndjson; charset=utf-8", _write_ndjson),
}
