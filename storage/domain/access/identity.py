"""OpenID Connect access tokens: which issuer is trusted, and what the roles in them grant."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from storage.domain.access.grants import ROLES, Grant, GrantKind, Permission, Resource


@dataclass(frozen=True, slots=True)
class Trust:
    """Issuer whose tokens are accepted for one of ``audiences``; without an issuer, tokens of any issuer are.

    ``keys`` is the URL or file of the issuer's JSON Web Key Set; if empty, it is discovered from the issuer's
    configuration.
    """

    issuer: str = ""
    audiences: tuple[str, ...] = ("https://storage.azure.com",)
    keys: str = ""
    roles_claim: str = "roles"
    authorization_uri: str = "https://login.microsoftonline.com/common/oauth2/authorize"


def read_roles(claims: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Read the roles in a claim; its name may be a path such as realm_access.roles."""
    value: object = claims.get(name)
    if value is None and "." in name:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return (value,)
    return tuple(role for role in value if isinstance(role, str)) if isinstance(value, list) else ()


def grant_for_roles(roles: Iterable[str], account: str) -> Grant:
    """Return the grant of the strongest role; ``ROLE@ACCOUNT`` applies to that account only."""
    parts = (role.partition("@") for role in roles)
    held = {_fold(role) for role, at, narrowed in parts if not at or narrowed == account}
    return next((known for role, known in _STRONGEST_FIRST if role in held), _NOTHING)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe_url(url: str) -> bool:
    """Return whether responses cannot be altered in transit: HTTPS, or HTTP to this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _fold(role: str) -> str:
    # the value of an app role in Entra has no spaces
    return re.sub("[ ._-]", "", role).lower()


_STRONGEST_FIRST: Final = tuple((_fold(role), known) for role, known in reversed([*ROLES.items()]))
_NOTHING: Final = Grant(
    GrantKind.ROLE, Permission.NONE, Resource.SERVICE | Resource.CONTAINER | Resource.OBJECT
)
