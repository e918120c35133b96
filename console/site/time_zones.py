"""Time zone of a request."""

import zoneinfo
from typing import Final

from django.http import HttpRequest
from django.utils import timezone

COOKIE: Final = "tablero_zone"  # the zone of the browser, written by JavaScript
HEADER: Final = "X-Tablero-Zone"  # the zone of the page that sends the request
# the stored value from before the browser's zone was known; users who chose UTC since have it too
FORMER_DEFAULT: Final = "UTC"
UTC: Final = "Etc/UTC"


def find_zone(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """Return the time zone of the page, the user or the browser; None if it is unknown here."""
    usual = _chosen_zone(request) or request.COOKIES.get(COOKIE, "")
    return zone_named(request.headers.get(HEADER, "")) or zone_named(usual)


def names() -> list[str]:
    """Return selectable zone names, UTC first."""
    return [UTC, *sorted(name for name in zoneinfo.available_timezones() if "/" in name and name != UTC)]


def page_zone() -> str:
    """Return the name of the page's zone."""
    return getattr(timezone.get_current_timezone(), "key", FORMER_DEFAULT)


def follows_browser(request: HttpRequest) -> bool:
    """Return whether the page must be redrawn if the browser's zone differs."""
    user = getattr(request, "user", None)  # a request that fails early has no user yet
    return (
        request.method == "GET" and user is not None and user.is_authenticated and not _chosen_zone(request)
    )


def _chosen_zone(request: HttpRequest) -> str:
    return getattr(getattr(request, "user", None), "time_zone", "")


def offered_zone(request: HttpRequest) -> str:
    """Return the browser's zone to offer to users with the former default; empty for others."""
    if _chosen_zone(request) != FORMER_DEFAULT:
        return ""
    zone = zone_named(request.COOKIES.get(COOKIE, ""))
    return "" if zone is None or zone.key in {FORMER_DEFAULT, UTC} else zone.key


def zone_named(name: str) -> zoneinfo.ZoneInfo | None:
    """Return a time zone by name; None if it is unknown here."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
