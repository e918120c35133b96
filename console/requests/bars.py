"""The bars of the requests over time, by outcome, one on top of the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from console.requests.filters import LogQuery
from console.site.times import write_local_time
from storage.domain.requests.outcomes import Outcome
from storage.operations.requests.timeline import Bucket

HEIGHT: Final = 48
STEP: Final = 10  # the width of a bar and its gap
_ORDER: Final = (Outcome.DONE, Outcome.REFUSED, Outcome.FAILED)  # from the bottom


@dataclass(frozen=True, slots=True)
class Part:
    outcome: Outcome
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Bar:
    """``x`` and the ``y`` of its parts are from the top left; ``since`` and ``until`` are for an address."""

    bucket: Bucket
    x: int
    parts: Sequence[Part]
    since: str
    until: str
    address: str


def draw_bars(buckets: Sequence[Bucket], query: LogQuery) -> list[Bar]:
    highest = max((it.requests for it in buckets), default=0) or 1
    bars = []
    for place, bucket in enumerate(buckets):
        since, until = write_local_time(bucket.start), write_local_time(bucket.end)
        address = query.query_string(span="", since=since, until=until, live="")
        bars.append(Bar(bucket, place * STEP, list(_parts(bucket, highest)), since, until, address))
    return bars


def _parts(bucket: Bucket, highest: int) -> Iterator[Part]:
    """Draw the outcomes to scale, each at least so high that it can be seen."""
    numbers = {outcome: getattr(bucket, outcome.value) for outcome in _ORDER}
    heights = {
        outcome: max(2, round(HEIGHT * number / highest)) for outcome, number in numbers.items() if number
    }
    excess = sum(heights.values()) - HEIGHT
    if excess > 0:
        largest = max(heights, key=lambda it: heights[it])
        heights[largest] -= excess
    y = HEIGHT
    for outcome, height in heights.items():
        y -= height
        yield Part(outcome, y, height)
