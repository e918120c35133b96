"""Bearer tokens on the wire: the WWW-Authenticate challenge and the check of a token.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
"""

from typing import TYPE_CHECKING, Final

from storage.domain.access.grants import Grant
from storage.domain.access.identity import Trust
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo

if TYPE_CHECKING:
    from storage.access.identity import Identity

CHALLENGED: Final = (
    "Server failed to authenticate the request. "
    "Please refer to the information in the www-authenticate header."
)


def token_required(trust: Trust, **details: str) -> InvalidAuthenticationInfo:
    """Build the 401 with the WWW-Authenticate header that names the token authority."""
    return InvalidAuthenticationInfo(CHALLENGED, **{"WWW-Authenticate": write_challenge(trust)}, **details)


def write_challenge(trust: Trust) -> str:
    # a space between the parameters and no quotes, as the service writes it and the SDKs expect it; they derive the
    # scope of the token from resource_id, which must therefore be a URL
    resource = next((name for name in trust.audiences if name.startswith(("https://", "http://"))), None)
    named = "" if resource is None else f" resource_id={resource.rstrip('/')}"
    return f"Bearer authorization_uri={trust.authorization_uri}{named}"


def is_bearer(header: bytes) -> bool:
    return header.strip().partition(b" ")[0].lower() == b"bearer"


async def grant(
    identity: "Identity", header: bytes, scheme: str, account: str, now: float
) -> tuple[Grant, str]:
    """Return the grant of a bearer token and its subject; see Identity."""
    if scheme != "https":
        raise AuthenticationFailed(
            AuthenticationErrorDetail="Authentication scheme Bearer is not allowed with HTTP."
        )
    token = header.strip().partition(b" ")[2].strip()
    try:
        return await identity.grant(token.decode("latin-1"), account, now)
    except InvalidAuthenticationInfo as error:
        # the challenge is known only here
        raise token_required(identity.trust, **error.details) from None
