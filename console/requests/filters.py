"""The filter and page of the request log as a URL carries them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.domain.access.grants import Operation
from storage.domain.requests.observed import Authentication
from storage.domain.values.numbers import read_number
from storage.operations.requests.requests import RequestClass, RequestFilter

_LONGEST: Final = 256  # characters

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


@dataclass(frozen=True, slots=True)
class LogQuery:
    span: str = ""
    kind: str = ""
    code: str = ""
    operation: str = ""
    table: str = ""
    how: str = ""  # an Authentication
    credential: str = ""
    client: str = ""
    id: str = ""
    before: str = ""  # the id of a request
    live: str = ""

    @property
    def is_filtered(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in {"before", "live", "span"})

    @property
    def span_shown(self) -> str:
        return self.span or "day"

    @property
    def length(self) -> timedelta:
        return SPANS[self.span_shown][0]

    def query_string(self, **changed: object) -> str:
        """Include the question mark; any change leaves the current page."""
        query = QueryDict(mutable=True)
        values = asdict(self) | {"before": ""} | changed
        query.update({name: str(value) for name, value in values.items() if value})
        return f"?{query.urlencode()}" if query else "?"

    def to_filter(self, account_id: int, now: datetime) -> RequestFilter:
        """An id is looked for at any time."""
        return RequestFilter(
            [account_id],
            kind=RequestClass(self.kind) if self.kind else None,
            code=self.code,
            operation=Operation(self.operation) if self.operation else None,
            table=self.table,
            authentication=Authentication(self.how) if self.how else None,
            credential=self.credential,
            client=self.client,
            identifier=self.id,
            since=None if self.id else now - self.length,
        )


def read_query(data: QueryDict) -> LogQuery:
    """Invalid values are dropped."""
    values = {
        name: data.get(name, "").strip().replace("\0", "")[:_LONGEST] for name in LogQuery.__annotations__
    }
    is_valid = {
        "span": values["span"] in SPANS,
        "kind": values["kind"] in set(RequestClass),
        "operation": values["operation"] in set(Operation),
        "how": values["how"] in set(Authentication),
        "before": read_number(values["before"]) is not None,
    }
    return LogQuery(**{name: value if is_valid.get(name, True) else "" for name, value in values.items()})
