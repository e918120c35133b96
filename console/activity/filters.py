"""The filter and page of the activity log."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from typing import Final

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from console.activity.presentation import verbs_of
from console.site.log_page import LogQuery, QueryPart, is_one_of, url_field
from storage.activity.activity import ActivityFilter
from storage.core.verbs import Group
from storage.domain.access.actor import ActorKind
from storage.domain.values.numbers import read_number
from storage.entities.subject import EntityVerb
from storage.history.changes import ChangeFilter, Op

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# kinds of changes of entities, beside the groups of verbs
OPS: Final = {"inserts": Op.INSERT, "updates": Op.UPDATE, "deletes": Op.DELETE}
_OP_VERBS: Final = {
    "inserts": (EntityVerb.INSERT,),
    "updates": (EntityVerb.CHANGE,),
    "deletes": (EntityVerb.DELETE,),
}


def parse_moment(text: str, *, is_end: bool = False) -> datetime | None:
    """Parse a time; a date alone means its start, or its end."""
    day = _parse_day(text)
    if day is not None:
        return _start_of(day + timedelta(days=1) if is_end else day)
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    if moment is None or not MINYEAR < moment.year < MAXYEAR:
        return None
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def _parse_day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # at the edges a time zone could lead out of the calendar
    return day if day is not None and MINYEAR < day.year < MAXYEAR else None


def _start_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


@dataclass(frozen=True, slots=True)
class ActivityQuery(LogQuery):
    account: str = url_field()  # only on the log of the whole server
    what: str = url_field(is_one_of({*Group, *OPS}))
    how: str = url_field(is_one_of(set(ActorKind)))
    who: str = url_field()
    table: str = url_field()
    key: str = url_field(has_spaces=True)
    since: str = url_field(
        parse_moment
    )  # a day or a time in the reader's time zone, or a time with an offset
    until: str = url_field(parse_moment)  # a day is included, a time is not
    span: str = url_field(part=QueryPart.VIEW)  # the length of the histogram
    before: str = url_field(read_number, part=QueryPart.PAGE)  # a time in microseconds
    after: str = url_field(read_number, part=QueryPart.PAGE)

    @property
    def kind(self) -> str:
        """Return the kind of entity changes, one of OPS; empty for all."""
        return self.what if self.what in OPS else ""

    @property
    def ops(self) -> tuple[Op, ...]:
        return (OPS[self.what],) if self.what in OPS else ()

    @property
    def selects_changes(self) -> bool:
        """Return whether the filter selects specific changes of entities, as an undo requires."""
        of_entities = self.what in {"", Group.ENTITIES, *OPS}
        return of_entities and any((self.what in OPS, self.how, self.who, self.key, self.since, self.until))

    @property
    def since_moment(self) -> datetime | None:
        return parse_moment(self.since)

    @property
    def until_moment(self) -> datetime | None:
        return parse_moment(self.until, is_end=True)

    def to_filter(self, account_ids: Collection[int] | None) -> ActivityFilter:
        return ActivityFilter(
            account_ids,
            self.account,
            self.who,
            (ActorKind(self.how),) if self.how else (),
            _OP_VERBS.get(self.what) or verbs_of(self.what),
            self.table,
            self.key,
            self.since_moment,
            self.until_moment,
        )

    def to_changes(self) -> ChangeFilter | None:
        """Return the filter for entity changes; None if the query excludes them."""
        if self.what and self.what != Group.ENTITIES and self.what not in OPS:
            return None
        return ChangeFilter(
            table=self.table,
            actor=self.who,
            doors=(ActorKind(self.how),) if self.how else (),
            ops=self.ops,
            key=self.key,
            since=self.since_moment,
            until=self.until_moment,
        )


def read_requests(texts: Collection[str]) -> list[str]:
    """Return the texts that are GUIDs."""
    return [text for text in texts if len(text) == 36 and text.replace("-", "").isalnum() and _is_guid(text)]


def _is_guid(text: str) -> bool:
    try:
        int(text.replace("-", ""), 16)
    except ValueError:
        return False
    return [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]


def write_position(moment: datetime) -> str:
    return str((moment - _EPOCH) // _MICROSECOND)


def read_position(text: str) -> datetime | None:
    number = read_number(text)
    try:
        return None if number is None else _EPOCH + number * _MICROSECOND
    except OverflowError:
        return None


def read_caller(text: str) -> tuple[str, str] | None:
    """Parse an actor such as "key:key1" into kind and name; None if malformed."""
    kind, separator, name = text.partition(":")
    return (kind, name) if separator and kind in set(ActorKind) else None
