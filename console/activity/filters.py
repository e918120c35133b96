"""The filter and page of the activity log as a URL carries them."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from typing import Final

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date

from console.activity.presentation import Group, verbs_of
from storage.operations.activity import ActivityFilter

_LONGEST: Final = 1024  # characters


@dataclass(frozen=True, slots=True)
class LogQuery:
    account: str = ""  # only on the log of the whole server
    what: str = ""  # a Group
    who: str = ""
    table: str = ""
    key: str = ""
    since: str = ""  # a day in the reader's time zone
    until: str = ""  # included
    before: str = ""  # the number of an activity
    after: str = ""

    @property
    def is_filtered(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {"before", "after"})

    def query_string(self, **changed: object) -> str:
        """Include the question mark; any change leaves the current page."""
        page = {"before": "", "after": ""} if changed else {}
        query = QueryDict(mutable=True)
        values = asdict(self) | page | changed
        query.update({name: str(value) for name, value in values.items() if value})
        return f"?{query.urlencode()}" if query else ""

    def to_filter(self, account_ids: Collection[int] | None) -> ActivityFilter:
        until = _parse_day(self.until)
        return ActivityFilter(
            account_ids,
            self.account,
            self.who,
            verbs_of(self.what),
            self.table,
            self.key,
            _start_of(_parse_day(self.since)),
            _start_of(until and until + timedelta(days=1)),
        )


def read_query(data: QueryDict) -> LogQuery:
    """Invalid values are dropped."""
    values = {
        name: data.get(name, "").strip().replace("\0", "")[:_LONGEST] for name in LogQuery.__annotations__
    }
    is_valid = {
        "what": lambda text: text in set(Group),
        "since": _parse_day,
        "until": _parse_day,
        "before": parse_number,
        "after": parse_number,
    }
    for name, check in is_valid.items():
        values[name] = values[name] if check(values[name]) else ""
    # spaces are part of a key
    return LogQuery(**values | {"key": data.get("key", "").replace("\0", "")[:_LONGEST]})


def parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _parse_day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # at the edges a time zone could lead out of the calendar
    return day if day is not None and MINYEAR < day.year < MAXYEAR else None


def _start_of(day: date | None) -> datetime | None:
    return None if day is None else timezone.make_aware(datetime.combine(day, time()))
