"""The accounts, and the tables of one."""

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.decorators import login_not_required, login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from console.access import Capability, account_required, user_of, visible_accounts
from console.models import Role
from storage.models import Account
from storage.operations import accounts, tables

SNIPPET: Final = """\
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string(
    "%s"
)
service.create_table("people")
"""


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


@account_required(Capability.READ)
def show(request: HttpRequest, account: Account) -> HttpResponse:
    """The tables of an account."""
    containing = request.GET.get("q", "").strip()
    start = request.GET.get("after", "")
    listing = tables.overview(account.pk, containing=containing, start=start)
    context = {
        "listing": listing,
        "containing": containing,
        "is_first": not start,
        "first": _address(account, q=containing),
        "next": _address(account, q=containing, after=listing.next or ""),
        "snippet": SNIPPET % accounts.connection_string(account, endpoint(request, account)),
    }
    return render(request, "console/accounts/show.html", context)


def endpoint(request: HttpRequest, account: Account) -> str:
    """Where the browser found this server is where an SDK finds it."""
    return f"{request.scheme}://{request.get_host()}/{account.name}"


def _address(account: Account, **parameters: str) -> str:
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in parameters.items() if value})
    path = reverse("account", args=(account.name,))
    return f"{path}?{query.urlencode()}" if query else path
