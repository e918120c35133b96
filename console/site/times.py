"""Time formats of the console: ISO dates in the user's zone and relative times, and their parsing."""

from datetime import date, datetime, timedelta
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
    """Describe a relative time, such as "in 3 days, 2 hours"; ``past_depth`` limits the units for the past."""
    if abs(moment - now) < timedelta(minutes=1):
        return _("just now")
    if moment > now:
        return _("in %(time)s") % {"time": timeuntil(moment, now, _UNITS)}
    return _("%(time)s ago") % {"time": timesince(moment, now, time_strings=_UNITS, depth=past_depth)}


def show_distance(moment: datetime) -> SafeString:
    """Render a relative time with the exact local time as its tooltip."""
    return draw_time(to_local(moment), describe_distance(moment, timezone.now(), past_depth=1))


def draw_time(local: datetime, text: str) -> SafeString:
    """Render a text for a time, with the exact time as its tooltip."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat(), write_zoned(local), text
    )


def write_day(moment: datetime | date | None) -> str:
    """Format a date, such as 2026-11-23; empty for None, as in the other functions here."""
    return _write(moment, "%Y-%m-%d")


def write_minute(moment: datetime | None) -> str:
    """Format a date and time to the minute, such as 2026-11-23 14:28."""
    return _write(moment, "%Y-%m-%d %H:%M")


def write_moment(moment: datetime | None) -> str:
    """Format a date and time to the second, such as 2026-11-23 14:28:41."""
    return _write(moment, "%Y-%m-%d %H:%M:%S")


def write_exact(moment: datetime | None) -> str:
    """Format a date and time to the microsecond, with the time zone."""
    return _write(moment, "%Y-%m-%d %H:%M:%S.%f %Z")


def write_zoned(moment: datetime | None) -> str:
    """Format a date and time with zone, such as 2026-11-23 14:28:41 UTC."""
    return _write(moment, "%Y-%m-%d %H:%M:%S %Z")


def write_clock(moment: datetime | None) -> str:
    """Format the time of day, such as 14:28:41."""
    return _write(moment, "%H:%M:%S")


def _write(moment: datetime | date | None, format_: str) -> str:
    if moment is None or moment == "":  # templates pass an empty text for a missing value
        return ""
    return (to_local(moment) if isinstance(moment, datetime) else moment).strftime(format_)


def to_local(moment: datetime) -> datetime:
    """Convert to the user's time zone, or keep UTC at the end of the calendar."""
    try:
        return timezone.localtime(moment)
    except OverflowError:
        return moment


def read_local_time(text: str) -> datetime | None:
    """Parse a local time from a form field, in the page's time zone unless it has an offset; None if malformed."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    except (ValueError, OverflowError):
        return None


def write_local_time(moment: datetime) -> str:
    """Format a time for a form field, as parsed by read_local_time."""
    return timezone.localtime(moment).replace(tzinfo=None).isoformat(timespec="seconds")
