"""allauth's account adapter: sign-in, limited to the console's paths."""

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.models import User
from console.people import passwords, reauthentication, sign_ins
from console.site import rate_limits
from console.site.addresses import is_console_path
from console.site.toasts import notify_error
from storage.runtime import stream_access


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": gettext_lazy("Incorrect user name or password."),
        "incorrect_password": gettext_lazy("Incorrect password."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str) -> bool:
        return bool(url) and is_console_path(url)

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        *args: object,
        **kwargs: object,
    ) -> None:
        """Drop allauth's messages except one; the page itself shows who is signed in."""
        if message_template == "socialaccount/messages/account_connected_other.txt":
            notify_error(request, _("That sign-in is already connected to another user."))

    def is_reauthentication_required(self, *, app: str, **kwargs: object) -> bool:
        return not reauthentication.is_recent(context.request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        rate_limits.refuse_if_limited(request, self._get_login_attempts_cache_key(request, **credentials))
        super().pre_authenticate(request, **credentials)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        user: User | None = super().authenticate(request, **credentials)
        if user is not None:
            try:
                passwords.check_unexpired(user)
            except ValidationError:
                self.authentication_failed(request, **credentials)
                raise
        return user

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        sign_ins.failed(request, str(credentials.get("username", "")), "password")

    def logout(self, request: HttpRequest) -> None:
        if isinstance(request.user, User):
            sign_ins.signed_out(request, request.user)
        super().logout(request)
        stream_access.announce_change()

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # without the host name, which the client can choose freely
        return str(credentials.get("username", "")).lower()
