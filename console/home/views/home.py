"""The home page: accounts, starred and recent tables, expiring SAS tokens, latest activity."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required, login_required
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from console.access.sas.registry import RegistryRow, describe_token
from console.activity.runs import Repeated, repeated
from console.grid import bookmarks
from console.site.access import table_required, user_of
from console.site.addresses import address_of, read_text
from console.site.responses import wants_part
from console.snippets import connections
from storage.access import sas
from storage.accounts import sealed_keys
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.domain.access.roles import Capability, Role, may
from storage.jobs import jobs
from storage.metrics import totals
from storage.metrics.last_day import Traffic
from storage.metrics.totals import Contents
from storage.models import Account, Job, Table
from storage.people.members import visible_accounts, with_roles

ACCOUNTS: Final = 50
ACTIVITIES: Final = 10  # lines
_ACTIVITIES_READ: Final = 50
EXPIRING: Final = 5  # SAS tokens
_MOMENT: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class AccountCard:
    """An account on the home page."""

    account: Account
    role: Role
    contents: Contents
    traffic: Traffic
    endpoint: str
    job: Job | None  # the one that creates or deletes it
    is_busy: bool  # whether there was a request in the last two minutes

    @property
    def requests(self) -> int:
        return sum(self.traffic.hours)

    @property
    def percentage(self) -> int | None:
        return None if self.job is None else jobs.percentage(self.job)

    @property
    def may_see_keys(self) -> bool:
        return may(self.role, Capability.MANAGE_ACCESS)


@dataclass(frozen=True, slots=True)
class AccountPage:
    """Page of accounts that match a text."""

    text: str
    page: Page[Account]
    total: int  # the number of all accounts

    @property
    def is_part(self) -> bool:
        return len(self.page) < self.total

    @property
    def previous(self) -> str:
        return self._address(self.page.number - 1) if self.page.has_previous() else ""

    @property
    def next(self) -> str:
        return self._address(self.page.number + 1) if self.page.has_next() else ""

    def _address(self, number: int) -> str:
        return address_of("home:index", q=self.text, page=number if number > 1 else "")


@login_not_required
def root(request: HttpRequest) -> HttpResponse:
    return redirect("home:index")


@login_required
def home(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    shown = visible_accounts(user)
    ids = shown.order_by().values("pk")
    page = _page(request, shown)
    cards = _cards(request, with_roles(user, list(page.page)))
    context = {
        "page": page,
        "cards": cards,
        "starred": bookmarks.starred_tables(user, ids),
        "recent": bookmarks.recent_tables(user, ids),
        "activities": _activities(ids) if page.total else [],
        "expiring": _expiring(visible_accounts(user, Capability.MANAGE_ACCESS)),
        "starts": None
        if page.is_part or any(card.contents.tables for card in cards)
        else _getting_started(cards),
    }
    return render(request, "console/home/show.html", context)


def _page(request: HttpRequest, shown: QuerySet[Account]) -> AccountPage:
    """Return the page ``page`` (from 1) of accounts whose name or label contains ``q``."""
    text = read_text(request.GET, "q")
    matching = shown.filter(Q(name__contains=text.lower()) | Q(label__icontains=text)) if text else shown
    paginator = Paginator(matching, ACCOUNTS)
    total = shown.count() if text else paginator.count
    return AccountPage(text, paginator.get_page(request.GET.get("page", "")), total)


def _cards(request: HttpRequest, shown: list[tuple[Account, Role]]) -> list[AccountCard]:
    ids = [account.pk for account, _role in shown]
    now = timezone.now()
    contents, traffic, making = totals.contents(ids), totals.traffic(ids, now), jobs.making(ids)
    return [
        AccountCard(
            account,
            role,
            contents.get(account.pk, Contents()),
            (asked := traffic.get(account.pk, Traffic())),
            connections.endpoint(request, account),
            making.get(account.pk),
            is_busy=asked.last is not None and now - asked.last < _MOMENT,
        )
        for account, role in shown
    ]


def _activities(account_ids: QuerySet[Account, Any]) -> list[Repeated]:
    found = activity.page(ActivityFilter(account_ids=account_ids), top=_ACTIVITIES_READ)
    return repeated(found.activities, has_older=found.older is not None)[:ACTIVITIES]


def _expiring(managed: QuerySet[Account]) -> list[tuple[Account, RegistryRow]]:
    """Return the SAS tokens that expire first, in accounts whose access the user manages."""
    now = timezone.now()
    tokens = [
        (account, describe_token(known, policies, now))
        for account, known, policies in sas.expiring(managed, now)
    ]
    return sorted(tokens, key=lambda it: it[1].ends or now)[:EXPIRING]


def _getting_started(cards: list[AccountCard]) -> dict[str, Any]:
    """Return the getting-started content for a home page without tables."""
    card = next((card for card in cards if card.account.enabled), None)
    if card is None:
        return {"card": None, "connection_string": "", "may_fill": False}
    is_public = sealed_keys.is_public(card.account)
    return {
        "card": card,
        "connection_string": connections.masked_connection_string(card.account, card.endpoint)
        if is_public
        else "",
        "may_fill": may(card.role, Capability.MANAGE_TABLES) and not card.account.read_only,
    }


@table_required(Capability.READ)
@require_POST
def star(request: HttpRequest, table: Table) -> HttpResponse:
    """Star a table, or remove its star."""
    is_starred = request.POST.get("starred") == "1"
    bookmarks.star(user_of(request), table, on=is_starred)
    if not wants_part(request):
        return redirect("entities:index", table.account.name, table.name)
    context = {"is_starred": is_starred, "table_name": table.name}
    return render(request, "components/star.html", context)
