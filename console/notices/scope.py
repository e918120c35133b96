"""Pages shared by accounts and the server: their permissions and addresses."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.site.access import account_required, admin_required
from console.site.addresses import path_of
from storage.domain.access.roles import Capability
from storage.models import Account

ScopedView = Callable[..., HttpResponseBase]


def account_or_server(view: ScopedView) -> ScopedView:
    """Pass the account in the URL to users who manage its access, or None to admins if the URL has none."""
    in_account = account_required(Capability.MANAGE_ACCESS)(view)

    @admin_required
    def of_server(request: HttpRequest, /, **kwargs: Any) -> HttpResponseBase:
        return view(request, None, **kwargs)

    @wraps(view)
    def choose(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        return (in_account if "account" in kwargs else of_server)(request, **kwargs)

    return choose


def address(name: str, account: Account | None, *arguments: object) -> str:
    """Return the address of a shared page, for an account or the server."""
    if account is None:
        return path_of(f"notices:server_{name}", *arguments)
    return path_of(f"notices:{name}", account.name, *arguments)
