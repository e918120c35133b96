"""Second factors and passkeys: encryption of secrets, passkey support by address, and enforcement."""

import base64
import ipaddress
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Final

from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.allauth_parts import generate_totp_secret
from console.site.toasts import notify_error

logger = logging.getLogger(__name__)

NAME = "Tablero"


# pages that a user needs to set a factor up, or to leave
_OPEN: Final = (
    "people:security",
    "people:password",
    "account_reauthenticate",
    "account_logout",
    "people:signed_in",
)


class SecondFactorMiddleware:
    """Middleware that redirects users without a required second factor to its setup.

    Users who signed in with a provider are exempt: the provider is responsible for their factors.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        if not settings.SECOND_FACTOR_REQUIRED or not request.user.is_authenticated:
            return None
        match = request.resolver_match
        name = match.view_name if match is not None else ""
        if name in _OPEN or name.startswith("mfa_") or _has_second_factor(request):
            return None
        notify_error(
            request, _("This server requires a second factor. Add a passkey or an authenticator app.")
        )
        return redirect("people:security")


def _has_second_factor(request: HttpRequest) -> bool:
    if any("provider" in record for record in get_authentication_records(request, request.user)):
        return True
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return bool(Authenticator.objects.filter(user=request.user, type__in=kinds).exists())


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": gettext_lazy("This code is incorrect or was already used. Enter a new one."),
    }

    def encrypt(self, text: str) -> str:
        return _cipher(settings.MFA_KEYS).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _cipher(settings.MFA_KEYS).decrypt(encrypted_text).decode()
        except InvalidToken:
            # encrypted with another TABLERO_SECRET: return a secret that no code matches
            logger.error("The secret of a second factor cannot be decrypted: TABLERO_SECRET has changed.")
            return str(generate_totp_secret())

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # noqa: A002
        return _("Passkey")

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": NAME}


def can_use_passkeys(request: HttpRequest) -> bool:
    """Return whether browsers allow passkeys here: on localhost, or on a host name over HTTPS."""
    host = request.get_host().rpartition(":")[0] or request.get_host()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return request.is_secure() and not _is_address(host.strip("[]"))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def reseal() -> None:
    """Encrypt the secrets of apps and recovery codes with the present secret of the server."""
    for factor in Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN):
        for name in {"secret", "seed"} & factor.data.keys():
            with suppress(InvalidToken):
                factor.data[name] = _cipher(settings.MFA_KEYS).rotate(factor.data[name]).decode()
        factor.save(update_fields=("data",))


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(bytes.fromhex(key))) for key in keys])
