"""A curve without axes, as an SVG: how something went over a while."""

from collections.abc import Sequence
from typing import Final

WIDTH: Final = 120
HEIGHT: Final = 28
_MARGIN: Final = 2  # so that the stroke is not cut


def points(values: Sequence[int]) -> str:
    """Corners of a polyline from left to right; all at the bottom when there is nothing."""
    top = max(values, default=0) or 1
    step = (WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    usable = HEIGHT - 2 * _MARGIN
    return " ".join(
        f"{_MARGIN + place * step:.1f},{HEIGHT - _MARGIN - value / top * usable:.1f}"
        for place, value in enumerate(values)
    )
