"""Pages of recorded changes: the changes of one request, and a histogram."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from console.activity import merged_log, recorded
from console.activity.filters import ActivityQuery, read_caller, read_requests
from console.grid import differences
from console.site.access import account_required, find_table, role_of
from console.site.histogram import draw_histogram, write_ticks
from console.site.tags import grouped
from console.site.times import to_local, write_minute
from storage.domain.access.roles import Capability, may
from storage.domain.errors import OperationTimedOut
from storage.domain.values.numbers import read_number
from storage.domain.values.time_buckets import TimeBucket
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.models import Account
from storage.relations.record import recorded_changes

_HEIGHT: Final = 40  # height of the histogram

# spans of the histogram: its length, and the number of its bars
SPANS: Final = {
    "hour": (timedelta(hours=1), 60, _("Changes per minute, last hour")),
    "day": (timedelta(days=1), 72, _("Changes per 20 minutes, last 24 hours")),
    "week": (timedelta(days=7), 84, _("Changes per 2 hours, last 7 days")),
}
_DEFAULT_SPAN: Final = "day"


@account_required(Capability.READ)
@require_safe
def show(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the changes of one request, or of one caller in a period, as a table."""
    query, requests = ActivityQuery.read(request.GET), read_requests(request.GET.getlist("request"))
    caller, actor_id = read_caller(request.GET.get("by", "")), read_number(request.GET.get("actor", ""))
    if not query.table or not (requests or (caller and query.since and query.until)):
        raise Http404
    table = find_table(account, query.table)
    selection = ChangeFilter(
        table_id=table.pk,
        requests=tuple(requests),
        actors=() if caller is None else (caller,),
        actor_id=actor_id,
        ops=query.ops,
        key=query.key,
        since=query.since_moment,
        until=query.until_moment,
    )
    entries = changes.page(account, selection, top=1).entries
    if not entries:
        raise Http404
    done = merged_log.as_activity(entries[0], account)
    done.at = entries[0].earliest if len(requests) == 1 else entries[0].latest
    if len(requests) != 1:
        done.request_id = ""
    changed, has_more = recorded.of_request(account, table, selection)
    may_revert = may(role_of(request), Capability.MANAGE_TABLES) and not account.read_only
    revert = reverse("activity:revert", args=(account.name,)) + f"?{request.GET.urlencode()}"
    context: dict[str, Any] = {
        "done": done,
        "facts": differences.activity_facts(done),
        "changed": changed,
        "has_more": has_more,
        "revert": revert if may_revert else "",
    }
    return render(request, "console/activity/_details.html", context)


@account_required(Capability.READ)
@require_safe
def show_histogram(request: HttpRequest, account: Account) -> HttpResponse:
    """Render a histogram of changes, with the selected range marked."""
    query = ActivityQuery.read(request.GET)
    span = query.span if query.span in SPANS else _DEFAULT_SPAN
    length, number, label = SPANS[span]
    until = _end_of_bucket(timezone.now(), length / number)
    since, selection = until - length, query.to_changes()
    buckets: list[TimeBucket] | None = []
    if selection is not None:
        try:
            # the bars beside a selected range stay
            buckets = changes.histogram(account, selection, since, until, number)
        except OperationTimedOut:
            buckets = None
    quarters = [since + length * place / 4 for place in range(4)]
    chart = draw_histogram(
        str(label),
        buckets or [],
        _title,
        height=_HEIGHT,
        selected=(query.since_moment, query.until_moment),
        ticks=write_ticks(quarters, with_day=length > timedelta(days=1), end=gettext("Now")),
    )
    context: dict[str, Any] = {
        "chart": chart,
        "is_too_slow": buckets is None,
        "spans": [(name, text) for name, (_length, _number, text) in SPANS.items()],
        "span": span,
        "is_kept": bool(recorded_changes(account.pk)),
    }
    return render(request, "console/activity/_histogram.html", context)


def _end_of_bucket(now: datetime, width: timedelta) -> datetime:
    """Round a time up to a bucket, so that bars are stable while viewed."""
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + -(-(now - midnight) // width) * width


def _title(bucket: TimeBucket) -> str:
    return f"{write_minute(bucket.start)} – {to_local(bucket.end):%H:%M}: {grouped(bucket.total)}"
