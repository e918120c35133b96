"""The filter and page of the request log as a URL carries them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.times import read_local_time
from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.values.numbers import read_number
from storage.operations.counting.reports import LONGEST
from storage.operations.requests.requests import RequestClass, RequestFilter, read_identifier

_LONGEST: Final = 256  # characters
_LONGEST_SEARCH: Final = 2048  # the message of an exception

SPANS: Final[Mapping[str, tuple[timedelta, Promise]]] = {
    "hour": (timedelta(hours=1), _("Last hour")),
    "day": (timedelta(days=1), _("Last 24 hours")),
    "week": (timedelta(days=7), _("Last 7 days")),
}
KINDS: Final[Mapping[RequestClass, Promise]] = {
    RequestClass.PROBLEM: _("Refused, failed or slow"),
    RequestClass.REFUSED: _("Refused"),
    RequestClass.FAILED: _("Failed"),
    RequestClass.SLOW: _("Slow"),
}
DURATIONS: Final = ("10", "100", "500", "1000", "5000")  # milliseconds
_OF_PAGE: Final = frozenset({"before", "live", "open"})


@dataclass(frozen=True, slots=True)
class LogQuery:
    span: str = ""
    since: str = ""  # a time in the reader's time zone, or with an offset; in place of a span
    until: str = ""
    kind: str = ""
    status: str = ""
    code: str = ""
    operation: str = ""
    table: str = ""
    how: str = ""  # an Authentication
    credential: str = ""
    path: str = ""  # an AccessPath
    ms: str = ""  # at least so many
    client: str = ""
    id: str = ""
    q: str = ""  # an id, also in a text, or a client
    before: str = ""  # the id of a request
    live: str = ""
    open: str = ""  # the x-ms-request-id of the request that is shown beside the list

    @property
    def is_filtered(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {*_OF_PAGE, "span"})

    @property
    def is_for_one(self) -> bool:
        """Whether it looks for an id, at any time."""
        return bool(self.id or read_identifier(self.q))

    @property
    def has_range(self) -> bool:
        return bool(self.since)

    @property
    def span_shown(self) -> str:
        return "" if self.has_range else self.span or "day"

    def period(self, now: datetime) -> tuple[datetime, datetime]:
        since = read_local_time(self.since)
        if since is None:
            return now - SPANS[self.span_shown][0], now
        return since, read_local_time(self.until) or now

    def query_string(self, **changed: object) -> str:
        """Include the question mark; any change leaves the current page."""
        query = QueryDict(mutable=True)
        values = asdict(self) | {"before": "", "open": ""} | changed
        query.update({name: str(value) for name, value in values.items() if value})
        return f"?{query.urlencode()}" if query else "?"

    def to_filter(self, account_id: int, now: datetime) -> RequestFilter:
        """An id is looked for at any time."""
        since, until = self.period(now)
        return RequestFilter(
            [account_id],
            kind=RequestClass(self.kind) if self.kind else None,
            status=read_number(self.status),
            code=self.code,
            operation=Operation(self.operation) if self.operation else None,
            table=self.table,
            authentication=Authentication(self.how) if self.how else None,
            credential=self.credential,
            access_path=AccessPath(self.path) if self.path else None,
            client=self.client,
            identifier=self.id,
            search=self.q,
            slowest=(read_number(self.ms) or 0) / 1000,
            since=None if self.is_for_one else since,
            until=until if self.has_range and not self.is_for_one else None,
        )


def read_query(data: QueryDict, now: datetime) -> LogQuery:
    """Invalid values are dropped."""
    values = {
        name: data.get(name, "").strip().replace("\0", "")[: _LONGEST_SEARCH if name == "q" else _LONGEST]
        for name in LogQuery.__annotations__
    }
    is_valid: dict[str, Callable[[str], object]] = {
        "span": lambda text: text in SPANS,
        "since": read_local_time,
        "until": read_local_time,
        "kind": lambda text: text in set(RequestClass),
        "status": lambda text: (read_number(text) or 0) < 600,
        "operation": lambda text: text in set(Operation),
        "how": lambda text: text in set(Authentication),
        "path": lambda text: text in set(AccessPath),
        "ms": lambda text: (number := read_number(text)) is not None and number < 10**9,
        "before": lambda text: read_number(text) is not None,
    }
    query = LogQuery(
        **{
            name: value if not value or is_valid.get(name, bool)(value) else ""
            for name, value in values.items()
        }
    )
    since, until = query.period(now)
    is_past = now - LONGEST <= since < min(until, now)
    return query if is_past else replace(query, since="", until="")
