"""The filter and page of the request log."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.log_page import LogQuery, QueryPart, is_one_of, url_field
from console.site.times import read_local_time
from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.values.numbers import read_number
from storage.metrics.reports import LONGEST
from storage.requests.requests import RequestClass, RequestFilter, read_identifier

SPANS: Final[Mapping[str, tuple[timedelta, Promise]]] = {
    "hour": (timedelta(hours=1), _("Last hour")),
    "day": (timedelta(days=1), _("Last 24 hours")),
    "week": (timedelta(days=7), _("Last 7 days")),
}
ALL: Final = "all"
KINDS: Final[Mapping[str, Promise]] = {
    RequestClass.PROBLEM: _("Needs attention"),  # any of the next four
    RequestClass.REFUSED: _("Refused"),
    RequestClass.FAILED: _("Failed"),
    RequestClass.SLOW: _("Slow"),
    RequestClass.WARNED: _("Not on Azure"),
    RequestClass.REHEARSED: _("Rehearsed"),
    ALL: _("All"),
}
DURATIONS: Final = ("10", "100", "500", "1000", "5000")  # milliseconds


@dataclass(frozen=True, slots=True)
class RequestQuery(LogQuery):
    span: str = url_field(is_one_of(SPANS), part=QueryPart.VIEW)
    since: str = url_field(
        read_local_time
    )  # in the reader's time zone, or with an offset; in place of a span
    until: str = url_field(read_local_time)
    kind: str = url_field(is_one_of(KINDS), part=QueryPart.VIEW)
    status: str = url_field(lambda text: (read_number(text) or 0) < 600)
    code: str = url_field()
    operation: str = url_field(is_one_of(set(Operation)))
    table: str = url_field()
    how: str = url_field(is_one_of(set(Authentication)))
    credential: str = url_field()
    path: str = url_field(is_one_of(set(AccessPath)))
    ms: str = url_field(lambda text: (number := read_number(text)) is not None and number < 10**9)  # at least
    client: str = url_field()
    id: str = url_field()
    q: str = url_field()  # an id, also in a text, or a client
    before: str = url_field(read_number, part=QueryPart.PAGE)  # the id of a request
    live: str = url_field(part=QueryPart.VIEW)
    open: str = url_field(
        part=QueryPart.PAGE
    )  # the x-ms-request-id of the request that is shown beside the list

    def with_kind(self) -> Self:
        """Return the query with the kind that a page shows: what needs attention, unless a condition is given."""
        return replace(self, kind=self.kind or (ALL if self.is_filtered else RequestClass.PROBLEM))

    @property
    def has_rare_conditions(self) -> bool:
        return bool(self.operation or self.table or self.code or self.path or self.ms)

    @property
    def is_for_one(self) -> bool:
        """Return whether the query searches for a request id, at any time."""
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

    def to_filter(self, account_id: int, now: datetime) -> RequestFilter:
        """Convert to a filter of the request log; a search by id ignores the period."""
        since, until = self.period(now)
        return RequestFilter(
            [account_id],
            kind=None if self.is_for_one or self.kind in ("", ALL) else RequestClass(self.kind),
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
            min_seconds=(read_number(self.ms) or 0) / 1000,
            since=None if self.is_for_one else since,
            until=until if self.has_range and not self.is_for_one else None,
        )


def read_query(data: QueryDict, now: datetime) -> RequestQuery:
    """Parse a query, dropping a range outside the retention period."""
    query = RequestQuery.read(data)
    since, until = query.period(now)
    is_past = now - LONGEST <= since < min(until, now)
    return query if is_past else replace(query, since="", until="")
