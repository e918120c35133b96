"""Lifetimes of temporary accounts, which are frozen when they expire and deleted a day later."""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from storage.domain.refusals import Reason, Refused

PURGE_DELAY: Final = timedelta(hours=24)  # between freezing and deletion
SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=366)

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LIFETIME = re.compile(r"([0-9]{1,6})([mhdw])")


class LifetimeError(Refused, ValueError):
    """Reason why a lifetime is invalid."""


class AccountStage(StrEnum):
    """The state of an account."""

    ACTIVE = "active"
    FROZEN = "frozen"  # by a person; it refuses requests
    EXPIRED = "expired"  # frozen at the end of its lifetime, and about to be deleted


def read_lifetime(text: str) -> timedelta:
    """Parse a lifetime such as `90m`, `8h`, `2d` or `1w`; raises LifetimeError."""
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise LifetimeError(Reason.LIFETIME_MALFORMED)
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if not SHORTEST <= lifetime <= LONGEST:
        raise LifetimeError(Reason.LIFETIME)
    return lifetime


def account_stage(*, enabled: bool, frozen_at: datetime | None) -> AccountStage:
    """Return the state; ``frozen_at`` is when the account expired."""
    if frozen_at is not None:
        return AccountStage.EXPIRED
    return AccountStage.ACTIVE if enabled else AccountStage.FROZEN


def purge_time(frozen_at: datetime) -> datetime:
    """Return when an expired account is deleted, counted from its freezing, as the server may have been off."""
    return frozen_at + PURGE_DELAY
