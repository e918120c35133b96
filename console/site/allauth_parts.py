"""What the console uses of allauth's internal modules; pyproject.toml allows the versions it was tested with."""

from allauth.core.internal import ratelimit
from allauth.mfa.totp.internal.auth import generate_totp_secret
from allauth.mfa.webauthn.internal import auth as webauthn

__all__ = [
    "generate_totp_secret",
    "ratelimit",
    "webauthn",
]
