"""Stored access policies: at most five per table, each with an identifier that tokens reference.

https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain.errors import InvalidInput, InvalidXmlDocument, InvalidXmlNodeValue, StorageError
from storage.domain.values.edm import utf16_length, zone_offset

POLICY_LIMIT: Final = 5
IDENTIFIER_LIMIT: Final = 64  # UTF-16 code units
PERMISSIONS: Final = "raud"

# characters that XML can carry
_IDENTIFIER = re.compile(f"[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]{{1,{IDENTIFIER_LIMIT}}}")
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?(Z|[+-][0-9]{2}:[0-9]{2}))?"
)


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Terms of an access policy that a token can inherit."""

    start: str | None = None
    expiry: str | None = None
    permission: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIdentifier:
    """Stored access policy with its case-sensitive identifier; None if the AccessPolicy element was absent."""

    identifier: str
    policy: AccessPolicy | None = None


def read_policy(start: str | None, expiry: str | None, permission: str | None) -> AccessPolicy:
    """Parse a policy from its fields; an empty one counts as absent. Raises InvalidXmlNodeValue."""
    if permission and not _is_permission(permission):
        raise InvalidXmlNodeValue
    return AccessPolicy(
        read_instant(start) if start else None, read_instant(expiry) if expiry else None, permission or None
    )


def read_instant(text: str) -> str:
    """Convert a date, or a time to the minute or finer with a zone, to UTC with seven fraction digits."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise InvalidXmlNodeValue
    *clock, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in clock)
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        instant = local - timedelta(seconds=zone_offset(zone))
    except (InvalidInput, ValueError, OverflowError):
        raise InvalidXmlNodeValue from None
    return f"{instant.isoformat()[:19]}.{fraction or '':0<7}Z"


class PolicyRule(StrEnum):
    """Validation rules for a set of policies, in the order in which Azure checks them."""

    NUMBER = "number"
    UNIQUE = "unique"
    IDENTIFIER = "identifier"
    START = "start"
    EXPIRY = "expiry"
    PERMISSION = "permission"


class PolicyFault(NamedTuple):
    """Violated rule; ``place`` is the index of the policy, None if there are too many policies."""

    rule: PolicyRule
    place: int | None = None

    @property
    def error(self) -> StorageError:
        is_value = self.rule in (PolicyRule.START, PolicyRule.EXPIRY, PolicyRule.PERMISSION)
        return InvalidXmlNodeValue() if is_value else InvalidXmlDocument()


def check_policies(identifiers: Sequence[SignedIdentifier]) -> None:
    """Validate a set of policies; raises InvalidXmlDocument or InvalidXmlNodeValue for the first violation."""
    for fault in find_faults(identifiers):
        raise fault.error


def find_faults(identifiers: Sequence[SignedIdentifier]) -> Iterator[PolicyFault]:
    if len(identifiers) > POLICY_LIMIT:
        yield PolicyFault(PolicyRule.NUMBER)
    names = [identifier.identifier for identifier in identifiers]
    for place, name in enumerate(names):
        if name in names[:place]:
            yield PolicyFault(PolicyRule.UNIQUE, place)
    for place, name in enumerate(names):
        if not _IDENTIFIER.fullmatch(name) or utf16_length(name) > IDENTIFIER_LIMIT:
            yield PolicyFault(PolicyRule.IDENTIFIER, place)
    for place, identifier in enumerate(identifiers):
        policy = identifier.policy or AccessPolicy()
        for rule, instant in ((PolicyRule.START, policy.start), (PolicyRule.EXPIRY, policy.expiry)):
            if instant and not is_instant(instant):
                yield PolicyFault(rule, place)
        if policy.permission and not _is_permission(policy.permission):
            yield PolicyFault(PolicyRule.PERMISSION, place)


def is_instant(text: str) -> bool:
    """Return whether a text is an instant in stored form."""
    try:
        return read_instant(text) == text
    except InvalidXmlNodeValue:
        return False


def _is_permission(letters: str) -> bool:
    return set(letters) <= set(PERMISSIONS) and len(set(letters)) == len(letters)
