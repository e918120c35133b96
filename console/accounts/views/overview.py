"""Overview page of an account: health, warnings, recent changes, and the largest tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from console.access.sas.registry import RegistryRow, describe_token
from console.accounts.forms.settings import LEVELS
from console.site.access import account_required, role_of, user_of
from console.site.tags import grouped
from console.site.times import describe_distance
from console.snippets import connections
from storage.access import policies, sas
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.branches import branches
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.roles import Capability, may
from storage.domain.requests.consistency import Consistency
from storage.metrics import totals
from storage.metrics.last_day import Day, Hour, last_day
from storage.metrics.totals import Contents
from storage.models import Account
from storage.tables import table_list

ACTIVITIES: Final = 8
LARGEST: Final = 5  # tables
EXPIRING: Final = 5  # SAS tokens
ERRORS: Final = 5  # codes
_SOON: Final = timedelta(days=7)
_DAY: Final = timedelta(days=1)
_HEIGHT: Final = 64


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of one hour in the chart, with the heights of its parts from the bottom up."""

    hour: Hour
    place: int
    height: float
    wrong: float  # the part of it that was refused or failed

    @property
    def x(self) -> int:
        return self.place * 10

    @property
    def top(self) -> float:
        return round(_HEIGHT - self.height, 1)

    @property
    def top_of_wrong(self) -> float:
        return round(_HEIGHT - self.wrong, 1)


@dataclass(frozen=True, slots=True)
class Notice:
    """Warning about the account that calls for action."""

    text: str
    address: str = ""  # the page where the reader can act on it, empty without permission
    page: str = ""  # the title of that page


@account_required(Capability.READ)
@require_GET
def show(request: HttpRequest, account: Account) -> HttpResponse:
    now = timezone.now()
    day = last_day(account.pk, now)
    largest = table_list.largest(account, LARGEST)
    sizes = largest.sizes or table_list.sizes(largest.tables)
    role = role_of(request)
    manages_access = may(role, Capability.MANAGE_ACCESS)
    context = {
        "day": day,
        "bars": _bars(day),
        "errors": day.errors[:ERRORS],
        "contents": totals.contents([account.pk]).get(account.pk, Contents()),
        "endpoint": connections.endpoint(request, account),
        "warnings": [
            *_warnings(account, day, now, owns=may(role, Capability.OWN)),
            *_server_warnings(is_admin=user_of(request).is_admin),
        ],
        "level": _name_level(account.consistency),
        "expiring": _expiring(account, now) if manages_access else [],
        "over": policies.expired(account, now)[:EXPIRING],
        "branches": _ending_branches(account, now),
        "largest": [(table, sizes[table.name]) for table in largest.tables],
        "activities": activity.page(ActivityFilter(account_ids=[account.pk]), top=ACTIVITIES).activities,
    }
    return render(request, "console/accounts/overview.html", context)


def _bars(day: Day) -> list[Bar]:
    top = max(hour.requests for hour in day.hours) or 1
    return [
        Bar(
            hour,
            place,
            max(1, round(hour.requests / top * _HEIGHT, 1)),  # a quiet hour is a line
            round((hour.refused + hour.failed) / top * _HEIGHT, 1),
        )
        for place, hour in enumerate(day.hours)
    ]


def _name_level(consistency: str) -> str:
    """Return the name of a consistency level other than the default; an unknown level is returned unchanged."""
    return "" if consistency == Consistency.STRONG else str(dict(LEVELS).get(consistency, consistency))


def _warnings(account: Account, day: Day, now: datetime, *, owns: bool) -> Iterator[Notice]:
    settings = (reverse("accounts:settings", args=(account.name,)), _("Settings")) if owns else ()
    if not account.enabled:
        yield Notice(_("The account is disabled: every request is refused."), *settings)
    elif account.read_only:
        yield Notice(_("The account is read-only."), *settings)
    if account.expires_at is not None and account.expires_at < now + _SOON:
        text = _("The account expires with everything in it: %(time)s")
        yield Notice(text % {"time": describe_distance(account.expires_at, now)}, *settings)
    if day.failed:
        text = ngettext(
            "%(number)s request failed because of the server in the last 24 hours.",
            "%(number)s requests failed because of the server in the last 24 hours.",
            day.failed,
        )
        yield Notice(text % {"number": grouped(day.failed)}, *_log(account, kind="failed"))
    if day.unsupported:
        text = ngettext(
            "%(number)s request used functions or options that tables don't support.",
            "%(number)s requests used functions or options that tables don't support.",
            day.unsupported,
        )
        yield Notice(text % {"number": grouped(day.unsupported)}, *_log(account, status="501"))
    refused = day.refused - day.unsupported
    if refused:
        text = ngettext(
            "%(number)s request was refused in the last 24 hours.",
            "%(number)s requests were refused in the last 24 hours.",
            refused,
        )
        yield Notice(text % {"number": grouped(refused)}, *_log(account, kind="refused"))


def _log(account: Account, **query: str) -> tuple[str, str]:
    return reverse("requests:index", args=(account.name,), query=query), _("Requests")


def _ending_branches(account: Account, now: datetime) -> list[Account]:
    """Return the branches of an account that expire within a day or have expired."""
    ends = [branch.account for branch in branches.listed(account)]
    return [it for it in ends if it.expires_at is not None and it.expires_at < now + _DAY]


def _server_warnings(*, is_admin: bool) -> Iterator[Notice]:
    for find_warnings in registry.hooks(Hook.ACCOUNT_WARNINGS):
        for text, address, label in find_warnings(is_admin=is_admin):
            yield Notice(text, address, label)


def _expiring(account: Account, now: datetime) -> list[RegistryRow]:
    found = [
        describe_token(known, policies, now) for _account, known, policies in sas.expiring([account], now)
    ]
    return sorted(found, key=lambda row: row.ends or now)[:EXPIRING]
