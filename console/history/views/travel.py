"""Navigation in a table's past: to a time or to the neighbouring change, and a histogram of changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from console.grid.state import GridState, read_state
from console.grid.time_travel import field_text
from console.site.access import table_required
from console.site.histogram import draw_histogram
from console.site.tags import grouped
from console.site.toasts import notify_error
from storage.domain.access.roles import Capability
from storage.domain.entities.moments import Moment
from storage.domain.errors import OperationTimedOut
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.domain.values.time_buckets import TimeBucket
from storage.history import changes, past
from storage.history.changes import ChangeFilter
from storage.models import Table

BARS: Final = 72
_FIRST: Final = timedelta(hours=1)  # how far back a reader begins
_HEIGHT: Final = 44  # height of the histogram
_HEADROOM: Final = 4


@require_safe
@table_required(Capability.READ)
def go(request: HttpRequest, table: Table) -> HttpResponse:
    """Redirect to the grid at another time: ``go`` is previous, next or at, with local time in ``at``."""
    state = read_state(request.GET, table)
    direction = request.GET.get("go", "")
    moment: Moment | None
    if direction in ("previous", "next") and state.as_of is not None:
        moment = _neighbour(request, table, state.as_of, is_next=direction == "next")
    elif direction == "at":
        moment = _local(request.GET.get("at", ""), state)
        if moment is None:
            notify_error(request, _("Enter a date and a time."))
    else:
        moment = _start(table)
        if moment is None:
            notify_error(request, _("This account keeps no history, so there is no past to view."))
    return redirect(replace(state.at_start(), as_of=moment or state.as_of, open="").address(table))


def _start(table: Table) -> Moment | None:
    """Return the default moment: just before the last change, or an hour ago; None without a history."""
    since = past.kept_since(table.account)
    if since is None:
        return None
    try:
        [last] = changes.page(table.account, ChangeFilter(table_id=table.pk), top=1).entries
    except (OperationTimedOut, ValueError):
        pass
    else:
        if not last.is_open and last.earliest > max(since, table.created_at, table.changes_since or since):
            return Moment(to_ticks(last.earliest) - 1)
    # to the second, so that the field has it exactly; later rather than earlier, when there was no table yet
    present = past.present()
    at = max(since, table.created_at, to_datetime(present.ticks) - _FIRST)
    return min(Moment(to_ticks(at.replace(microsecond=0) + timedelta(seconds=1))), present, key=_ticks)


def _ticks(moment: Moment) -> int:
    return moment.ticks


def _local(text: str, state: GridState) -> Moment | None:
    try:
        at = datetime.fromisoformat(text)
        zoned = at if at.tzinfo is not None else at.replace(tzinfo=state.zone or UTC)
        return Moment(to_ticks(zoned.astimezone(UTC)))
    except (ValueError, OverflowError):
        return None


def _neighbour(request: HttpRequest, table: Table, moment: Moment, *, is_next: bool) -> Moment:
    """Return the time of the neighbouring change, or the same moment without one."""
    at = to_datetime(moment.ticks)
    condition = ChangeFilter(table_id=table.pk)
    condition = (
        replace(condition, since=at + timedelta(microseconds=1)) if is_next else replace(condition, until=at)
    )
    try:
        entries = changes.page(table.account, condition, top=1, oldest_first=is_next).entries
    except OperationTimedOut:
        notify_error(request, _("Finding the change took too long. Choose a time instead."))
        return moment
    if not entries:
        notify_error(request, _("There is no later change.") if is_next else _("There is no earlier change."))
        return moment
    # a Timestamp has a digit more than a datetime
    return Moment(to_ticks(entries[0].earliest if is_next else entries[0].latest) + 9)


@require_safe
@table_required(Capability.READ)
def histogram(request: HttpRequest, table: Table) -> HttpResponse:
    """Show a histogram of the table's changes."""
    state = read_state(request.GET, table)
    now = to_datetime(past.present().ticks)
    since = past.kept_since(table.account)
    if since is None:
        return render(request, "console/history/_histogram.html", {})
    since = max(since, table.created_at)
    try:
        buckets = changes.histogram(table.account, ChangeFilter(table_id=table.pk), since, now, BARS)
    except OperationTimedOut:
        problem = _("There are too many changes to count.")
        return render(request, "console/history/_histogram.html", {"problem": problem})
    length = _describe((buckets[0].end - buckets[0].start).total_seconds())
    chart = draw_histogram(
        _("Changes per %(time)s") % {"time": length},
        buckets,
        lambda bucket: _bar_title(bucket, state),
        height=_HEIGHT,
        headroom=_HEADROOM,
        write_time=lambda moment: field_text(moment.replace(microsecond=0), state.zone),
        address=lambda bucket: replace(
            state.at_start(), as_of=Moment(to_ticks(min(bucket.end, now)) - 10)
        ).address(table),
    )
    marker = None
    if state.as_of is not None:
        share = (to_datetime(state.as_of.ticks) - since) / (now - since)
        marker = round(min(max(share, 0), 1) * chart.width, 1)
    context = {"chart": chart, "marker": marker, "since": _at(since, state)}
    return render(request, "console/history/_histogram.html", context)


def _bar_title(bucket: TimeBucket, state: GridState) -> str:
    number = ngettext("%(shown)s change", "%(shown)s changes", bucket.total) % {
        "shown": grouped(bucket.total)
    }
    return f"{_at(bucket.start, state)} – {_at(bucket.end, state)}: {number}"


def _at(moment: datetime, state: GridState) -> str:
    return f"{moment.astimezone(state.zone or UTC):%Y-%m-%d %H:%M:%S}"


def _describe(seconds: float) -> str:
    if seconds < 90:
        count = max(1, round(seconds))
        return ngettext("%(count)s second", "%(count)s seconds", count) % {"count": count}
    if seconds < 5400:
        minutes = round(seconds / 60)
        return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes}
    hours = round(seconds / 3600)
    return ngettext("%(count)s hour", "%(count)s hours", hours) % {"count": hours}
