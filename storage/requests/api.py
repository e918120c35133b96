"""Request log in the management API, as lists or server-sent events."""

from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.grants import Operation
from storage.domain.access.roles import Capability
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.values.numbers import read_number
from storage.metrics.series import DAY
from storage.models import RecordedRequest
from storage.people import api_tokens
from storage.requests import requests, serializers
from storage.requests.requests import RequestClass, RequestFilter
from storage.requests.statistics import RequestStatistics, statistics
from storage.rest import streams
from storage.rest.answers import page_of
from storage.rest.documentation import LAST_EVENT_ID, operation
from storage.rest.lookups import or_404
from storage.rest.paging import take_page
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.streams import RequestStream
from storage.rest.views import AccountScopedViewSet


class RequestViewSet(AccountScopedViewSet):
    tag = "Requests"
    capabilities = {
        "index": Capability.READ,
        "retrieve": Capability.READ,
        "statistics": Capability.READ,
    }

    @operation(
        "list_requests",
        "List requests to the Table service",
        "Returns requests that were refused, failed or slow, and a sample of the others, newest first, as they are in"
        " the database within about two seconds. With `Accept: text/event-stream` requests follow as server-sent"
        " events, oldest first: those after `after` or `Last-Event-ID`, or else those that are written from now on.",
        answer=page_of(serializers.RequestRecordSerializer),
        query=serializers.RequestParameters,
        headers=[LAST_EVENT_ID],
        other_responses={(200, streams.MEDIA_TYPE): OpenApiTypes.STR},
    )
    def index(self, request: Request, account: str) -> HttpResponse:
        read = self.read_query()
        criteria = RequestFilter(
            [self.account.pk],
            kind=RequestClass(read["kind"]) if read["kind"] else None,
            status=read["status"],
            code=read["code"],
            operation=Operation(read["operation"]) if read["operation"] else None,
            table=read["table"],
            authentication=Authentication(read["authentication"]) if read["authentication"] else None,
            credential=read["credential"],
            access_path=AccessPath(read["access_path"]) if read["access_path"] else None,
            client=read["client"],
            identifier=read["id"],
            min_seconds=read["min_seconds"],
            since=read["since"],
            until=read["until"],
        )
        if request.headers.get("Accept", "").startswith(streams.MEDIA_TYPE):
            return self._stream(
                criteria, read_number(request.headers.get("Last-Event-ID", "")), read["after"]
            )
        before = self.read_number_cursor(read["cursor"])
        rows = requests.page(criteria, before=before, top=read["limit"])
        return cast("HttpResponse", self.answer_page(take_page(rows, read["limit"], lambda it: str(it.pk))))

    def _stream(self, criteria: RequestFilter, last: int | None, after: int | None) -> HttpResponse:
        token, account = self.token, self.account

        def is_allowed() -> bool:
            return api_tokens.may_still(token, account, Capability.READ)

        def write(row: RecordedRequest) -> bytes:
            return cast("bytes", JSONRenderer().render(serializers.RequestRecordSerializer(row).data))

        begin = next((it for it in (last, after) if it is not None), None)
        if begin is None:
            begin = requests.last_id()
        stream = RequestStream(criteria, begin, account.pk, write, f"token {token.pk}", is_allowed)
        return self.answer_stream(stream)

    @operation(
        "get_request",
        "Get a request by its x-ms-request-id",
        "Returns a request to the Table service that is in the request log, with why it was refused or slow.",
        answer=serializers.RequestRecordSerializer,
    )
    def retrieve(self, request: Request, account: str, request_id: UUID) -> Response:
        found = or_404(requests.get(self.account, request_id))
        return self.answer(found)

    @operation(
        "get_request_statistics",
        "Count requests by code and by credential",
        "Returns the numbers of a period, by default the last day: of all requests by code, and of refused and failed"
        " ones by credential and code.",
        answer=RequestStatistics,
        query=serializers.PeriodParameters,
    )
    def statistics(self, request: Request, account: str) -> Response:
        wanted = self.read_query()
        until = wanted["until"] or datetime.now(UTC)
        return self.answer(statistics(self.account, wanted["since"] or until - DAY, until))


urlpatterns = [
    api_path(f"{ACCOUNT}/requests", RequestViewSet, "requests", get="index"),
    api_path(f"{ACCOUNT}/requests/<uuid:request_id>", RequestViewSet, "request", get="retrieve"),
    api_path(f"{ACCOUNT}/request-statistics", RequestViewSet, "request-statistics", get="statistics"),
]
