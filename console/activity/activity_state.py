"""What the address of an activity page says: which activities are wanted, and from which on."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from typing import Final

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.domain.service.activity import Verb
from storage.operations.activity import ActivityFilter

GROUPS: Final[Mapping[str, tuple[Promise, tuple[str, ...]]]] = {
    "entities": (_("Entities"), ("entity",)),
    "tables": (_("Tables"), ("table",)),
    "queries": (_("Saved queries"), ("query",)),
    "access": (_("Policies and keys"), ("policies", "sas", "key", "api-token")),
    "settings": (_("Account and service"), ("account", "properties")),
    "people": (_("People"), ("user", "member")),
}
_LONGEST: Final = 1024  # characters


@dataclass(frozen=True, slots=True)
class State:
    account: str = ""  # of the whole server
    what: str = ""  # of GROUPS
    who: str = ""
    table: str = ""
    key: str = ""
    since: str = ""  # days in the reader's zone
    until: str = ""  # the last of them
    before: str = ""
    after: str = ""

    @property
    def is_filtered(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {"before", "after"})

    def query(self, **changed: object) -> str:
        """With its question mark; a page that is asked for stands alone."""
        place = {"before": "", "after": ""} if changed else {}
        query = QueryDict(mutable=True)
        values = asdict(self) | place | changed
        query.update({name: str(value) for name, value in values.items() if value})
        return f"?{query.urlencode()}" if query else ""

    def wanted(self, account_ids: Collection[int] | None) -> ActivityFilter:
        until = _day(self.until)
        return ActivityFilter(
            account_ids,
            self.account,
            self.who,
            _verbs(self.what),
            self.table,
            self.key,
            _start(_day(self.since)),
            _start(until and until + timedelta(days=1)),
        )


def read(data: QueryDict) -> State:
    values = {name: data.get(name, "").strip().replace("\0", "")[:_LONGEST] for name in State.__annotations__}
    if values["what"] not in GROUPS:
        values["what"] = ""
    for name in ("since", "until"):
        values[name] = values[name] if _day(values[name]) else ""
    for name in ("before", "after"):
        values[name] = values[name] if number(values[name]) else ""
    # a key is looked for as it is, with its spaces
    return State(**values | {"key": data.get("key", "").replace("\0", "")[:_LONGEST]})


def number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _verbs(what: str) -> tuple[Verb, ...]:
    if not what:
        return ()
    kinds = GROUPS[what][1]
    return tuple(verb for verb in Verb if verb.partition(".")[0] in kinds)


def _day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # beyond them a zone may lead out of the calendar
    return day if day is not None and MINYEAR < day.year < MAXYEAR else None


def _start(day: date | None) -> datetime | None:
    if day is None:
        return None
    return timezone.make_aware(datetime.combine(day, time()))
