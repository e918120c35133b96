"""How long accounts live."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.service.lifetimes import (
    AccountStage,
    LifetimeError,
    account_stage,
    purge_time,
    read_lifetime,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [
        ("1m", timedelta(minutes=1)),
        ("90m", timedelta(minutes=90)),
        ("8h", timedelta(hours=8)),
        ("366d", timedelta(days=366)),
        ("52w", timedelta(weeks=52)),
        ("007d", timedelta(days=7)),
    ],
)
def test_reads(text, lifetime):
    assert read_lifetime(text) == lifetime


@pytest.mark.parametrize(
    "text",
    [
        "", "8", "h", "0m", "0w", "367d", "53w", "1.5h", "-1h", "8 h", "8H", "1y", "\u0661h", "9999999m",
        "1h\n",
    ],
)  # fmt: skip
def test_refuses(text):
    with pytest.raises(LifetimeError):
        read_lifetime(text)


def test_stages():
    assert account_stage(enabled=True, frozen_at=None) is AccountStage.ACTIVE
    assert account_stage(enabled=False, frozen_at=None) is AccountStage.FROZEN
    assert account_stage(enabled=False, frozen_at=NOON) is AccountStage.EXPIRED
    assert purge_time(NOON) == NOON + timedelta(days=1)
