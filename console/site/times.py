"""Moments as their distance from now, with the exact time on hover."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

# here so that the console's own catalogues translate them: for months and days, Chinese needs other words than Django's
_UNITS: Final[dict[str, Any]] = {
    "year": ngettext_lazy("%(num)d year", "%(num)d years", "num"),
    "month": ngettext_lazy("%(num)d month", "%(num)d months", "num"),
    "week": ngettext_lazy("%(num)d week", "%(num)d weeks", "num"),
    "day": ngettext_lazy("%(num)d day", "%(num)d days", "num"),
    "hour": ngettext_lazy("%(num)d hour", "%(num)d hours", "num"),
    "minute": ngettext_lazy("%(num)d minute", "%(num)d minutes", "num"),
}


def describe_distance(moment: datetime, now: datetime, *, past_depth: int = 2) -> str:
    """Such as "in 3 days, 2 hours"; ``past_depth``: the number of units for a moment in the past."""
    if abs(moment - now) < timedelta(minutes=1):
        return _("just now")
    if moment > now:
        return _("in %(time)s") % {"time": timeuntil(moment, now, _UNITS)}
    return _("%(time)s ago") % {"time": timesince(moment, now, time_strings=_UNITS, depth=past_depth)}


def show_distance(moment: datetime) -> SafeString:
    """Draw the distance, of the past in one unit; the exact time, in the reader's zone, is its tooltip."""
    return draw_time(to_local(moment), describe_distance(moment, timezone.now(), past_depth=1))


def draw_time(local: datetime, text: str) -> SafeString:
    """Draw a text for a time, with the exact time as its tooltip."""
    exact = f"{local:%Y-%m-%d %H:%M:%S %Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, text)


def to_local(moment: datetime) -> datetime:
    """In the reader's time zone, or in UTC where that is beyond the calendar, as for 9999-12-31."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment
