"""What people and clients did, in an account or on the whole server."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.activity import activity_file as file
from console.activity import activity_state, sentences
from console.activity import undo as ways
from console.activity.activity_state import GROUPS, State
from console.grid import differences
from console.site.access import account_required, admin_required, user_of
from console.site.rendering import render_part
from console.site.streaming import streamed
from storage.domain.access.roles import Capability
from storage.models import Account, Activity
from storage.operations import activity
from storage.operations.activity import ActivityFilter

_TOP: Final = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the timeline; ``undo`` whether the reader may, and there is a way."""

    done: Activity
    address: str
    undo: bool
    undone_by: str  # the address of what undid it
    undoes: str


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    entries: Sequence[Entry]


@require_safe
@account_required(Capability.READ)
def of_account(request: HttpRequest, account: Account) -> HttpResponse:
    return _timeline(request, account)


@require_safe
@admin_required
def of_server(request: HttpRequest) -> HttpResponse:
    return _timeline(request, None)


def _timeline(request: HttpRequest, account: Account | None) -> HttpResponse:
    state = activity_state.read(request.GET)
    found = activity.page(
        _wanted(state, account),
        before=activity_state.number(state.before),
        after=activity_state.number(state.after),
        top=_TOP,
    )
    path = request.path
    context = {
        "days": _days(found.activities, request, account),
        "state": state,
        "groups": [(name, label, name == state.what) for name, (label, _kinds) in GROUPS.items()],
        "newer": path + state.query(after=found.newer) if found.newer else "",
        "older": path + state.query(before=found.older) if found.older else "",
        "path": path,
        "csv_url": _file(state, account, "csv"),
        "ndjson_url": _file(state, account, "ndjson"),
        "retention": settings.ACTIVITY_DAYS,
        "today": timezone.localdate(),
        "yesterday": timezone.localdate() - timedelta(days=1),
        "is_of_server": account is None,
    }
    return render_part(
        request, page="console/activity/index.html", part="console/activity/_timeline.html", context=context
    )


def _wanted(state: State, account: Account | None) -> ActivityFilter:
    return state.wanted(None if account is None else [account.pk])


def _file(state: State, account: Account | None, form: str) -> str:
    return _address("export", account) + state.query(format=form)


def _address(name: str, account: Account | None, *arguments: object) -> str:
    if account is None:
        return reverse(f"activity:server_{name}", args=arguments)
    return reverse(f"activity:{name}", args=(account.name, *arguments))


def _days(found: Iterable[Activity], request: HttpRequest, account: Account | None) -> list[Day]:
    entries = _entries(found, request, account)
    return [Day(day, list(of_day)) for day, of_day in groupby(entries, lambda it: _day_of(it.done.at))]


def _day_of(moment: datetime) -> date:
    return timezone.localtime(moment).date()


def _entries(found: Iterable[Activity], request: HttpRequest, account: Account | None) -> list[Entry]:
    user = user_of(request)
    roles = ways.roles_of(user)
    locked = ways.locked_accounts()
    return [
        _entry(done, account, may=ways.may_undo(user, done, roles) and ways.is_open(done, locked))
        for done in found
    ]


def _entry(done: Activity, account: Account | None, *, may: bool) -> Entry:
    undone_by = next(iter(done.undone_by.all()), None)
    return Entry(
        done,
        _address("entry", account, done.pk),
        may and undone_by is None,
        "" if undone_by is None else _address("entry", account, undone_by.pk),
        "" if done.undoes_id is None else _address("entry", account, done.undoes_id),
    )


# one of them


@require_safe
@account_required(Capability.READ)
def entry(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    done = activity.get(number)
    if done is None or done.account_id != account.pk:
        raise Http404
    return _one(request, account, done)


@require_safe
@admin_required
def server_entry(request: HttpRequest, number: int) -> HttpResponse:
    done = activity.get(number)
    if done is None:
        raise Http404
    return _one(request, None, done)


def _one(request: HttpRequest, account: Account | None, done: Activity) -> HttpResponse:
    (shown,) = _entries([done], request, account)
    changed = differences.of_entities(done)
    context: dict[str, Any] = {
        "entry": shown,
        "done": done,
        "changed": changed,
        "others": max(0, _changed(done) - len(changed)),
        "facts": differences.facts(done),
        "settings": [] if changed else differences.of_settings(done),
        "title": sentences.plain(done),
        "back": _address("index", account),
    }
    return render_part(
        request, page="console/activity/show.html", part="console/activity/_details.html", context=context
    )


def _changed(done: Activity) -> int:
    number: int = getattr(done, "changed", 0)
    return number


# all of them, as a file


@require_safe
@account_required(Capability.READ)
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    return _export(request, account)


@require_safe
@admin_required
def server_export(request: HttpRequest) -> HttpResponseBase:
    return _export(request, None)


def _export(request: HttpRequest, account: Account | None) -> HttpResponseBase:
    form = file.FORMS.get(request.GET.get("format", ""))
    if form is None:
        raise Http404
    found = activity.export(_wanted(activity_state.read(request.GET), account))
    name = f"{account.name if account else 'server'}-activity.{form.extension}"
    return streamed(request, form.write(found), content_type=form.content_type, filename=name)
