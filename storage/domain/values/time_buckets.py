"""Counts over time in periods of equal length, as shown in histograms."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """Counts by kind, such as requests by outcome, in one period."""

    start: datetime
    end: datetime
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()
