"""Counts over time, in periods of equal length, as histograms show them."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """Counts from one time up to another, by kind, such as requests by outcome."""

    start: datetime
    end: datetime
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()
