"""Parts of allauth's internals that the console uses; pyproject.toml pins the tested versions."""

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
    """Import passkey support on demand, as its cryptography takes a twentieth of the start time."""
    return import_module("allauth.mfa.webauthn.internal.auth")
