"""Stored access policies: at most five per table, each with an identifier that tokens name.

https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from storage.domain.edm import utf16_length
from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue

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
    if permission is not None:
        _check_permission(permission)
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


def check(identifiers: Sequence[SignedIdentifier]) -> None:
    """Raises InvalidXmlDocument for too many, for one that comes twice, for one of a wrong length."""
    names = {identifier.identifier for identifier in identifiers}
    if not len(names) == len(identifiers) <= POLICY_LIMIT:
        raise InvalidXmlDocument
    if not all(_IDENTIFIER.fullmatch(name) and utf16_length(name) <= IDENTIFIER_LIMIT for name in names):
        raise InvalidXmlDocument
    for identifier in identifiers:
        if identifier.policy is not None:
            _check_policy(identifier.policy)


def _check_policy(policy: AccessPolicy) -> None:
    if policy != read_policy(policy.start, policy.expiry, policy.permission):
        raise InvalidXmlNodeValue


def _check_permission(letters: str) -> None:
    if not set(letters) <= set(PERMISSIONS) or len(set(letters)) != len(letters):
        raise InvalidXmlNodeValue


def _offset(sign: str | None, hours: int, minutes: int) -> timedelta:
    """East of UTC."""
    if hours > 14 or minutes > 59:
        raise ValueError
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if sign == "-" else offset
