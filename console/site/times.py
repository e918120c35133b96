"""How far a moment is from now, in words."""

from datetime import datetime, timedelta

from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _


def describe_distance(moment: datetime, now: datetime, *, past_depth: int = 2) -> str:
    """Such as "in 3 days, 2 hours"; ``past_depth``: the number of units for a moment in the past."""
    if abs(moment - now) < timedelta(minutes=1):
        return _("just now")
    if moment > now:
        return _("in %(time)s") % {"time": timeuntil(moment, now)}
    return _("%(time)s ago") % {"time": timesince(moment, now, depth=past_depth)}
