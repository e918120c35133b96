"""The time zone in which a request shows times."""

import zoneinfo
from typing import Final

from django.http import HttpRequest

COOKIE: Final = "tablero_zone"  # the zone of the browser, written by JavaScript
# what users had before the browser's zone was known, and what those have who chose UTC since
FORMER_DEFAULT: Final = "UTC"
UTC: Final = "Etc/UTC"


def find_zone(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """Return the zone that the user chose, or else that of the browser; None if this machine does not know it."""
    return _find(getattr(request.user, "time_zone", "") or request.COOKIES.get(COOKIE, ""))


def offered_zone(request: HttpRequest) -> str:
    """Name the zone of the browser to users who still have the former default; empty for all others."""
    # a request that fails early has no user yet
    if getattr(getattr(request, "user", None), "time_zone", "") != FORMER_DEFAULT:
        return ""
    zone = _find(request.COOKIES.get(COOKIE, ""))
    return "" if zone is None or zone.key in {FORMER_DEFAULT, UTC} else zone.key


def _find(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
