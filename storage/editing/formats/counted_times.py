"""Times as numbers: days of spreadsheets, and seconds and milliseconds since 1970."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from storage.domain.values.edm import Edm
from storage.editing.formats.format import Format, NotInFormat


class CountedTime(StrEnum):
    """Units and epochs of times stored as numbers."""

    EXCEL_DAYS = "excel-days"
    EPOCH_SECONDS = "epoch-seconds"
    EPOCH_MILLISECONDS = "epoch-milliseconds"


_DAYS: Final = CountedTime.EXCEL_DAYS
_NUMBER: Final = re.compile(r"(-?[0-9]{1,15})(?:[.,]([0-9]{1,30}))?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Excel counts 29 February 1900, a day that did not exist, as day 60
_EXCEL_EPOCH: Final = datetime(1899, 12, 30, tzinfo=UTC)
_LEAP_DAY: Final = 60
_TICKS: Final = {CountedTime.EPOCH_SECONDS: 10_000_000, CountedTime.EPOCH_MILLISECONDS: 10_000}


@dataclass(frozen=True, slots=True)
class CountedTimeFormat(Format):
    """Format of times stored as numbers, such as Excel's days, which are in the mapping's zone; the others are UTC."""

    counted: CountedTime

    @property
    def spelling(self) -> str:
        return self.counted.value

    @property
    def types(self) -> tuple[Edm, ...]:
        return (Edm.DATETIME,)

    @property
    def singular(self) -> str:
        return f"a number of {_WORDS[self.counted]}" if self.counted is not _DAYS else "an Excel day number"

    @property
    def plural(self) -> str:
        return _WORDS[self.counted]

    def rewrite(self, text: str) -> str:
        number = _NUMBER.fullmatch(text.strip())
        if number is None:
            raise NotInFormat
        try:
            if self.counted is _DAYS:
                return _read_excel_days(number[1], number[2])
            return _read_epoch(Decimal(f"{number[1]}.{number[2] or 0}") * _TICKS[self.counted])
        except OverflowError:  # beyond the calendar
            raise NotInFormat from None


_WORDS: Final = {
    CountedTime.EXCEL_DAYS: "Excel day numbers",
    CountedTime.EPOCH_SECONDS: "seconds since 1970",
    CountedTime.EPOCH_MILLISECONDS: "milliseconds since 1970",
}


def _read_excel_days(days: str, fraction: str | None) -> str:
    number = int(days)
    if number < 1 or number == _LEAP_DAY:
        raise NotInFormat
    milliseconds = round(Decimal(f"0.{fraction or 0}") * 86_400_000)
    day = number if number > _LEAP_DAY else number + 1
    return _write(_EXCEL_EPOCH + timedelta(days=day, milliseconds=milliseconds), milliseconds % 1000 * 10_000)


def _read_epoch(ticks: Decimal) -> str:
    if ticks != int(ticks):
        raise NotInFormat  # more digits than a time has
    seconds, fraction = divmod(int(ticks), 10_000_000)
    return _write(_EPOCH + timedelta(seconds=seconds), fraction) + "Z"


def _write(time: datetime, ticks: int) -> str:
    """Format ticks as a time with the fraction of its second."""
    return time.replace(microsecond=0, tzinfo=None).isoformat() + (f".{ticks:07}" if ticks else "")


def read_counted_time(text: str) -> CountedTimeFormat | None:
    """Parse the name of a counted time format; None if it is unknown."""
    name = _NAMES.get(text.strip().lower())
    return None if name is None else CountedTimeFormat(name)


_NAMES: Final[Mapping[str, CountedTime]] = {
    "excel": CountedTime.EXCEL_DAYS,
    "unix": CountedTime.EPOCH_SECONDS,
    "epoch": CountedTime.EPOCH_SECONDS,
    **{it.value: it for it in CountedTime},
}
