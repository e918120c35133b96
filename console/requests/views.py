"""The request log of an account: the list with its numbers, and one request with why it was refused or slow."""

from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.requests.filters import KINDS, SPANS, read_query
from console.requests.presentation import AUTHENTICATIONS, RequestView
from console.sas.views.inspector import report_context
from console.site.access import account_required, user_of
from console.site.responses import render_part
from storage.domain.access.grants import Operation
from storage.domain.access.roles import Capability
from storage.domain.errors import OperationTimedOut
from storage.domain.values.numbers import read_number
from storage.inspector import Facts
from storage.inspector.records import load_report
from storage.models import Account
from storage.operations.requests import requests
from storage.operations.requests.statistics import statistics

_PAGE: Final = 50


@require_safe
@never_cache
@account_required(Capability.READ)
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """List requests, the newest first; with ``live``, the list is renewed."""
    query, now = read_query(request.GET), timezone.now()
    wanted, before = query.to_filter(account.pk, now), read_number(query.before)
    try:
        rows, is_timed_out = requests.page(wanted, before=before, top=_PAGE), False
    except OperationTimedOut:
        rows, is_timed_out = [], True
    numbers = statistics(account, now - query.length, now)
    context = {
        "query": query,
        "requests": [RequestView(it) for it in rows[:_PAGE]],
        "is_timed_out": is_timed_out,
        "older": query.query_string(before=rows[_PAGE - 1].pk, live="") if len(rows) > _PAGE else "",
        "numbers": numbers,
        "codes": [
            (it, query.query_string(code=it.code, kind="", live="")) for it in numbers.codes if it.code
        ],
        "callers": [
            (
                it,
                AUTHENTICATIONS[it.authentication],
                query.query_string(code=it.code, how=it.authentication, credential=it.credential, kind=""),
            )
            for it in numbers.credentials
        ],
        "spans": [(name, label) for name, (_, label) in SPANS.items()],
        "kinds": [(kind.value, label) for kind, label in KINDS.items()],
        "operations": [(it.value, it.value) for it in Operation],
        "path": request.path,
        "live_address": query.query_string(live="1"),
        "paused_address": query.query_string(live=""),
        "days": settings.REQUEST_LOG.keep.days,
        "log": settings.REQUEST_LOG,
    }
    return render_part(request, "console/requests/index.html", "_list.html", context)


@require_safe
@never_cache
@account_required(Capability.READ)
def show(request: HttpRequest, account: Account, request_id: UUID) -> HttpResponse:
    """Show a request: why it was refused or slow, and for a refused access the inspector's report."""
    found = requests.get(account, request_id)
    if found is None:
        raise Http404
    context: dict[str, Any] = {"shown": RequestView(found)}
    if found.report is not None:
        facts = Facts({}, found.at.timestamp(), "", "")
        context |= report_context(load_report(found.report), facts, user_of(request))
    return render_part(request, "console/requests/show.html", "_request.html", context)
