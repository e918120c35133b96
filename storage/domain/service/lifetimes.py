"""How long an account lives that is made for a while: it is frozen at its end, and deleted a day later."""

import re
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

PURGE_DELAY: Final = timedelta(hours=24)  # between the end and the deletion
SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=366)

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LIFETIME = re.compile(r"([0-9]{1,6})([mhdw])")


class LifetimeError(ValueError):
    """Why this is no lifetime, as one sentence."""


class AccountStage(Enum):
    """Where an account is in its life."""

    ACTIVE = "active"
    FROZEN = "frozen"  # by hand; it refuses requests, and nothing else happens to it
    EXPIRED = "expired"  # frozen by itself, and about to be deleted


def read_lifetime(text: str) -> timedelta:
    """`90m`, `8h`, `2d` or `1w`; raises LifetimeError."""
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise LifetimeError("A lifetime is a number and m, h, d or w, as 90m, 8h, 2d or 1w.")
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if not SHORTEST <= lifetime <= LONGEST:
        raise LifetimeError("A lifetime is at least one minute (1m) and at most 366 days (366d).")
    return lifetime


def account_stage(*, enabled: bool, frozen_at: datetime | None) -> AccountStage:
    """``frozen_at``: when it was frozen by itself."""
    if frozen_at is not None:
        return AccountStage.EXPIRED
    return AccountStage.ACTIVE if enabled else AccountStage.FROZEN


def purge_time(frozen_at: datetime) -> datetime:
    """When an account is deleted that was frozen by itself; not from its end, for a server may have slept."""
    return frozen_at + PURGE_DELAY
