"""How people sign in: allauth's ways, bounded to the console."""

import posixpath
from urllib.parse import unquote, urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str) -> bool:
        """Only pages of the console: everything else on this host is data that anybody may have written."""
        if not url or not super().is_safe_url(url):
            return False
        path = unquote(urlsplit(url).path)
        return posixpath.normpath(path).startswith(settings.COOKIE_PATH.rstrip("/")) and path.startswith(
            settings.COOKIE_PATH
        )

    def add_message(self, *args: object, **kwargs: object) -> None:
        """Nothing: whoever signs in or out sees that they did."""
