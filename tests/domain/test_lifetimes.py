"""How long accounts live."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.service.lifetimes import LifetimeError, Stage, purged_at, read, stage

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
    assert read(text) == lifetime


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8",
        "h",
        "0m",
        "0w",
        "367d",
        "53w",
        "1.5h",
        "-1h",
        "8 h",
        "8H",
        "1y",
        "\u0661h",
        "9999999m",
        "1h\n",
    ],
)
def test_refuses(text):
    with pytest.raises(LifetimeError):
        read(text)


def test_stages():
    assert stage(enabled=True, frozen_at=None) is Stage.ACTIVE
    assert stage(enabled=False, frozen_at=None) is Stage.FROZEN
    assert stage(enabled=False, frozen_at=NOON) is Stage.EXPIRED
    assert purged_at(NOON) == NOON + timedelta(days=1)
