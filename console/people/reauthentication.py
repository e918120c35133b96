"""Reauthentication: sensitive operations require a recent sign-in or confirmation.

tests/people/test_reauthentication.py lists each view that takes forms as one that asks or one that does not.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast

from allauth.account.authentication import get_authentication_records
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve, reverse

from console.site.access import AccountContext, user_of
from console.site.addresses import is_console_path, split_url
from storage.accounts import accounts
from storage.people.members import role_in

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
RECENT: Final = 600  # seconds


def recently_authenticated(view: View[P]) -> View[P]:
    """Ask users to confirm their identity unless they did so within the last ten minutes.

    A script's request is repeated after it; without scripts, the user returns to the page of the form.
    """

    @wraps(view)
    def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        return view(request, *args, **kwargs) if is_recent(request) else ask(request)

    return cast("View[P]", login_required(check))


def recently_authenticated_if(
    is_sensitive: Callable[[HttpRequest], bool],
) -> Callable[[View[P]], View[P]]:
    """Require reauthentication like recently_authenticated, but only for sensitive requests."""

    def decorate(view: View[P]) -> View[P]:
        asking = recently_authenticated(view)

        @wraps(view)
        def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            return (asking if is_sensitive(request) else view)(request, *args, **kwargs)

        return cast("View[P]", check)

    return decorate


def is_post(request: HttpRequest) -> bool:
    return request.method == "POST"


def is_recent(request: HttpRequest) -> bool:
    records = get_authentication_records(request, request.user)
    if request.session.has_former_key:  # type: ignore[attr-defined]
        return False
    return any(0 <= time.time() - record["at"] < RECENT for record in records)


def ask(request: HttpRequest, back: str = "") -> HttpResponse:
    """Redirect to the confirmation page; ``back`` is the URL to return to, by default the current page."""
    return redirect(reverse("account_reauthenticate", query={"next": back or _page_of(request)}))


def keep_account(request: HttpRequest) -> None:
    """Show the confirmation page in the account of the page to return to."""
    back = request.POST.get("next") or request.GET.get("next", "")
    try:
        match = resolve(split_url(back).path) if is_console_path(back) else None
    except Resolver404:
        return
    account = accounts.find(match.kwargs["account"]) if match and "account" in match.kwargs else None
    role = role_in(user_of(request), account) if account and request.user.is_authenticated else None
    if account and role is not None:
        request.account_context = AccountContext(account, role)  # type: ignore[attr-defined]


def _page_of(request: HttpRequest) -> str:
    """Return the URL of the page that sent the request."""
    if request.method == "GET":
        return request.get_full_path()
    page = split_url(request.headers.get("Referer", ""))
    address = f"{page.path}?{page.query}" if page.query else page.path
    return address if page.netloc == request.get_host() and is_console_path(address) else request.path
