"""Parts of allauth's internal modules that the console uses; pyproject.toml allows the versions it was tested
with.
"""

from importlib import import_module
from typing import Any

from allauth.core.internal import ratelimit
from allauth.mfa.totp.internal.auth import generate_totp_secret

__all__ = [
    "generate_totp_secret",
    "ratelimit",
    "webauthn",
]


def webauthn() -> Any:
    """Import what begins to register and to ask for passkeys: with its cryptography, a twentieth of a start."""
    return import_module("allauth.mfa.webauthn.internal.auth")
