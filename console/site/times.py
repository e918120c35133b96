"""Moments as their distance from now, with the exact time on hover."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _


def describe_distance(moment: datetime, now: datetime, *, past_depth: int = 2) -> str:
    """Such as "in 3 days, 2 hours"; ``past_depth``: the number of units for a moment in the past."""
    if abs(moment - now) < timedelta(minutes=1):
        return _("just now")
    if moment > now:
        return _("in %(time)s") % {"time": timeuntil(moment, now)}
    return _("%(time)s ago") % {"time": timesince(moment, now, depth=past_depth)}


def show_distance(moment: datetime) -> SafeString:
    """Draw the distance, of the past in one unit; the exact time, in the reader's zone, is its tooltip."""
    local = to_local(moment)
    text = describe_distance(moment, timezone.now(), past_depth=1)
    exact = f"{local:%Y-%m-%d %H:%M:%S %Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, text)


def to_local(moment: datetime) -> datetime:
    """In the reader's time zone, or in UTC where that is beyond the calendar, as for 9999-12-31."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment
