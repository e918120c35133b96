"""Histograms: heights of bars, the selected range, the axis, and how they are drawn."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from console.site.histogram import draw_histogram, write_ticks
from storage.domain.values.time_buckets import TimeBucket

START = datetime(2026, 11, 29, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KINDS = ("done", "failed")


def draw(*counts, height=40, **options):
    """Draw a histogram with a bar of one minute for each pair of numbers."""
    buckets = [
        TimeBucket(
            START + place * MINUTE, START + (place + 1) * MINUTE, Counter(dict(zip(KINDS, pair, strict=True)))
        )
        for place, pair in enumerate(counts)
    ]
    return draw_histogram(
        "Bars", buckets, lambda it: f"{it.total} in all", kinds=KINDS, height=height, **options
    )


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ((10, 0), [("done", 0, 40)]),
        ((5, 5), [("done", 20, 20), ("failed", 0, 20)]),
        ((1000, 1), [("done", 2, 38), ("failed", 0, 2)]),
        ((0, 0), []),
    ],
)
def test_the_kinds_of_the_highest_bar_fill_the_height(counts, parts):
    [bar] = draw(counts).bars
    assert [(it.kind, it.y, it.height) for it in bar.parts] == parts


def test_bars_are_to_scale_but_the_smallest_can_be_seen():
    heights = [sum(part.height for part in bar.parts) for bar in draw((100, 0), (50, 0), (1, 0), (0, 0)).bars]
    assert heights == [40, 20, 2, 0]
    [highest, half] = draw((100, 0), (50, 0), height=44, headroom=4).bars
    assert [(bar.parts[0].y, bar.parts[0].height) for bar in (highest, half)] == [(4, 40), (24, 20)]


@pytest.mark.parametrize(
    ("since", "until", "places"),
    [
        (None, None, []),
        (START + MINUTE, None, [1, 2]),
        (None, START + MINUTE, [0]),
        (START + MINUTE / 2, START + MINUTE * 3 / 2, [0, 1]),
        (START + 5 * MINUTE, None, []),
    ],
)
def test_a_bar_is_selected_if_a_part_of_it_is_in_the_range(since, until, places):
    bars = draw((1, 0), (1, 0), (1, 0), selected=(since, until)).bars
    assert [place for place, bar in enumerate(bars) if bar.is_selected] == places


def test_times_are_in_the_time_zone_of_the_reader():
    with timezone.override("Europe/Istanbul"):
        [bar] = draw((3, 0)).bars
        assert (bar.since, bar.until) == ("2026-11-29T13:00:00", "2026-11-29T13:01:00")
        assert bar.title == "3 in all"
        assert write_ticks([START], with_day=False, end="Now") == ["13:00", "Now"]
        assert write_ticks([START], with_day=True) == ["11-29 13:00"]


def test_the_drawing_is_a_slider_over_its_bars():
    chart = draw((1000, 500), (0, 0), selected=(None, START + MINUTE), ticks=["10:00", "Now"])
    chart = replace(chart, label="Requests <over time>")
    drawn = " ".join(render_to_string("components/histogram.html", {"chart": chart, "hint": "why"}).split())
    assert (chart.width, chart.total) == (20, 1500)
    assert (
        'viewBox="0 0 20 40"' in drawn and 'aria-valuemax="2"' in drawn and 'aria-describedby="why"' in drawn
    )
    assert 'aria-label="Requests &lt;over time&gt;"' in drawn
    assert drawn.count('class="selected"') == 1 and drawn.count('class="hit"') == 2
    assert 'data-number="1,500"' in drawn and 'class="failed" x="0" y="0" width="8" height="13"' in drawn
    assert "<span>10:00</span><span>Now</span>" in drawn
    without = render_to_string("components/histogram.html", {"chart": draw(), "hint": ""})
    assert "<svg" not in without
