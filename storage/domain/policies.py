"""Stored access policies: at most five per table, each with an identifier that tokens name.

https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy
"""

from dataclasses import dataclass
from typing import Final

POLICY_LIMIT: Final = 5
IDENTIFIER_LIMIT: Final = 64  # characters


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
