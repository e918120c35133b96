"""Bearer tokens: JSON Web Tokens of an OpenID Connect issuer, and what they grant.

https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation and https://datatracker.ietf.org/doc/html/rfc8725
"""

from collections import OrderedDict
from hashlib import sha256
from typing import Any, Final, NamedTuple

import jwt

from storage.access.key_set import KeySet
from storage.domain.access import identity
from storage.domain.access.grants import OWNER, Grant
from storage.domain.access.identity import Trust
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo, StorageError

CLOCK_SKEW: Final = 300  # seconds
SIZE_LIMIT: Final = 16 * 1024  # characters
REMEMBERED: Final = 4096  # tokens
SUBJECT_LIMIT: Final = 256  # characters


class _Known(NamedTuple):
    """Verified token with its expiry; discarded when the issuer's keys change."""

    grant: Grant
    subject: str
    until: float
    generation: int


class Identity:
    """Verifier of bearer tokens, which caches verified tokens by their hash."""

    def __init__(self, trust: Trust) -> None:
        self.trust = trust
        self._keys = KeySet(trust)
        # by hash, because tokens are secrets, and the account name comes from an unchecked URL
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def grant(self, token: str, account: str, now: float) -> tuple[Grant, str]:
        """Verify a token and return its grant in an account and its subject; ``now`` is in seconds since 1970."""
        if len(token) > SIZE_LIMIT:
            raise _malformed("The token is too long.")
        key = sha256(f"{token}\n{account}".encode()).digest()
        stale = False
        if self.trust.issuer:
            await self._keys.keep_fresh(now)
            stale = self._keys.are_stale(now)
        known = self._known.get(key)
        if known is None or stale or known.until <= now or known.generation != self._keys.generation:
            known = self._known[key] = await self._verify(token, account, now)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return known.grant, known.subject

    async def _verify(self, token: str, account: str, now: float) -> _Known:
        try:
            if self.trust.issuer:
                claims = await self._read_signed(token, now)
                grant = identity.grant_for_roles(identity.read_roles(claims, self.trust.roles_claim), account)
            else:
                claims, grant = _read_unsigned(token), OWNER
        except jwt.InvalidTokenError as error:
            raise _refusal(error) from None
        # Entra's ``sub`` differs per application, its ``oid`` does not
        subject = claims.get("oid") or claims.get("sub")
        name = subject[:SUBJECT_LIMIT] if isinstance(subject, str) else ""
        return _Known(grant, name, int(claims["exp"]) + CLOCK_SKEW, self._keys.generation)

    async def _read_signed(self, token: str, now: float) -> dict[str, Any]:
        identifier = jwt.get_unverified_header(token).get("kid")
        key = await self._keys.find(identifier, now)
        if key is None:
            raise AuthenticationFailed(AuthenticationErrorDetail="The token is signed with an unknown key.")
        return jwt.decode(
            token,
            key.public,
            # the algorithms of the key: a token must not choose how it is verified
            algorithms=key.algorithms,
            audience=self.trust.audiences,
            issuer=self.trust.issuer,
            leeway=CLOCK_SKEW,
            # nbf is checked if present; many issuers leave it out
            options={"require": ["exp", "iat", "iss", "aud"]},
        )


def _read_unsigned(token: str) -> dict[str, Any]:
    return jwt.decode(
        token,
        leeway=CLOCK_SKEW,
        options={
            "verify_signature": False,
            "verify_exp": True,
            "verify_nbf": True,
            "verify_iat": True,
            "require": ["exp"],
        },
    )


def _malformed(detail: str) -> InvalidAuthenticationInfo:
    return InvalidAuthenticationInfo(AuthenticationErrorDetail=detail)


def _refusal(error: jwt.InvalidTokenError) -> StorageError:
    # never the library's own message, which may quote the token
    match error:
        case jwt.ExpiredSignatureError():
            detail = "Lifetime validation failed. The token is expired."
        case jwt.ImmatureSignatureError():
            detail = "Lifetime validation failed. The token is not yet valid."
        case jwt.InvalidIssuerError():
            detail = "Invalid token issuer."
        case jwt.InvalidAudienceError():
            detail = "Invalid token audience."
        case jwt.InvalidSignatureError():
            detail = "Invalid token signature."
        case jwt.InvalidAlgorithmError():
            detail = "Invalid token algorithm."
        case jwt.MissingRequiredClaimError(claim=claim):
            detail = f"The token has no {claim}."
        case _:
            return _malformed("The token is not a JSON Web Token.")
    return AuthenticationFailed(AuthenticationErrorDetail=detail)
