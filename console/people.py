"""How people sign in: allauth's ways, bounded to the console."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest

from console.addresses import is_of_console


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_safe_url(self, url: str) -> bool:
        return bool(url) and is_of_console(url)

    def add_message(self, *args: object, **kwargs: object) -> None:
        """Nothing: whoever signs in or out sees that they did."""
