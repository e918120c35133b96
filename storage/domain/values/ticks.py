"""Conversions between datetimes and ticks, the 100 ns units since 1970 that a DateTime stores."""

from datetime import UTC, datetime, timedelta


def to_ticks(moment: datetime) -> int:
    """Convert a datetime to ticks."""
    naive = moment.replace(tzinfo=None) - datetime(1970, 1, 1)  # noqa: DTZ001
    return (naive - (moment.utcoffset() or timedelta())) // timedelta(microseconds=1) * 10


def to_datetime(ticks: int) -> datetime:
    """Convert ticks to a datetime, losing the seventh fraction digit."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)


def to_second(ticks: int) -> datetime | None:
    """Convert ticks to a datetime in full seconds; None beyond Python's range of years."""
    try:
        return to_datetime(ticks).replace(microsecond=0)
    except OverflowError:
        return None
