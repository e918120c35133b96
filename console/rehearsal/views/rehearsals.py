"""Start, watch and stop rehearsals."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.rehearsal.forms import StartForm, repeat
from console.rehearsal.presentation import ExchangeView, RehearsalView, SetView, show_clients
from console.site.access import account_required, actor_of, role_of
from console.site.log_page import PAGE_SIZE, LogQuery, QueryPart, is_one_of, take_newest, url_field
from console.site.refusals import describe_refusal, notify_refusals
from console.site.responses import render_page, render_part
from console.site.toasts import notify_error, notify_success
from console.snippets import connections
from storage.accounts import account_settings
from storage.domain.access.roles import Capability, may
from storage.domain.refusals import AnyReason, Refused
from storage.domain.values.numbers import read_number
from storage.models import Account, Rehearsal
from storage.rehearsal import rehearsals, report, summaries
from storage.rehearsal.subject import RehearsalReason
from storage.requests.requests import find_recorded
from storage.tables import tables

_LATEST: Final = 10  # in the list
_PROPOSED: Final = 200  # tables
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FEW: Final = 1_000  # requests, on which a report is made at once
# most requests → seconds between two reports while a rehearsal runs
_INTERVALS: Final = ((_FEW, 2), (5_000, 5), (math.inf, 15))
_FIELDS: Final[dict[AnyReason, str]] = {
    RehearsalReason.SEED: "seed",
    RehearsalReason.SCALE: "scale",
    RehearsalReason.DURATION: "minutes",
}


@require_safe
@never_cache
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the sets of rules, with the form to start a rehearsal, and former rehearsals."""
    form = StartForm(initial=request.GET.dict(), sets=rehearsals.sets(account))
    return _page(request, account, form)


@require_POST
@account_required(Capability.MANAGE_TABLES)
def start(request: HttpRequest, account: Account) -> HttpResponse:
    form = StartForm(request.POST, sets=rehearsals.sets(account))
    if not form.is_valid():
        return _page(request, account, form, status=422)
    try:
        started = rehearsals.start(
            account,
            form.cleaned_data["set"],
            table=form.cleaned_data["table"],
            seed=form.cleaned_data["seed"],
            scale=form.scale_factor,
            duration=form.duration,
            by=actor_of(request),
        )
    except Refused as refused:
        field = _FIELDS.get(refused.refusal.reason)
        if field is None:
            notify_error(request, describe_refusal(refused))
            return redirect("rehearsal:index", account.name)
        form.add_error(field, describe_refusal(refused))
        return _page(request, account, form, status=422)
    return redirect("rehearsal:show", account.name, started.pk)


def _page(request: HttpRequest, account: Account, form: StartForm, *, status: int = 200) -> HttpResponse:
    latest, older = take_newest(rehearsals.of_account(account), request.GET.get("before", ""), _LATEST)
    can_start = may(role_of(request), Capability.MANAGE_TABLES)
    is_allowed = account.may_rehearse and not account.protected
    context = {
        "form": form,
        "sets": [SetView(it) for it in rehearsals.sets(account)],
        "running": rehearsals.running(account),
        "latest": [
            _view_ended(RehearsalView(it, summary))
            for it, summary in zip(latest, summaries.summarize(latest), strict=True)
        ],
        "older": "" if older is None else f"?before={older}",
        "is_allowed": is_allowed,
        "can_start": can_start and is_allowed,
        "may_manage": can_start,
        "tables": tables.names(account, top=_PROPOSED) if can_start and is_allowed else [],
        **_connection(request, account),
    }
    return render(request, "console/rehearsal/index.html", context, status=status)


def _view_ended(shown: RehearsalView) -> RehearsalView:
    """Add the report to a rehearsal that has ended, unless it takes long to make."""
    if shown.is_running or not 0 < shown.requests <= _FEW:
        return shown
    return replace(shown, report=report.make_report(shown.it))


def _connection(request: HttpRequest, account: Account) -> dict[str, str]:
    endpoint = connections.endpoint(request, account)
    return {
        "connection_string": connections.masked_connection_string(account, endpoint),
        "command": f"python3 manage.py rehearse {account.name} short-pages --for 10m --seed 7",
    }


@require_POST
@account_required(Capability.OWN)
def allow(request: HttpRequest, account: Account) -> HttpResponse:
    """Let failures be rehearsed in the account."""
    if "may_rehearse" in request.POST:
        with notify_refusals(request):
            done = account_settings.change(account, may_rehearse=True, by=actor_of(request))
            notify_success(request, _("Failures may be rehearsed in this account now."), undo=done)
    return redirect("rehearsal:index", account.name)


@require_safe
@never_cache
@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    """Show a rehearsal; the page refreshes its part while the rehearsal runs."""
    rehearsal = _find(account, number)
    made = report.make_report(rehearsal)
    shown = RehearsalView(rehearsal, made.summary, made)
    context: dict[str, Any] = {
        "shown": shown,
        "clients": show_clients(account, summaries.count_clients(rehearsal), made),
        "seconds": next(seconds for most, seconds in _INTERVALS if shown.requests <= most),
        "again": reverse("rehearsal:index", args=(account.name,), query=repeat(rehearsal)),
        "may_manage": may(role_of(request), Capability.MANAGE_TABLES),
        **_connection(request, account),
    }
    return render_part(request, "console/rehearsal/show.html", "_rehearsal.html", context)


@require_POST
@account_required(Capability.MANAGE_TABLES)
def stop(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    found = _find(account, number)
    if rehearsals.stop(found, by=actor_of(request)):
        notify_success(request, _("Stopped the rehearsal %(set)s.") % {"set": found.set_name})
    return redirect("rehearsal:show", account.name, found.pk)


@dataclass(frozen=True, slots=True)
class RequestQuery(LogQuery):
    """Filter and page of the requests of a rehearsal, as in the address."""

    kind: str = url_field(is_one_of({"affected"}))
    agent: str = url_field()
    ids: str = url_field()
    after: str = url_field(read_number, part=QueryPart.PAGE)

    @property
    def request_ids(self) -> list[UUID]:
        return [UUID(it) for it in self.ids.split(",") if _UUID.fullmatch(it)]


@require_safe
@never_cache
@account_required(Capability.READ)
def requests(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    """List the requests of a rehearsal in their order: all, affected ones, or those that show a finding."""
    rehearsal, query = _find(account, number), RequestQuery.read(request.GET)
    rows = summaries.exchanges(
        rehearsal,
        agent=query.agent,
        is_faulted=True if query.kind else None,
        request_ids=query.request_ids,
        after=read_number(query.after) or 0,
        top=PAGE_SIZE + 1,
    )
    recorded = find_recorded(account, [row.request_id for row in rows])
    more = rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None
    context = {
        "rehearsal": rehearsal,
        "requests": [ExchangeView(row, row.request_id in recorded) for row in rows[:PAGE_SIZE]],
        "query": query,
        "kinds": [
            (_("All"), query.query_string(kind="", ids=""), not query.kind and not query.ids),
            (_("Affected"), query.query_string(kind="affected", ids=""), bool(query.kind)),
        ],
        "more": "" if more is None else query.query_string(after=more),
    }
    return render_page(request, "console/rehearsal/requests.html", context)


def _find(account: Account, number: int) -> Rehearsal:
    return get_object_or_404(rehearsals.of_account(account), pk=number)
