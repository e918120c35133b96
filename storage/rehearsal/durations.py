"""Durations of rehearsals, as people write them."""

import re
from datetime import timedelta
from typing import Final

from storage.domain.refusals import Refused
from storage.rehearsal.subject import RehearsalReason

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}
_DURATION: Final = re.compile(r"([0-9]{1,6})([smh])")


def read_duration(text: str) -> timedelta:
    """Parse a duration such as ``90s``, ``10m`` or ``2h``; raises Refused."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Refused(RehearsalReason.DURATION_MALFORMED)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
