"""Instants as a DateTime stores them: 100 ns ticks since 1970, and Python's datetimes."""

from datetime import UTC, datetime, timedelta


def to_ticks(moment: datetime) -> int:
    """An instant as DateTime keeps it."""
    naive = moment.replace(tzinfo=None) - datetime(1970, 1, 1)  # noqa: DTZ001
    return (naive - (moment.utcoffset() or timedelta())) // timedelta(microseconds=1) * 10


def to_datetime(ticks: int) -> datetime:
    """A DateTime as Python has it, which keeps six of its digits."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
