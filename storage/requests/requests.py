"""Queries of the request log."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Case, CharField, OuterRef, Q, QuerySet, Subquery, Value, When

from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.models import Account, PropertyIndex, RecordedRequest, RegisteredSas
from storage.sql.django import limited
from storage.tables import tables

_BATCH: Final = 500
TIMEOUT: Final = timedelta(seconds=10)
_ID: Final = re.compile(r"(?<![\w-])([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])", re.IGNORECASE)
_NAMED_ID: Final = re.compile(r"(?:Request ?Id|x-ms-request-id)\W{1,5}" + _ID.pattern, re.IGNORECASE)

# annotates requests with the label of their SAS token
SAS_LABEL: Final = Case(
    When(
        authentication=Authentication.SAS,
        then=Subquery(
            RegisteredSas.objects.filter(
                account=OuterRef("account_id"), fingerprint=OuterRef("credential")
            ).values("label")[:1]
        ),
    ),
    default=Value(None),
    output_field=CharField(),
)

_REHEARSED_FAILURE: Final = Q(fault__contains={"rehearsed": {"failure": True}})


class RequestClass(StrEnum):
    """Class of requests to select."""

    PROBLEM = "problem"  # any of the next four, except for rehearsed failures
    REFUSED = "refused"
    FAILED = "failed"
    SLOW = "slow"
    WARNED = "warned"  # served, but Azure would refuse it
    REHEARSED = "rehearsed"  # by the rules of a rehearsal


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Conditions on requests; an empty one matches all.

    ``search`` is any of ``identifier`` and ``client``, or a text that contains an id, as the message of an
    exception does.
    """

    account_ids: Collection[int] | None = None
    kind: RequestClass | None = None
    status: int | None = None
    code: str = ""
    operation: Operation | None = None
    table: str = ""
    authentication: Authentication | None = None
    credential: str = ""
    access_path: AccessPath | None = None
    client: str = ""  # the beginning of an address or of a user agent
    identifier: str = ""  # an x-ms-request-id or an x-ms-client-request-id
    search: str = ""
    min_seconds: float = 0.0
    since: datetime | None = None
    until: datetime | None = None  # exclusive


def is_slow(request: RecordedRequest) -> bool:
    slow: float = settings.REQUEST_LOG.slow
    return request.seconds >= slow


def is_rehearsed_failure(request: RecordedRequest) -> bool:
    """Return whether a rehearsal made a request fail."""
    rehearsed = (request.fault or {}).get("rehearsed")
    return rehearsed is not None and bool(rehearsed["failure"])


def _of_kind(kind: RequestClass) -> Q:
    slow = Q(seconds__gte=settings.REQUEST_LOG.slow)
    warned = Q(fault__has_key="warnings")
    match kind:
        case RequestClass.PROBLEM:
            return (~Q(outcome=Outcome.DONE) | slow | warned) & ~_REHEARSED_FAILURE
        case RequestClass.REFUSED:
            return Q(outcome=Outcome.REFUSED)
        case RequestClass.FAILED:
            return Q(outcome=Outcome.FAILED)
        case RequestClass.SLOW:
            return slow
        case RequestClass.WARNED:
            return warned
        case RequestClass.REHEARSED:
            return Q(fault__has_key="rehearsed")


def find(wanted: RequestFilter) -> QuerySet[RecordedRequest]:
    """Select requests, newest first, each with ``sas_label``."""
    found = matching(wanted).select_related("account")
    return found.annotate(sas_label=SAS_LABEL).order_by("-pk")


def matching(criteria: RequestFilter) -> QuerySet[RecordedRequest]:
    """Select matching requests, unordered."""
    conditions = Q()
    if criteria.account_ids is not None:
        conditions &= Q(account__in=criteria.account_ids)
    if criteria.kind is not None:
        conditions &= _of_kind(criteria.kind)
    if criteria.client:
        conditions &= _is_client(criteria.client)
    if criteria.identifier:
        conditions &= _identified(criteria.identifier)
    if criteria.search:
        conditions &= _found(criteria.search)
    if criteria.min_seconds:
        conditions &= Q(seconds__gte=criteria.min_seconds)
    given = {
        "status": criteria.status,
        "error": criteria.code,
        "operation": criteria.operation,
        "table_name__iexact": criteria.table,
        "authentication": criteria.authentication,
        "credential": criteria.credential,
        "access_path": criteria.access_path,
        "at__gte": criteria.since,
        "at__lt": criteria.until,
    }
    conditions &= Q(**{name: value for name, value in given.items() if value not in (None, "")})
    return RecordedRequest.objects.filter(conditions)


def _is_client(text: str) -> Q:
    return Q(address__startswith=text) | Q(agent__istartswith=text)


def _found(text: str) -> Q:
    """Return the search condition: an id in the text, or else a client or its request id."""
    identifier = read_identifier(text)
    if identifier:
        return _identified(identifier)
    return Q(client_request_id=text) | _is_client(text)


def read_identifier(text: str) -> str:
    """Extract a request id from a text, such as the message of an SDK's exception; empty if there is none."""
    found = _NAMED_ID.search(text) or _ID.search(text)
    return found[1] if found is not None else ""


def _identified(identifier: str) -> Q:
    """Return the condition for a request id, which may be the service's or the client's."""
    try:
        return Q(client_request_id=identifier) | Q(request_id=UUID(identifier))
    except ValueError:
        return Q(client_request_id=identifier)


def page(criteria: RequestFilter, *, before: int | None = None, top: int = 100) -> list[RecordedRequest]:
    """Return the newest requests, or those before an id; up to ``top`` + 1, to tell whether there are more.

    Raises OperationTimedOut when conditions without an index take too long.
    """
    rows = find(criteria)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    with limited(TIMEOUT):
        return list(rows[: top + 1])


def export(criteria: RequestFilter) -> Iterator[RecordedRequest]:
    """Yield all requests, newest first, reading them in batches."""
    before: int | None = None
    while rows := page(criteria, before=before, top=_BATCH):
        yield from rows[:_BATCH]
        if len(rows) <= _BATCH:
            return
        before = rows[_BATCH - 1].pk


def following(wanted: RequestFilter, after: int, top: int = 100) -> list[RecordedRequest]:
    """Return the first requests after an id, oldest first; ids follow the order of commits."""
    with limited(TIMEOUT):
        return list(find(wanted).filter(pk__gt=after).reverse()[:top])


def last_id(account_ids: Collection[int] | None = None) -> int:
    """Return the id of the latest logged request, of all or these accounts; 0 without one."""
    rows = RecordedRequest.objects.order_by("-pk")
    if account_ids is not None:
        rows = rows.filter(account__in=account_ids)
    return rows.values_list("pk", flat=True).first() or 0


def find_by_text(accounts: QuerySet[Account], text: str, top: int) -> list[RecordedRequest]:
    """Return the newest requests with the id contained in a text; none without an id."""
    identifier = read_identifier(text)
    if not identifier:
        return []
    rows = find(RequestFilter(identifier=identifier)).filter(account__in=accounts.order_by().values("pk"))
    return list(rows[:top])


def get(account: Account, request_id: UUID) -> RecordedRequest | None:
    return find(RequestFilter([account.pk])).filter(request_id=request_id).first()


def find_recorded(account: Account, request_ids: Collection[UUID]) -> set[UUID]:
    """Return those of several requests that are in the log."""
    rows = RecordedRequest.objects.filter(account=account, request_id__in=request_ids)
    return set(rows.values_list("request_id", flat=True))


def missing_indexes(request: RecordedRequest) -> list[str]:
    """Return properties without an index that would have sped up the query."""
    if not request.candidates:
        return []
    table = tables.find(request.account, request.table_name.lower())
    if table is None:
        return []
    existing = set(PropertyIndex.objects.filter(table=table).values_list("name", flat=True))
    return [name for name in request.candidates if name not in existing]
