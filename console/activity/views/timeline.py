"""Activity log pages of an account and the server: timeline, single activity and export."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.activity import merged_log, recorded, sentences, undo
from console.activity.files import FIELDS, write_entities
from console.activity.filters import ActivityQuery
from console.activity.presentation import GROUP_LABELS, OP_LABELS
from console.activity.runs import Entry, runs_of
from console.grid import differences
from console.site.access import (
    account_context,
    account_required,
    admin_required,
    role_of,
    table_page,
    user_of,
)
from console.site.actors import DOOR_LABELS
from console.site.downloads import stream_list
from console.site.log_page import PAGE_SIZE, LogDay, by_day
from console.site.responses import render_part
from storage.access import sas
from storage.accounts import accounts
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.roles import Capability, Role, may
from storage.history.changes import ChangeEntry
from storage.models import Account, Activity, Table
from storage.people import members
from storage.relations import history
from storage.undo.undo import superseded

_SUGGESTED: Final = 50  # SAS tokens


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Activity or group of changes, as shown in the timeline."""

    done: Activity  # not stored if there is a ``change``
    address: str
    undo: bool = False  # whether to offer it
    lacks_history: bool = False  # whether an undo fails only because the account keeps no history
    undone_by: str = ""  # the address of the activity that undid it
    undoes: str = ""
    change: ChangeEntry | None = None  # None for an activity
    revert: str = ""  # the address of the undo of ``change``


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive entries; ``joined`` combines them if they are shown as one line at first."""

    entries: Sequence[TimelineEntry]
    joined: TimelineEntry | None


def _show_log(request: HttpRequest, account: Account | None = None) -> HttpResponse:
    context = _log_context(request, account)
    return render_part(request, "console/activity/index.html", "_timeline.html", context)


def _log_context(request: HttpRequest, account: Account | None, *, table: str = "") -> dict[str, Any]:
    """Return the template context of the log; ``table`` is from the page's path."""
    query = ActivityQuery.read(request.GET)
    log_query = replace(query, table=table) if table else query
    path = request.path
    context: dict[str, Any] = {}
    log, may_revert = merged_log.read(account, log_query, PAGE_SIZE), False
    if account is not None:
        may_revert = may(role_of(request), Capability.MANAGE_TABLES) and not account.read_only
        context = {
            "histogram": reverse("activity:histogram", args=(account.name,))
            + log_query.query_string(span=query.span),
            "revert": _revert_all(account, log_query) if may_revert else "",
            "may_revert": may_revert,
            "history_days": account.history_days,
            "callers": _callers(account, role_of(request)),
        }
    return context | {
        "days": list(_days(log.entries, request, account, log_query, may_revert=may_revert)),
        "query": query,
        "groups": [(group.value, label) for group, label in GROUP_LABELS.items()],
        "ops": [] if account is None else OP_LABELS.items(),
        "doors": DOOR_LABELS.items(),
        "newer": "" if log.newer is None else path + query.query_string(**log.newer),
        "older": "" if log.older is None else path + query.query_string(**log.older),
        "path": path,
        **log_query.export_urls(_address("export", account)),
        "retention": settings.ACTIVITY_DAYS,
        "is_of_server": account is None,
        "is_of_table": bool(table),
    }


def _callers(account: Account, role: Role) -> list[str]:
    """Return names to filter by: users, keys and, if permitted, SAS labels."""
    people = [it.user.get_username() for it in members.members(account)]
    labels = sas.newest_labels(account, _SUGGESTED) if may(role, Capability.MANAGE_ACCESS) else []
    return [*people, "key1", "key2", *labels]


show_account_log = require_safe(account_required(Capability.READ)(_show_log))
show_server_log = require_safe(admin_required(_show_log))


@table_page(Capability.READ)
@require_safe
def show_table_log(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the activity log of one table, as one of its tabs."""
    context = _log_context(request, table.account, table=table.name) | {"table": table}
    return render_part(request, "console/activity/table.html", "_timeline.html", context)


def _filter(query: ActivityQuery, account: Account | None) -> ActivityFilter:
    return query.to_filter(None if account is None else [account.pk])


def _revert_all(account: Account, wanted: ActivityQuery) -> str:
    """Return the address to undo all changes that a filter selects; empty for a filter without changes."""
    if not wanted.selects_changes:
        return ""
    return reverse("activity:revert", args=(account.name,)) + wanted.query_string(span="")


def _address(name: str, account: Account | None, *arguments: object) -> str:
    if account is None:
        return reverse(f"activity:server_{name}", args=arguments)
    return reverse(f"activity:{name}", args=(account.name, *arguments))


def _entries(
    activities: Sequence[Activity], request: HttpRequest, account: Account | None
) -> list[TimelineEntry]:
    user = user_of(request)
    roles, read_only, stale = members.roles(user), accounts.read_only(), superseded(activities)
    recorded = history.recorded_of(
        {done.account_id for done in activities if done.entities and done.account_id}
    )
    entries = []
    for done in activities:
        may = undo.may_undo(user, done, roles) and undo.is_open(done, read_only)
        lacks_history = may and done.entities > 0 and done.account_id not in recorded
        entries.append(_entry(done, account, may=may and done.pk not in stale, lacks_history=lacks_history))
    return entries


def _mixed_entries(
    entries: Sequence[Entry],
    request: HttpRequest,
    account: Account | None,
    query: ActivityQuery,
    *,
    may_revert: bool,
) -> list[TimelineEntry]:
    activities = [entry for entry in entries if isinstance(entry, Activity)]
    shown = {entry.done.pk: entry for entry in _entries(activities, request, account)}
    return [
        shown[entry.pk]
        if isinstance(entry, Activity)
        else _change_entry(entry, account, query, may_revert=may_revert)
        for entry in entries
    ]


def _change_entry(
    entry: ChangeEntry,
    account: Account | None,
    query: ActivityQuery,
    requests: Sequence[str] = (),
    *,
    may_revert: bool,
) -> TimelineEntry:
    """Return an entry for changes, with addresses that select exactly these."""
    assert account is not None  # activities alone are listed for the whole server
    done = merged_log.as_activity(entry, account)
    has_table = entry.table is not None and entry.table.deleted_at is None
    requests = requests or ([entry.request] if entry.request else [])
    selected = QueryDict(mutable=True)
    # a request that has begun in the minute before must not bring in the others of that minute
    since = entry.earliest if requests else max(entry.earliest, merged_log.minute_of(entry.latest))
    values = {
        "table": entry.table.name if entry.table is not None else "",
        "since": since.isoformat(),
        "until": (entry.latest + timedelta(microseconds=1)).isoformat(),
        "what": query.kind,
        "key": query.key,
        "by": "" if entry.requests == 1 else f"{entry.actor.kind}:{entry.actor.name}",
        "actor": "" if requests else str(entry.actor_id),
    }
    selected.update({name: value for name, value in values.items() if value})
    selected.setlistdefault("request", [*requests])
    return TimelineEntry(
        done,
        f"{_address('changes', account)}?{selected.urlencode()}" if has_table else "",
        change=entry,
        revert=f"{_address('revert', account)}?{selected.urlencode()}" if may_revert and has_table else "",
    )


def _entry(done: Activity, account: Account | None, *, may: bool, lacks_history: bool) -> TimelineEntry:
    undone_by = activity.undone_by(done)
    return TimelineEntry(
        done,
        _address("entry", account, done.pk),
        may and undone_by is None,
        lacks_history and undone_by is None,
        "" if undone_by is None else _address("entry", account, undone_by.pk),
        "" if done.undoes_id is None else _address("entry", account, done.undoes_id),
    )


def _days(
    entries: Sequence[Entry],
    request: HttpRequest,
    account: Account | None,
    query: ActivityQuery,
    *,
    may_revert: bool,
) -> Iterator[LogDay[Run]]:
    shown = iter(_mixed_entries(entries, request, account, query, may_revert=may_revert))
    for day in by_day(entries, merged_log.time_of):
        runs = [
            Run(
                list(islice(shown, len(members))),
                None
                if joined is None
                else _change_entry(joined, account, query, requests, may_revert=may_revert),
            )
            for joined, requests, members in runs_of(day.rows)
        ]
        yield LogDay(day.date, runs)


# one activity


def _show_entry(request: HttpRequest, account: Account | None = None, *, number: int) -> HttpResponse:
    done = activity.get(number)
    if done is None or (account is not None and done.account_id != account.pk):
        raise Http404
    (entry,) = _entries([done], request, account)
    changed, others = recorded.of_activity(done)
    context: dict[str, Any] = {
        "entry": entry,
        "done": done,
        "changed": changed,
        "others": others,
        "facts": differences.activity_facts(done),
        "settings": [] if changed else differences.setting_differences(done),
        "title": sentences.plain_sentence(done),
        "onward": _find_onward(request, done),
        "back": _address("index", account),
    }
    return render_part(request, "console/activity/show.html", "_details.html", context)


def _find_onward(request: HttpRequest, done: Activity) -> tuple[str, str] | None:
    """Return the address and label of a page that goes on from an activity, for users who may write."""
    context = account_context(request)
    if context is None or not may(context.role, Capability.WRITE):
        return None
    page: tuple[str, str] | None = registry.first_answer(Hook.ACTIVITY_PAGE, done)
    return page


show_account_entry = require_safe(account_required(Capability.READ)(_show_entry))
show_server_entry = require_safe(admin_required(_show_entry))


def _export(request: HttpRequest, account: Account | None = None) -> HttpResponseBase:
    activities = activity.export(_filter(ActivityQuery.read(request.GET), account))
    name = f"{account.name if account else 'server'}-activity"
    return stream_list(request, name, activities, FIELDS, more=write_entities)


export_account_log = require_safe(account_required(Capability.READ)(_export))
export_server_log = require_safe(admin_required(_export))
