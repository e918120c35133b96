"""Second factors and passkeys: encryption of their secrets, and which addresses support passkeys."""

import base64
import ipaddress
import logging
from functools import cache
from typing import Any, ClassVar

from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.allauth_parts import generate_totp_secret

logger = logging.getLogger(__name__)

NAME = "Tablero"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": gettext_lazy("This code is incorrect or was already used. Enter a new one."),
    }

    def encrypt(self, text: str) -> str:
        return _cipher(settings.MFA_KEY).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _cipher(settings.MFA_KEY).decrypt(encrypted_text).decode()
        except InvalidToken:
            # encrypted with another TABLERO_SECRET: return a secret that no code matches
            logger.error("The secret of a second factor cannot be decrypted: TABLERO_SECRET has changed.")
            return str(generate_totp_secret())

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # noqa: A002
        return _("Passkey")

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": NAME}


def can_use_passkeys(request: HttpRequest) -> bool:
    """Whether browsers allow passkeys here: on localhost, or on a host name over HTTPS."""
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


@cache
def _cipher(key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(bytes.fromhex(key)))
