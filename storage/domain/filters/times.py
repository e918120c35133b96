"""Times said relative to the present, in the place of a DateTime: ``datetime'{{now-24h}}'``."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Self

from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.ticks import ticks

UNITS: Final[Mapping[str, int]] = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
_RELATIVE = re.compile(r"\{\{\s*now\s*(?:([+-])\s*([0-9]{1,4})\s*([mhdw])\s*)?\}\}", re.ASCII)


class RelativeTime(int):
    """The ticks of a DateTime that was said relative to the present, and how: so many ``units`` after it.

    A value like any other to whoever compares; whoever writes the filter says it as it was said.
    """

    amount: int
    unit: str

    @classmethod
    def at(cls, now: datetime, amount: int, unit: str) -> Self:
        found = cls(ticks(now) + amount * UNITS[unit] * TICKS_PER_SECOND)
        found.amount, found.unit = amount, unit
        return found

    @property
    def text(self) -> str:
        return f"{{{{now{self.amount:+}{self.unit}}}}}" if self.amount else "{{now}}"


def read_relative(text: str, now: datetime) -> RelativeTime | None:
    """None for any other text."""
    found = _RELATIVE.fullmatch(text)
    if found is None:
        return None
    sign, amount, unit = found.groups()
    return RelativeTime.at(now, int(f"{sign or ''}{amount or 0}"), unit or "m")
