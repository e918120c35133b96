"""The accounts."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_not_required, login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from console.access import user_of, visible_accounts
from console.models import Role
from storage.models import Account
from storage.operations import accounts, tables


@dataclass(frozen=True, slots=True)
class AccountCard:
    account: Account
    role: Role
    tables: int
    endpoint: str
    connection_string: str


@login_not_required
def root(request: HttpRequest) -> HttpResponse:
    return redirect("home")


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The accounts that the user may see."""
    shown = visible_accounts(user_of(request))
    counts = tables.counts(account.pk for account, _ in shown)
    cards = [
        AccountCard(
            account,
            role,
            counts.get(account.pk, 0),
            endpoint(request, account),
            accounts.connection_string(account, endpoint(request, account)),
        )
        for account, role in shown
    ]
    return render(request, "console/accounts/home.html", {"cards": cards})


def endpoint(request: HttpRequest, account: Account) -> str:
    """Where the browser found this server is where an SDK finds it."""
    return f"{request.scheme}://{request.get_host()}/{account.name}"
