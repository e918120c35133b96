"""Time range of a metrics page in its address: a preset up to now, or a start and an end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.times import read_local_time
from storage.metrics import reports, series
from storage.metrics.reports import Range, UnknownRange

DEFAULT: Final = "24h"
RANGES: Final[Mapping[str, tuple[timedelta, Promise]]] = {
    "1h": (timedelta(hours=1), gettext_lazy("1 h")),
    "6h": (timedelta(hours=6), gettext_lazy("6 h")),
    "24h": (timedelta(hours=24), gettext_lazy("24 h")),
    "7d": (timedelta(days=7), gettext_lazy("7 d")),
    "30d": (timedelta(days=30), gettext_lazy("30 d")),
    "90d": (timedelta(days=90), gettext_lazy("90 d")),
}


@dataclass(frozen=True, slots=True)
class ChosenRange:
    """Selected time range; ``name`` is a key of RANGES or empty, ``error`` explains a fallback."""

    range: Range
    since: datetime
    until: datetime
    name: str = ""
    error: str = ""


def read_range(query: QueryDict, now: datetime) -> ChosenRange:
    given = query.get("since", ""), query.get("until", "")
    if not any(given):
        name = query.get("range", DEFAULT)
        return _last(name if name in RANGES else DEFAULT, now)
    since, until = map(read_local_time, given)
    if since is None or (until is None and given[1]):
        return _last(DEFAULT, now, _("Enter both times, such as 2026-11-21T14:30."))
    until = min(until or now, now)
    if since >= until:
        return _last(DEFAULT, now, _("The range must begin before it ends, and in the past."))
    try:
        return ChosenRange(reports.choose_range(since, until, now), since, until)
    except UnknownRange:
        return _last(DEFAULT, now, _("Metrics are kept for 90 days."))


def _last(name: str, now: datetime, error: str = "") -> ChosenRange:
    """Return a range up to now, which begins with the data of a server that is younger."""
    first = series.first_observed() or now
    since = max(now - RANGES[name][0], min(first, now - series.MINUTE))
    return ChosenRange(reports.choose_range(since, now, now), since, now, name, error)
