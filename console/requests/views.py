"""Request log of an account: the list with statistics, a request with its explanation, and the export."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from console.access.sas.views.inspector import report_context
from console.entities.entity_page import EntityTarget
from console.queries.access_paths import PATHS
from console.requests.code import write_code
from console.requests.files import FIELDS
from console.requests.filters import ALL, DURATIONS, KINDS, SPANS, RequestQuery, read_query
from console.requests.presentation import AUTHENTICATIONS, RequestView
from console.requests.remedies import find_remedies
from console.site.access import account_required, find_table, role_of, user_of
from console.site.actors import name_sas
from console.site.downloads import stream_list
from console.site.histogram import Histogram, draw_histogram, write_ticks
from console.site.log_page import PAGE_SIZE, cut_page
from console.site.responses import render_part, wants_part
from console.site.tags import grouped
from console.site.times import to_local, write_local_time, write_minute
from console.snippets.connections import endpoint
from storage.domain.access.grants import Operation
from storage.domain.access.roles import Capability
from storage.domain.errors import OperationTimedOut, TableNotFound
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.values.numbers import read_number
from storage.domain.values.time_buckets import TimeBucket
from storage.history import changes, last_change
from storage.history.changes import ChangeFilter
from storage.inspector import Facts
from storage.inspector.records import load_report
from storage.metrics import reports
from storage.models import Account, RecordedRequest
from storage.requests import requests
from storage.requests.requests import RequestClass
from storage.requests.timeline import Timeline, timeline
from storage.rest.lookups import or_404

_HEIGHT: Final = 48  # height of the histogram
_OUTCOMES: Final = (Outcome.DONE, Outcome.REFUSED, Outcome.FAILED)  # from the bottom


@require_safe
@never_cache
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """List requests, newest first: those that need attention, or a kind; with ``live``, the list refreshes itself."""
    now = timezone.now()
    query = read_query(request.GET, now).with_kind()
    condition = query.to_filter(account.pk, now)
    numbers: Timeline | None = None
    try:
        rows, is_timed_out = requests.page(condition, before=read_number(query.before), top=PAGE_SIZE), False
        if not query.is_for_one:
            is_of_all = condition.kind is RequestClass.PROBLEM
            counted = replace(condition, kind=None) if is_of_all else condition
            numbers = timeline(account, counted, reports.choose_range(*query.period(now), now))
    except OperationTimedOut:
        rows, is_timed_out = [], True
    shown, older = cut_page(rows)
    opened = _find_opened(account, query, shown)
    context = {
        "query": query,
        "requests": [RequestView(it) for it in shown],
        "is_timed_out": is_timed_out,
        "older": "" if older is None else query.query_string(before=older, live=""),
        "numbers": numbers,
        "chart": None if numbers is None else _draw_timeline(numbers, query),
        "chips": list(_chips(query)),
        "spans": [(name, label) for name, (_length, label) in SPANS.items()],
        "kinds": [
            (label, query.query_string(kind=kind, live=""), kind == query.kind)
            for kind, label in KINDS.items()
        ],
        "all_address": query.query_string(kind=ALL),
        "operations": [(it.value, it.value) for it in Operation],
        "paths": [(path.value, text.label) for path, text in PATHS.items()],
        "durations": [(it, _("≥ %(number)s ms") % {"number": it}) for it in DURATIONS],
        "path": request.path,
        "all_times_address": query.query_string(since="", until=""),
        "live_address": query.query_string(live="1", since="", until=""),
        "paused_address": query.query_string(live=""),
        **query.export_urls(reverse("requests:export", args=(account.name,)), live=""),
        "days": settings.REQUEST_LOG.keep.days,
        "log": settings.REQUEST_LOG,
        "opened": opened,
    }
    if opened is not None and not wants_part(request):
        context |= _request_context(request, opened)
    return render_part(request, "console/requests/index.html", "_list.html", context)


def _find_opened(
    account: Account, query: RequestQuery, rows: Sequence[RecordedRequest]
) -> RecordedRequest | None:
    """Return the request opened beside the list: the one in the address, or the only one with an id."""
    if query.is_for_one and len(rows) == 1:
        return rows[0]
    try:
        return requests.get(account, UUID(query.open)) if query.open else None
    except ValueError:
        return None


def _draw_timeline(numbers: Timeline, query: RequestQuery) -> Histogram:
    def address(bucket: TimeBucket) -> str:
        since, until = write_local_time(bucket.start), write_local_time(bucket.end)
        return query.query_string(span="", since=since, until=until, live="")

    buckets = numbers.buckets
    quarters = [buckets[len(buckets) * place // 4].start for place in range(4)]
    end = f"{to_local(buckets[-1].end):%H:%M}" if query.has_range else _("Now")
    return draw_histogram(
        _("Requests over time"),
        buckets,
        lambda it: f"{write_minute(it.start)} – {write_minute(it.end)}: {grouped(it.total)}",
        kinds=_OUTCOMES,
        height=_HEIGHT,
        address=address,
        ticks=write_ticks(quarters, with_day=query.span_shown == "week", end=end),
    )


def _chips(query: RequestQuery) -> list[tuple[str, str]]:
    """Return the filter's conditions without a form field, each with the address that removes it."""
    chips: list[tuple[str, str]] = []
    if query.has_range:
        since, until = query.since.replace("T", " "), query.until.replace("T", " ")
        chips.append((f"{since} – {until}", query.query_string(since="", until="")))
    if query.how:
        is_sas = query.how == Authentication.SAS and query.credential
        name = name_sas(query.credential) if is_sas else query.credential or str(AUTHENTICATIONS[query.how])
        chips.append((name, query.query_string(how="", credential="")))
    chips += [
        (value, query.query_string(**{name: ""}))
        for name, value in (("status", query.status), ("client", query.client), ("id", query.id))
        if value
    ]
    return chips


@require_safe
@never_cache
@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, request_id: UUID) -> HttpResponse:
    """Show a request with the explanation of its refusal or slowness."""
    found = _find(account, request_id)
    context = _request_context(request, found)
    return render_part(request, "console/requests/show.html", "_request.html", context)


def _find(account: Account, request_id: UUID) -> RecordedRequest:
    return or_404(requests.get(account, request_id))


def _request_context(request: HttpRequest, recorded: RecordedRequest) -> dict[str, Any]:
    account, shown = recorded.account, RequestView(recorded)
    alike = RequestQuery(
        code=recorded.error, table=recorded.table_name, operation=recorded.operation, span="week"
    )
    context: dict[str, Any] = {
        "shown": shown,
        "in_drawer": wants_part(request),
        "remedies": find_remedies(recorded, shown.causes, role_of(request)),
        "snippets": write_code(recorded, endpoint(request, account)),
        "deletion": _find_deletion(recorded),
        "alike_address": reverse("requests:index", args=(account.name,)) + alike.query_string(),
        "back": _address_in_list(recorded),
    }
    if recorded.report is not None:
        facts = Facts({}, recorded.at.timestamp(), "", "")
        context |= report_context(load_report(recorded.report), facts, user_of(request))
    return context


def _address_in_list(found: RecordedRequest) -> str:
    return reverse("requests:show", args=(found.account.name, found.request_id))


def _find_deletion(found: RecordedRequest) -> last_change.TableDeletion | None:
    """Return the deletion of the table that a failed request missed, if it is still missing."""
    is_missing = found.error == TableNotFound.__name__ and found.table_name
    return last_change.of_table(found.account, found.table_name) if is_missing else None


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.READ)
def entity(request: HttpRequest, account: Account, request_id: UUID) -> HttpResponse:
    """Redirect to the version of the entity that a request found; a POST is redirected to its restoration.

    The log does not store the key, only the sequence of the change in the history.
    """
    recorded = _find(account, request_id)
    change = or_404(RequestView(recorded).earlier_change)
    table = find_table(account, recorded.table_name)
    entries = changes.page(account, ChangeFilter(table_id=table.pk, numbers=(change.number,)), top=1).entries
    if not entries:
        raise Http404
    target = EntityTarget(table, entries[0].key)
    if request.method != "POST":
        return HttpResponseRedirect(target.address("history:entity", v=str(change.number)))
    answer = HttpResponseRedirect(target.address("history:entity"))
    answer.status_code = 307  # with the same form
    return answer


@require_safe
@never_cache
@account_required(Capability.READ)
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    """Export the filtered requests as CSV or NDJSON."""
    now = timezone.now()
    wanted = read_query(request.GET, now).to_filter(account.pk, now)
    return stream_list(request, f"{account.name}-requests", requests.export(wanted), FIELDS)
