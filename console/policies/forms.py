"""Stored access policies as they are being edited: texts, which may be wrong, beside what each was when it came in.

What was not touched goes back as it was, to the letter: absent and empty terms, the order of permissions, times that
no field shows in full.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import BadRequest
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from storage.domain.access.policies import (
    IDENTIFIER_LIMIT,
    PERMISSIONS,
    POLICY_LIMIT,
    AccessPolicy,
    PolicyFault,
    PolicyRule,
    SignedIdentifier,
    find_faults,
    read_instant,
)
from storage.domain.errors import StorageError
from storage.domain.values import edm
from storage.editing import typed_times
from storage.editing.invalid_text import InvalidText
from storage.operations import policies

MOST_DRAFTS: Final = 12  # policies of a form; more than may be saved, so that a surplus can be told
NOTHING: Final = SignedIdentifier("")

_ID = re.compile(r"p[0-9]{1,6}")
_BREAKS = re.compile("[\r\n]")


@dataclass(frozen=True, slots=True)
class Told:
    """What is wrong: the service's code and sentence, and the rule in other words."""

    error: StorageError
    rule: str
    where: str  # for people


@dataclass(frozen=True, slots=True)
class PolicyDraft:
    """``id`` stays the same while others come and go; ``basis`` is what the texts were drawn from."""

    id: str
    basis: SignedIdentifier
    identifier: str
    permissions: frozenset[str]
    start: str
    expiry: str

    def read(self, now: datetime) -> SignedIdentifier:
        was = self.basis.policy or AccessPolicy()
        policy = AccessPolicy(
            _read_time(self.start, was.start, now),
            _read_time(self.expiry, was.expiry, now),
            _read_permission(self.permissions, was.permission),
        )
        if policy == was:
            return SignedIdentifier(self.read_identifier, self.basis.policy)
        return SignedIdentifier(self.read_identifier, None if policy == AccessPolicy() else policy)

    @property
    def read_identifier(self) -> str:
        is_untouched = self.identifier == _shown(self.basis.identifier)
        return self.basis.identifier if is_untouched else self.identifier

    @property
    def written_basis(self) -> str:
        return json.dumps(policies.write([self.basis])[0])


@dataclass(frozen=True, slots=True)
class Draft:
    """``seen`` is the set that somebody began with, ``zone`` that of the times without one."""

    seen: tuple[SignedIdentifier, ...]
    rows: tuple[PolicyDraft, ...]
    zone: str

    def now(self) -> datetime:
        return timezone.now().astimezone(ZoneInfo(self.zone))

    def read(self, now: datetime) -> list[SignedIdentifier]:
        """With texts that are no times in the place of times."""
        return [row.read(now) for row in self.rows]

    def told(self, now: datetime) -> dict[str, Told]:
        """What is wrong, by the field: ``policies``, ``<id of a policy>-<field>``; of a field the first."""
        found: dict[str, Told] = {}
        for fault in find_faults(self.read(now)):
            if (
                fault.rule is PolicyRule.UNIQUE
                and fault.place is not None
                and not self.rows[fault.place].identifier
            ):
                continue  # that it is missing is said once, and better
            where = _("Policies") if fault.place is None else _where(fault.place)
            found.setdefault(self._field(fault), Told(fault.error, rule_of(fault.rule), where))
        return found

    def _field(self, fault: PolicyFault) -> str:
        if fault.place is None:
            return "policies"
        name = "identifier" if fault.rule is PolicyRule.UNIQUE else fault.rule.value
        return f"{self.rows[fault.place].id}-{name}"

    @property
    def written_seen(self) -> str:
        return write_seen(self.seen)


def _where(place: int) -> str:
    return _("Policy %(number)s") % {"number": place + 1}


def rule_of(rule: PolicyRule) -> str:
    match rule:
        case PolicyRule.NUMBER:
            return _("A table can have up to %(most)s policies.") % {"most": POLICY_LIMIT}
        case PolicyRule.UNIQUE:
            return _("Another policy of this table already has this Id.")
        case PolicyRule.IDENTIFIER:
            return _("An Id needs 1 to %(most)s characters and cannot contain control characters.") % {
                "most": IDENTIFIER_LIMIT
            }
        case PolicyRule.START | PolicyRule.EXPIRY:
            return _("Enter a time such as 2026-12-31 23:59, now, +7d or tomorrow, or leave it blank.")
        case PolicyRule.PERMISSION:
            return _("Permissions can contain each of the letters %(letters)s once.") % {
                "letters": PERMISSIONS
            }


# from what is stored


def write_draft(
    identifiers: Sequence[SignedIdentifier], zone: str, seen: Sequence[SignedIdentifier] | None = None
) -> Draft:
    rows = tuple(write_row(f"p{place}", it, ZoneInfo(zone)) for place, it in enumerate(identifiers))
    return Draft(tuple(identifiers if seen is None else seen), rows, zone)


def write_row(id_: str, identifier: SignedIdentifier, zone: tzinfo) -> PolicyDraft:
    policy = identifier.policy or AccessPolicy()
    return PolicyDraft(
        id_,
        identifier,
        _shown(identifier.identifier),
        frozenset(policy.permission or ""),
        write_time(policy.start, zone),
        write_time(policy.expiry, zone),
    )


def _shown(identifier: str) -> str:
    """What a field of one line makes of it."""
    return _BREAKS.sub("", identifier)


def write_time(instant: str | None, zone: tzinfo) -> str:
    """To the minute, or as finely as it is; the instant itself where the zone has no such year."""
    if not instant:
        return ""
    try:
        local = datetime.fromisoformat(f"{instant[:19]}+00:00").astimezone(zone).isoformat(" ")[:19]
    except (ValueError, OverflowError):
        return instant
    fraction = instant[20:27].rstrip("0")
    if fraction:
        return f"{local}.{fraction}"
    return local.removesuffix(":00")


# from what was sent


def read_draft(data: QueryDict, zone: str) -> Draft:
    """The fields of the form; its times have the zone in which it was drawn."""
    drawn_in = data.get("zone", zone)
    ids = [id_ for id_ in dict.fromkeys(data.getlist("policy")) if _ID.fullmatch(id_)]
    return Draft(
        read_seen(data.get("seen", "[]")),
        tuple(_read_row(data, id_) for id_ in ids[:MOST_DRAFTS]),
        drawn_in if _is_zone(drawn_in) else zone,
    )


def _is_zone(name: str) -> bool:
    try:
        return bool(ZoneInfo(name))
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False


def _read_row(data: QueryDict, id_: str) -> PolicyDraft:
    return PolicyDraft(
        id_,
        _read_basis(data.get(f"{id_}-basis")),
        data.get(f"{id_}-identifier", ""),
        frozenset(data.getlist(f"{id_}-permissions")) & frozenset(PERMISSIONS),
        data.get(f"{id_}-start", "").strip(),
        data.get(f"{id_}-expiry", "").strip(),
    )


def _read_time(text: str, was: str | None, now: datetime) -> str | None:
    """What is no time comes back as it is, which no policy may hold."""
    assert now.tzinfo is not None
    if text == write_time(was, now.tzinfo):
        return was
    if not text:
        return None
    try:
        return read_instant(edm.write_datetime(typed_times.read(text, now)))
    except InvalidText:
        return text


def _read_permission(letters: frozenset[str], was: str | None) -> str | None:
    if letters == frozenset(was or ""):
        return was
    return "".join(letter for letter in PERMISSIONS if letter in letters) or None


# what a form remembers of the set it began with


def write_seen(identifiers: Sequence[SignedIdentifier]) -> str:
    return json.dumps(policies.write(identifiers))


def read_seen(text: str) -> tuple[SignedIdentifier, ...]:
    found = _read_json(text)
    if not isinstance(found, list):
        raise BadRequest
    return tuple(_read_identifier(one) for one in found)


def _read_basis(text: str | None) -> SignedIdentifier:
    return NOTHING if text is None else _read_identifier(_read_json(text))


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest from None


def _read_identifier(found: object) -> SignedIdentifier:
    """Nobody but our own pages writes these."""
    match found:
        case {"identifier": str(name), "policy": None}:
            return _checked(SignedIdentifier(name))
        case {
            "identifier": str(name),
            "policy": {"start": start, "expiry": expiry, "permission": permission},
        }:
            return _checked(SignedIdentifier(name, AccessPolicy(start, expiry, permission)))
        case _:
            raise BadRequest


def _checked(found: SignedIdentifier) -> SignedIdentifier:
    policy = found.policy or AccessPolicy()
    terms = (policy.start, policy.expiry, policy.permission)
    if not all(term is None or isinstance(term, str) for term in terms):
        raise BadRequest
    # of a template or a new policy, the Id may be missing
    if [*find_faults([replace(found, identifier=found.identifier or "-")])]:
        raise BadRequest
    return found
