"""Points in time as users write them: ISO 8601 in UTC, `10 minutes ago`, `latest`."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from storage.server.refusal import Refusal

LATEST: Final = "latest"
_UNITS: Final = {
    "s": timedelta(seconds=1), "second": timedelta(seconds=1), "m": timedelta(minutes=1),
    "min": timedelta(minutes=1), "minute": timedelta(minutes=1), "h": timedelta(hours=1), "hour": timedelta(hours=1),
    "d": timedelta(days=1), "day": timedelta(days=1),
}  # fmt: skip
_AGO: Final = re.compile(r"(\d{1,6}) ?([a-z]+?)s? ago")


def parse(text: str, now: datetime) -> datetime | None:
    """Parse a point in time, None for the latest; raises Refusal if it is invalid or in the future."""
    if text == LATEST:
        return None
    if (match := _AGO.fullmatch(text.strip().lower())) and match[2] in _UNITS:
        return now - int(match[1]) * _UNITS[match[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refusal(
            f"{text!r} is not a time; write it in UTC as 2026-11-26T08:30:00Z, or as '10 minutes ago', or latest."
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if moment > now:
        raise Refusal(f"{moment:%Y-%m-%dT%H:%M:%SZ} is in the future; it is {now:%Y-%m-%dT%H:%M:%SZ}.")
    return moment
