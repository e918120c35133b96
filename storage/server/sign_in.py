"""The settings for signing in to the console with an account that people have elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from storage.server.bearer import check_url
from storage.server.refusal import Refusal

_NEEDED = ("LOGIN_OIDC_ISSUER", "LOGIN_OIDC_CLIENT_ID", "LOGIN_OIDC_CLIENT_SECRET")


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID Connect issuer; ``admits_everyone``: who signs in there becomes a user, without an invitation."""

    issuer: str
    client_id: str
    client_secret: str
    name: str
    admits_everyone: bool

    @property
    def id(self) -> str:
        """Of this issuer alone: who is meant by a subject depends on whose it is."""
        return re.sub(r"[^a-z0-9.]+", "-", self.issuer.partition("://")[2].lower()).strip("-")

    @property
    def origin(self) -> str:
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"


def read(value: Mapping[str, str]) -> Provider | None:
    """None: people sign in only with what they set up here. ``value`` holds the settings by name."""
    given = [name for name in (*_NEEDED, "LOGIN_OIDC_NAME") if value[name]]
    missing = [name for name in _NEEDED if not value[name]]
    if not given:
        return None
    if missing:
        raise Refusal(f"TABLERO_{given[0]} needs TABLERO_{missing[0]} too.")
    issuer = value["LOGIN_OIDC_ISSUER"].rstrip("/")
    check_url("LOGIN_OIDC_ISSUER", issuer)
    return Provider(
        issuer=issuer,
        client_id=value["LOGIN_OIDC_CLIENT_ID"],
        client_secret=value["LOGIN_OIDC_CLIENT_SECRET"],
        name=value["LOGIN_OIDC_NAME"] or urlsplit(issuer).netloc,
        admits_everyone=value["LOGIN_OIDC_ADMITS"] == "everyone",
    )
