"""Policies being edited: form texts that may be invalid, each with the stored policy it came from.

Untouched fields are saved exactly as stored: absent and empty elements, the order of permissions, and times
that no field shows in full.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.core.exceptions import BadRequest
from django.utils import timezone

from storage.access import policies
from storage.domain.access.policies import (
    PERMISSIONS,
    AccessPolicy,
    SignedIdentifier,
    find_faults,
    read_instant,
)
from storage.domain.values import edm
from storage.editing import typed_times
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText

NEW: Final = SignedIdentifier("")

_BREAKS = re.compile("[\r\n]")


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    basis: SignedIdentifier  # the policy that the texts were drawn from
    identifier: str
    permissions: frozenset[str]
    start: str
    expiry: str

    def read(self, now: datetime) -> SignedIdentifier:
        """Return the policy; an invalid time is kept as text, which validation refuses."""
        stored = self.basis.policy or AccessPolicy()
        policy = AccessPolicy(
            _read_time(self.start, stored.start, now),
            _read_time(self.expiry, stored.expiry, now),
            _read_permission(self.permissions, stored.permission),
        )
        if policy == stored:
            return SignedIdentifier(self.read_identifier, self.basis.policy)
        return SignedIdentifier(self.read_identifier, None if policy == AccessPolicy() else policy)

    @property
    def read_identifier(self) -> str:
        is_untouched = self.identifier == _show_in_field(self.basis.identifier)
        return self.basis.identifier if is_untouched else self.identifier


@dataclass(frozen=True, slots=True)
class SetDraft:
    seen: tuple[SignedIdentifier, ...]  # the stored set that editing started from
    rows: tuple[PolicyDraft, ...]
    zone: str  # applies to times without an offset

    def now(self) -> datetime:
        return timezone.now().astimezone(ZoneInfo(self.zone))

    def read(self, now: datetime) -> list[SignedIdentifier]:
        return [row.read(now) for row in self.rows]


def draft_set(
    identifiers: Sequence[SignedIdentifier], zone: str, seen: Sequence[SignedIdentifier] | None = None
) -> SetDraft:
    rows = tuple(draft_policy(identifier, ZoneInfo(zone)) for identifier in identifiers)
    return SetDraft(tuple(identifiers if seen is None else seen), rows, zone)


def draft_policy(identifier: SignedIdentifier, zone: tzinfo) -> PolicyDraft:
    policy = identifier.policy or AccessPolicy()
    return PolicyDraft(
        identifier,
        _show_in_field(identifier.identifier),
        frozenset(policy.permission or ""),
        show_time(policy.start, zone),
        show_time(policy.expiry, zone),
    )


def _show_in_field(identifier: str) -> str:
    """Return the identifier without line breaks, which browsers remove from text fields."""
    return _BREAKS.sub("", identifier)


def show_time(instant: str | None, zone: tzinfo) -> str:
    """Format an instant to the minute, or as precisely as needed; unchanged if the zone cannot represent it."""
    if not instant:
        return ""
    try:
        local = datetime.fromisoformat(f"{instant[:19]}+00:00").astimezone(zone).isoformat(" ")[:19]
    except (ValueError, OverflowError):
        return instant
    fraction = instant[20:27].rstrip("0")
    return f"{local}.{fraction}" if fraction else local.removesuffix(":00")


def _read_time(text: str, stored: str | None, now: datetime) -> str | None:
    assert now.tzinfo is not None
    if text == show_time(stored, now.tzinfo):
        return stored
    if not text:
        return None
    try:
        return read_instant(edm.write_datetime(typed_times.read(text, InputContext(now))))
    except InvalidText:
        return text


def _read_permission(letters: frozenset[str], stored: str | None) -> str | None:
    if letters == frozenset(stored or ""):
        return stored
    return "".join(letter for letter in PERMISSIONS if letter in letters) or None


# hidden fields that carry the state of a form


def write_identifiers(identifiers: Sequence[SignedIdentifier]) -> str:
    return json.dumps(policies.write(identifiers))


def read_identifiers(text: str) -> tuple[SignedIdentifier, ...]:
    """Parse the hidden field with identifiers; raises BadRequest if malformed."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest from None
    if not isinstance(values, list):
        raise BadRequest
    return tuple(_read_identifier(one) for one in values)


def _read_identifier(value: Any) -> SignedIdentifier:
    match value:
        case {"identifier": str(name), "policy": None}:
            identifier = SignedIdentifier(name)
        case {
            "identifier": str(name),
            "policy": {"start": start, "expiry": expiry, "permission": permission},
        } if all(term is None or isinstance(term, str) for term in (start, expiry, permission)):
            identifier = SignedIdentifier(name, AccessPolicy(start, expiry, permission))
        case _:
            raise BadRequest
    # a new policy has no Id yet
    if any(find_faults([replace(identifier, identifier=identifier.identifier or "-")])):
        raise BadRequest
    return identifier
