"""Histograms of counts over time, on which a range can be selected."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from console.site.times import to_local, write_local_time
from storage.domain.values.time_buckets import TimeBucket

_STEP: Final = 10  # the width of a bar and its gap
_LEAST: Final = 2  # the height of the smallest count, which can still be seen


@dataclass(frozen=True, slots=True)
class BarPart:
    """Part of a bar for one kind, whose name is the CSS class."""

    kind: str
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """Bar of a histogram; coordinates are from the top left, ``since`` and ``until`` for an address."""

    bucket: TimeBucket
    x: int
    parts: Sequence[BarPart]
    since: str
    until: str
    title: str
    address: str  # where only this bucket is shown, or empty
    is_selected: bool


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of a log."""

    label: str
    height: int
    bars: Sequence[HistogramBar]
    ticks: Sequence[str]  # the texts of the time axis, at equal distances

    @property
    def width(self) -> int:
        return _STEP * len(self.bars)

    @property
    def total(self) -> int:
        return sum(bar.bucket.total for bar in self.bars)


def draw_histogram(
    label: str,
    buckets: Sequence[TimeBucket],
    title: Callable[[TimeBucket], str],
    *,
    kinds: Sequence[str] = ("changes",),
    height: int,
    headroom: int = 0,
    write_time: Callable[[datetime], str] = write_local_time,
    address: Callable[[TimeBucket], str] = lambda _bucket: "",
    selected: tuple[datetime | None, datetime | None] = (None, None),
    ticks: Sequence[str] = (),
) -> Histogram:
    """Render a bar per bucket, with kinds stacked."""
    highest = max((it.total for it in buckets), default=0) or 1
    since, until = selected
    bars = [
        HistogramBar(
            bucket,
            place * _STEP,
            list(_draw_parts(bucket, kinds, highest, height, headroom)),
            write_time(bucket.start),
            write_time(bucket.end),
            title(bucket),
            address(bucket),
            (since is not None or until is not None)
            and (since is None or bucket.end > since)
            and (until is None or bucket.start < until),
        )
        for place, bucket in enumerate(buckets)
    ]
    return Histogram(label, height, bars, ticks)


def _draw_parts(
    bucket: TimeBucket, kinds: Sequence[str], highest: int, height: int, headroom: int
) -> Iterator[BarPart]:
    """Scale the parts of a bar, each at least visibly high."""
    most = height - headroom
    numbers = {kind: bucket.counts[kind] for kind in kinds}
    heights = {
        kind: max(_LEAST, round(most * number / highest)) for kind, number in numbers.items() if number
    }
    excess = sum(heights.values()) - most
    if excess > 0:
        largest = max(heights, key=lambda it: heights[it])
        heights[largest] -= excess
    y = height
    for kind, part in heights.items():
        y -= part
        yield BarPart(kind, y, part)


def write_ticks(times: Sequence[datetime], *, with_day: bool, end: str = "") -> list[str]:
    """Format the labels of a time axis; ``end`` is appended, such as "Now"."""
    format_ = "%m-%d %H:%M" if with_day else "%H:%M"
    texts = [to_local(it).strftime(format_) for it in times]
    return [*texts, end] if end else texts
