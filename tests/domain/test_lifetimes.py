"""Lifetimes of accounts."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.core.lifetimes import AccountStage, LifetimeError, account_stage, purge_time, read_lifetime

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_reads():
    lifetimes = {
        "1m": {"minutes": 1},
        "8h": {"hours": 8},
        "366d": {"days": 366},
        "52w": {"weeks": 52},
        "007d": {"days": 7},
    }
    for text, lifetime in lifetimes.items():
        assert read_lifetime(text) == timedelta(**lifetime)
    for text in (
        "", "8", "h", "0m", "367d", "53w", "1.5h", "-1h", "8 h", "8H", "1y", "\u0661h", "9999999m", "1h\n",
    ):  # fmt: skip
        with pytest.raises(LifetimeError):
            read_lifetime(text)


def test_stages():
    assert account_stage(enabled=True, frozen_at=None) is AccountStage.ACTIVE
    assert account_stage(enabled=False, frozen_at=None) is AccountStage.FROZEN
    assert account_stage(enabled=False, frozen_at=NOON) is AccountStage.EXPIRED
    assert purge_time(NOON) == NOON + timedelta(days=1)
