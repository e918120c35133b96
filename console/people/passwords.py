"""Password rules: rejection of guessable passwords, and replacement of temporary ones."""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from console.models import User
from console.site.responses import is_script

# docs/security.md names them
WORDS: Final = (
    "account", "admin", "administrator", "azure", "azurite", "changeme", "console", "cosmos", "devstoreaccount",
    "letmein", "owner", "parola", "passwort", "password", "root", "secret", "server", "storage", "table", "tablero",
    "tables", "welcome",
)  # fmt: skip
_ONLY_WORDS: Final = re.compile(rf"[\W\d_]*(?:(?:{'|'.join(WORDS)})[\W\d_]*)+")
_ENDS: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_SPELLINGS: Final = str.maketrans("01345@$", "oieasas")


class PasswordValidator(CommonPasswordValidator):
    """Validator that rejects common passwords, also combined with digits and signs."""

    def validate(self, password: str, user: object = None) -> None:
        super().validate(password, user)  # type: ignore[arg-type]
        plain = password.lower()
        spelled_out = _ENDS.sub("", plain).translate(_SPELLINGS)
        if _ONLY_WORDS.fullmatch(plain) or _ONLY_WORDS.fullmatch(spelled_out):
            raise ValidationError(self.get_error_message(), code="password_too_common")


def check_unexpired(user: User) -> None:
    """Refuse a generated password that was not changed in time; raises ValidationError."""
    if user.has_expired_password:
        raise ValidationError(_("This generated password has expired. Ask an admin for a new one."))


# pages that a user needs to choose a password, or to leave
_OPEN: Final = ("people:password", "account_logout", "people:signed_in")


class TemporaryPasswordMiddleware:
    """Middleware that redirects users with a temporary password to its change.

    Users who signed in with a provider and tokens of the management API are exempt.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *_arguments: object
    ) -> HttpResponse | None:
        match = request.resolver_match
        is_open = match is not None and match.view_name in _OPEN
        if is_open or not getattr(view, "login_required", True):
            return None
        if not getattr(request.user, "has_temporary_password", False) or _is_from_provider(request):
            return None
        is_page = request.method == "GET" and not is_script(request)
        query = f"?{urlencode({'next': request.get_full_path()})}" if is_page else ""
        return redirect(reverse("people:password") + query)


def _is_from_provider(request: HttpRequest) -> bool:
    return any("provider" in record for record in get_authentication_records(request, request.user))
