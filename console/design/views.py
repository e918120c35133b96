"""Pages about the design of a table, and of the tables of an account."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.design.presentation import DesignView, SummaryView
from console.site.access import account_required, table_page
from console.site.refusals import describe_refusal
from console.site.responses import wants_part
from storage.design import design
from storage.design.advice import read_shape
from storage.domain.access.roles import Capability
from storage.domain.errors import OperationTimedOut, StorageError
from storage.domain.filters.ast import Filter
from storage.domain.requests.cleaning import LEFT_OUT
from storage.editing.filters.diagnosis import parse_filter
from storage.models import Account, Table


@require_safe
@never_cache
@table_page(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the page, which loads its content itself; with ``f``, a filter, also what would serve that query."""
    is_part = wants_part(request)
    context: dict[str, Any] = {"table": table, "page_address": _address(request)}
    if not is_part and "whole" not in request.GET:
        return render(request, "console/design/show.html", context)
    status = 200
    try:
        described = design.describe(table)
        context["design"] = DesignView(described, _read_filter(request))
    except OperationTimedOut as error:
        # htmx swaps in no failures
        context["error"], status = describe_refusal(error), 200 if is_part else 503
    template = "console/design/_design.html" if is_part else "console/design/show.html"
    return render(request, template, context, status=status)


def _address(request: HttpRequest) -> str:
    """Return the address of the page without ``whole``."""
    query = request.GET.copy()
    query.pop("whole", None)
    return f"{request.path}?{query.urlencode()}" if query else request.path


def _read_filter(request: HttpRequest) -> Filter | None:
    """Return the filter in the address, which may be one of the request log, without its values."""
    text = request.GET.get("f", "")
    if LEFT_OUT in text:
        return read_shape(text)
    try:
        return parse_filter(text, timezone.now())
    except StorageError:
        return None


@require_safe
@never_cache
@account_required(Capability.READ)
def show_account(request: HttpRequest, account: Account) -> HttpResponse:
    """List the tables of an account with their problems; for htmx, only those that have some."""
    described = design.describe_account(account)
    summaries = [SummaryView(it) for it in described.tables]
    context = {
        "tables": summaries,
        "with_problems": [it for it in summaries if it.problems],
        "others": described.others,
    }
    part = "console/design/_card.html" if wants_part(request) else "console/design/account.html"
    return render(request, part, context)
