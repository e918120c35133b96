"""Typed times: ISO 8601, or relative to now."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from storage.domain.errors import OutOfRangeInput, StorageError
from storage.domain.values import edm
from storage.domain.values.edm import FIRST_TICKS, Edm
from storage.domain.values.ticks import to_ticks
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText, TextFault

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_AGO = re.compile(r"(?:now)?\s*([+-])\s*(\d{1,7})\s*([smhdw])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}


def read(text: str, context: InputContext) -> int:
    now, first = context.now, FIRST_TICKS[context.kind]
    word = text.strip().lower()
    if word in _DAYS:
        day = now.date() + timedelta(_DAYS[word])
        return _read_iso(day.isoformat(), now, first)
    if word == "now":
        return to_ticks(now)
    if ago := _AGO.fullmatch(word):
        length = timedelta(**{_UNITS[ago[3]]: int(ago[2])}) // timedelta(microseconds=1) * 10
        return _in_range(to_ticks(now) + (length if ago[1] == "+" else -length), first)
    return _read_iso(text.strip(), now, first)


def write(ticks: int, zone: tzinfo) -> str:
    """Format a time in a zone with its offset, or in UTC if ``read`` would not accept that."""
    seconds, fraction = divmod(ticks, edm.TICKS_PER_SECOND)
    try:
        local = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    except (OverflowError, ValueError):  # at the end of the calendar
        return edm.write_datetime(ticks)
    offset = local.utcoffset()
    if not offset or offset.seconds % 60 or local.year < 1601:
        return edm.write_datetime(ticks)
    digits = f".{fraction:07}".rstrip("0") if fraction else ""
    whole = local.isoformat(" ")
    return f"{whole[:-6]}{digits}{whole[-6:]}"


def _read_iso(text: str, now: datetime, first: int) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise InvalidText(TextFault.NOT_DATETIME, Edm.STRING)
    day, hour, minute, second, fraction, zone = match.groups()
    if fraction and len(fraction.rstrip("0")) > 7:
        raise InvalidText(TextFault.TOO_PRECISE)
    clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}"
    try:
        utc = edm.read_datetime(f"{day}T{clock}.{fraction or 0}Z", first)
        seconds = edm.zone_offset(zone) if zone else _offset_there(f"{day}T{clock}", now)
    except OutOfRangeInput:
        raise _out_of_range(first) from None
    except StorageError:
        raise InvalidText(TextFault.NO_SUCH_TIME) from None
    return _in_range(utc - seconds * edm.TICKS_PER_SECOND, first)


def _offset_there(clock: str, now: datetime) -> int:
    offset = datetime.fromisoformat(clock).replace(tzinfo=now.tzinfo).utcoffset()
    return round((offset or timedelta()).total_seconds())


def _in_range(value: int, first: int) -> int:
    try:
        edm.read_datetime(edm.write_datetime(value), first)
    except (StorageError, OverflowError):
        raise _out_of_range(first) from None
    return value


def _out_of_range(first: int) -> InvalidText:
    return InvalidText(TextFault.OUT_OF_RANGE, first_year=edm.first_year(first))
