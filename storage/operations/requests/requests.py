"""Reading the request log."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import Case, CharField, OuterRef, Q, QuerySet, Subquery, Value, When

from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.requests.recorded import SLOW, Outcome
from storage.models import Account, PropertyIndex, RecordedRequest, RegisteredSas
from storage.operations.tables import tables
from storage.sql.django import limited

_TIMEOUT: Final = timedelta(seconds=10)

# annotates requests with what people call their SAS token
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


class RequestClass(StrEnum):
    """What a reader asks for."""

    PROBLEM = "problem"  # refused, failed or slow
    REFUSED = "refused"
    FAILED = "failed"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Conditions on requests; an empty one matches all.

    ``identifier`` is an x-ms-request-id or an x-ms-client-request-id, ``client`` the beginning of an address or of a
    user agent. ``until`` is exclusive.
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
    client: str = ""
    identifier: str = ""
    since: datetime | None = None
    until: datetime | None = None


_KINDS: Final = {
    RequestClass.PROBLEM: ~Q(outcome=Outcome.DONE) | Q(seconds__gte=SLOW),
    RequestClass.REFUSED: Q(outcome=Outcome.REFUSED),
    RequestClass.FAILED: Q(outcome=Outcome.FAILED),
    RequestClass.SLOW: Q(seconds__gte=SLOW),
}


def find(wanted: RequestFilter) -> QuerySet[RecordedRequest]:
    """Find requests, the newest first, each with ``sas_label``."""
    conditions = Q()
    if wanted.account_ids is not None:
        conditions &= Q(account__in=wanted.account_ids)
    if wanted.kind is not None:
        conditions &= _KINDS[wanted.kind]
    if wanted.client:
        conditions &= Q(address__startswith=wanted.client) | Q(agent__istartswith=wanted.client)
    if wanted.identifier:
        conditions &= _identified(wanted.identifier)
    given = {
        "status": wanted.status,
        "error": wanted.code,
        "operation": wanted.operation,
        "table_name__iexact": wanted.table,
        "authentication": wanted.authentication,
        "credential": wanted.credential,
        "access_path": wanted.access_path,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    conditions &= Q(**{name: value for name, value in given.items() if value not in (None, "")})
    found = RecordedRequest.objects.filter(conditions).select_related("account")
    return found.annotate(sas_label=SAS_LABEL).order_by("-pk")


def _identified(identifier: str) -> Q:
    """Return the condition that a request has this id; both the service's and the client's are often GUIDs."""
    try:
        return Q(client_request_id=identifier) | Q(request_id=UUID(identifier))
    except ValueError:
        return Q(client_request_id=identifier)


def page(wanted: RequestFilter, *, before: int | None = None, top: int = 100) -> list[RecordedRequest]:
    """Return the newest requests, or those just before an id; one more than ``top`` if there are more.

    Raises OperationTimedOut when conditions that no index helps with take too long.
    """
    found = find(wanted)
    if before is not None:
        found = found.filter(pk__lt=before)
    with limited(_TIMEOUT):
        return list(found[: top + 1])


def following(wanted: RequestFilter, after: int, top: int = 100) -> list[RecordedRequest]:
    """Return the first requests after an id, oldest first; they are numbered in the order of their commits."""
    with limited(_TIMEOUT):
        return list(find(wanted).filter(pk__gt=after).reverse()[:top])


def last_id(account_ids: Collection[int] | None = None) -> int:
    """Return the id after which requests follow that are not written yet."""
    found = RecordedRequest.objects.order_by("-pk")
    if account_ids is not None:
        found = found.filter(account__in=account_ids)
    return found.values_list("pk", flat=True).first() or 0


def get(account: Account, request_id: UUID) -> RecordedRequest | None:
    return find(RequestFilter([account.pk])).filter(request_id=request_id).first()


def missing_indexes(request: RecordedRequest) -> list[str]:
    """Return the properties whose index would spare a query rows, and that have none yet."""
    if not request.candidates:
        return []
    table = tables.find(request.account, request.table_name.lower())
    if table is None:
        return []
    existing = set(PropertyIndex.objects.filter(table=table).values_list("name", flat=True))
    return [name for name in request.candidates if name not in existing]
