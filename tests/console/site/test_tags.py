"""Filters of the templates."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from console.site.last_changes import draw_recent
from console.site.tags import grouped, initials
from console.site.times import describe_distance


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ada", "a"), ("ada@example.org", "a"), ("ada.lovelace@x", "al"), ("a-b-c", "ab"), ("@", ""), ("", "")],
)
def test_initials(name, expected):
    assert initials(name) == expected


@pytest.mark.parametrize(
    ("language", "number", "distance"),
    [
        ("en", "1,234,567", "1\xa0month ago"),
        ("tr", "1.234.567", "1\xa0ay önce"),
        ("zh-hans", "1,234,567", "1\xa0个月前"),
    ],
)
def test_numbers_and_distances_as_readers_write_them(language, number, distance):
    now = datetime(2026, 11, 22, tzinfo=UTC)
    with translation.override(language):
        assert grouped(1234567) == number
        assert describe_distance(now - timedelta(days=40), now, past_depth=1) == distance


def test_a_recent_time_has_its_date_on_another_day_only(now):
    yesterday = now - timedelta(days=1)
    assert f">{now:%H:%M:%S}</time>" in draw_recent(now)
    assert f">{yesterday:%Y-%m-%d %H:%M:%S}</time>" in draw_recent(yesterday)
