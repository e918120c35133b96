"""Stored access policies: at most five per table, each with an identifier that tokens name.

https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue, StorageError
from storage.domain.values.edm import utf16_length

POLICY_LIMIT: Final = 5
IDENTIFIER_LIMIT: Final = 64  # UTF-16 code units
PERMISSIONS: Final = "raud"

# of what XML can hold, or nobody could be told of it
_IDENTIFIER = re.compile(f"[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]{{1,{IDENTIFIER_LIMIT}}}")
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,7}))?)?(?:Z|([+-])([0-9]{2}):([0-9]{2})))?"
)


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """What a token with this policy may leave out.

    None: the element was absent; "": it was there and empty. Both leave it to the token, and each comes back as it
    was set. Instants are '2013-11-26T08:49:37.0000000Z'; the letters of ``permission`` keep their order.
    """

    start: str | None = None
    expiry: str | None = None
    permission: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIdentifier:
    """A policy under its identifier, by which case counts; a policy of None is one without the element."""

    identifier: str
    policy: AccessPolicy | None = None


def read_policy(start: str | None, expiry: str | None, permission: str | None) -> AccessPolicy:
    """The policy of values as somebody wrote them; raises InvalidXmlNodeValue."""
    if permission is not None and not _is_permission(permission):
        raise InvalidXmlNodeValue
    return AccessPolicy(
        read_instant(start) if start else start, read_instant(expiry) if expiry else expiry, permission
    )


def read_instant(text: str) -> str:
    """A date, or a time to the minute or finer with its zone, in UTC with seven digits after the second."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise InvalidXmlNodeValue
    *clock, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in clock)
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        instant = local - _offset(sign, int(hours or 0), int(minutes or 0))
    except (ValueError, OverflowError):
        raise InvalidXmlNodeValue from None
    return f"{instant.isoformat()[:19]}.{fraction or '':0<7}Z"


class PolicyRule(StrEnum):
    """What a set of policies may break, in the order in which the service looks at it."""

    NUMBER = "number"
    UNIQUE = "unique"
    IDENTIFIER = "identifier"
    START = "start"
    EXPIRY = "expiry"
    PERMISSION = "permission"


class PolicyFault(NamedTuple):
    """``place`` of the policy that breaks it; None: there are too many of them."""

    rule: PolicyRule
    place: int | None = None

    @property
    def error(self) -> StorageError:
        is_value = self.rule in (PolicyRule.START, PolicyRule.EXPIRY, PolicyRule.PERMISSION)
        return InvalidXmlNodeValue() if is_value else InvalidXmlDocument()


def check_policies(identifiers: Sequence[SignedIdentifier]) -> None:
    """Raises InvalidXmlDocument for too many, for one that comes twice, for one of a wrong length."""
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
        for rule in _wrong_terms(identifier.policy or AccessPolicy()):
            yield PolicyFault(rule, place)


def _wrong_terms(policy: AccessPolicy) -> Iterator[PolicyRule]:
    for rule, instant in ((PolicyRule.START, policy.start), (PolicyRule.EXPIRY, policy.expiry)):
        if instant and not is_instant(instant):
            yield rule
    if policy.permission and not _is_permission(policy.permission):
        yield PolicyRule.PERMISSION


def is_instant(text: str) -> bool:
    """Whether it is as a policy keeps it."""
    try:
        return read_instant(text) == text
    except InvalidXmlNodeValue:
        return False


def _is_permission(letters: str) -> bool:
    return set(letters) <= set(PERMISSIONS) and len(set(letters)) == len(letters)


def _offset(sign: str | None, hours: int, minutes: int) -> timedelta:
    """East of UTC."""
    if hours > 14 or minutes > 59:
        raise ValueError
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset
