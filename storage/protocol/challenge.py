"""Bearer tokens on the wire: what asks for one, and what is refused before it is looked at.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
"""

from typing import Final

from storage.domain.access.grants import Grant
from storage.domain.access.identity import Trust
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo
from storage.operations.identity import Identity

CHALLENGED: Final = (
    "Server failed to authenticate the request. "
    "Please refer to the information in the www-authenticate header."
)


def required(trust: Trust, **details: str) -> InvalidAuthenticationInfo:
    """The answer 401, with the header that says where a token is to be had."""
    return InvalidAuthenticationInfo(CHALLENGED, **{"WWW-Authenticate": write_challenge(trust)}, **details)


def write_challenge(trust: Trust) -> str:
    # a space between the parameters and no quotes, as the service has it and the SDKs expect it; their scope becomes
    # that of the resource, for which only a URL will do
    resource = next((name for name in trust.audiences if name.startswith(("https://", "http://"))), None)
    named = "" if resource is None else f" resource_id={resource.rstrip('/')}"
    return f"Bearer authorization_uri={trust.authorization_uri}{named}"


def is_bearer(header: bytes) -> bool:
    return header.strip().partition(b" ")[0].lower() == b"bearer"


async def grant(
    identity: Identity, header: bytes, scheme: str, account: str, now: float
) -> tuple[Grant, str]:
    """What the token of an Authorization header allows, and whose it is; see Identity.

    x-ms-version is not looked at: the service wants 2020-12-06 for tables, but its own SDK for Python sends
    2019-02-02 with a token.
    """
    if scheme != "https":
        raise AuthenticationFailed(
            AuthenticationErrorDetail="Authentication scheme Bearer is not allowed with HTTP."
        )
    token = header.strip().partition(b" ")[2].strip()
    try:
        return await identity.grant(token.decode("latin-1"), account, now)
    except InvalidAuthenticationInfo as error:
        # only here it is known how to ask for a better one
        raise required(identity.trust, **error.details) from None
