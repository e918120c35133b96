"""Base of all view sets: authorization, resolution of the path, validation and responses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone, translation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.viewsets import ViewSet

from storage.accounts import quotas
from storage.core.quotas import STREAMS
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Role
from storage.domain.errors import StorageError
from storage.domain.values.numbers import read_number
from storage.jobs import jobs, running
from storage.jobs.kinds import JobRequest
from storage.models import Account, ApiToken, Job, Table
from storage.rest import access, etags, problems, streams
from storage.rest.access import (
    BearerAuthentication,
    TokenPermission,
    TokenThrottle,
    actor_of,
)
from storage.rest.documentation import ASYNC, Operation
from storage.rest.fields import endpoint
from storage.rest.jobs import JobSerializer
from storage.rest.negotiation import JSONNegotiation, ProblemJSONRenderer, StrictJSONParser
from storage.rest.paging import Page, encode_cursor, take_page
from storage.rest.problems import Problem
from storage.tables import tables


class ApiViewSet(ViewSet):
    """Base view set of the management API, with token authentication and JSON responses."""

    authentication_classes = (BearerAuthentication,)
    permission_classes = (TokenPermission,)
    throttle_classes = (TokenThrottle,)
    parser_classes = (StrictJSONParser,)
    renderer_classes = (ProblemJSONRenderer,)
    content_negotiation_class = JSONNegotiation
    metadata_class = None
    http_method_names = ("get", "post", "put", "patch", "delete", "head")
    capabilities: ClassVar[Mapping[str, Capability]]  # the capability that each action requires
    tag: ClassVar[str]  # its group in the documentation

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.META.get("CONTENT_LENGTH"):
            # a chunked body has none, and REST framework would ignore it
            request.META["CONTENT_LENGTH"] = str(len(request.body))
        # scripts read the messages of errors: they need one language and one time zone
        with translation.override("en"), timezone.override("UTC"):
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            response.headers["Content-Language"] = "en"
            response.headers["Cache-Control"] = "no-store"
            return response

    def finalize_response(self, *args: Any, **kwargs: Any) -> Any:
        """Let the response forget the body when it is rendered.

        Views, requests, serializers and their fields refer to each other: what they hold stays in memory until the
        garbage collector runs, which is rarely.
        """
        response = super().finalize_response(*args, **kwargs)
        if isinstance(response, Response):
            response.add_post_render_callback(_forget_body)
        return response

    def check_permissions(self, request: Request) -> None:
        """Count the request for the rate limit before checking permissions, so that refused ones count."""
        if isinstance(request.auth, ApiToken):
            super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Do nothing, as check_permissions has counted the request."""

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        """Load the resource in the path; raises the problem that refuses the request."""

    @property
    def token(self) -> ApiToken:
        token: ApiToken = self.request.auth
        return token

    @property
    def by(self) -> Actor:
        return actor_of(self.request)

    def read_body(self) -> dict[str, Any]:
        """Return the validated body of the action's serializer."""
        assert self._operation.body is not None
        serializer = self._operation.body(data=self.request.data)
        try:
            serializer.is_valid(raise_exception=True)
            values: dict[str, Any] = serializer.validated_data
        finally:
            serializer.__dict__.clear()  # see finalize_response
        return values

    def read_query(self) -> dict[str, Any]:
        """Return the validated query parameters of the action's serializer."""
        assert self._operation.query is not None
        return self._operation.query.read(self.request.query_params)

    def serialize(self, found: Any) -> Any:
        """Return the content of a response by the action's serializer."""
        assert self._operation.answer is not None
        return self._operation.answer(found, context=self.serializer_context()).data

    def serializer_context(self) -> dict[str, Any]:
        return {"request": self.request}

    def answer(self, found: Any) -> Response:
        return Response(self.serialize(found))

    def answer_created(self, found: Any, *, is_new: bool) -> Response:
        """Respond 201 for a new resource, or 200 if an identical request created it before."""
        return Response(self.serialize(found), status=201 if is_new else 200)

    @property
    def is_async(self) -> bool:
        """Return whether the client prefers not to wait for a job."""
        return ASYNC in self.request.headers.get("Prefer", "").lower()

    def answer_job(self, job: Job) -> Response:
        """Respond 202 with a running job."""
        applied = {"Preference-Applied": ASYNC} if self.is_async else {}
        headers = {"Location": reverse("api-job", args=(job.pk,)), **applied}
        return Response(JobSerializer(job).data, status=202, headers=headers)

    def answer_by_job(self, wanted: JobRequest[Any, Any], answer: Callable[[Job], Response]) -> Response:
        """Start a job and respond with its result, or with the job if the client does not wait."""
        if self.is_async:
            return self.answer_job(jobs.start_requested(wanted, by=self.by))
        return answer(running.complete(wanted, by=self.by))

    def answer_with_etag(self, found: Any) -> Response:
        content = self.serialize(found)
        return Response(content, headers={"ETag": etags.compute(content)})

    def answer_page(self, page: Page) -> Response:
        """Respond with a page and the URL of the next one, also in the Link header."""
        following = None
        if page.end is not None:
            following = replace_query_param(
                self.request.build_absolute_uri(), "cursor", encode_cursor(page.end)
            )
        response = self.answer({"items": page.items, "next": following})
        if following is not None:
            response.headers["Link"] = f'<{following}>; rel="next"'
        return response

    def answer_newest(
        self, matching: QuerySet[Any], view: Callable[[QuerySet[Any]], Sequence[Any]] = list
    ) -> Response:
        """Respond with a page of rows, the newest first, as ``view`` makes them; the cursor is an id."""
        parameters = self.read_query()
        before, limit = self.read_number_cursor(parameters["cursor"]), parameters["limit"]
        if before is not None:
            matching = matching.filter(pk__lt=before)
        shown = view(matching.order_by("-pk")[: limit + 1])
        return self.answer_page(take_page(shown, limit, lambda it: str(it.id)))

    def answer_stream(self, stream: streams.Stream) -> HttpResponse:
        """Respond with a stream of events; raises a Problem beyond the quota of the token."""
        try:
            return streams.respond(cast("HttpRequest", self.request._request), stream)
        except streams.TooManyStreams:
            detail = f"A token can have {quotas.limit(STREAMS)} streams at a time; end one first."
            raise Problem(problems.TOO_MANY, detail, headers={"Retry-After": "30"}) from None

    def read_number_cursor(self, cursor: str | None) -> int | None:
        """Parse a numeric cursor, None without one; raises 404 for a malformed one."""
        if not cursor:
            return None
        number = read_number(cursor)
        if number is None:
            raise Http404
        return number

    @property
    def _operation(self) -> Operation:
        found: Operation = getattr(self, self.action).operation
        return found


class AccountScopedViewSet(ApiViewSet):
    """Base of view sets below an account; ``account`` and the user's ``role`` in it come from the path."""

    account: Account
    role: Role

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        self.account, self.role = access.find_account(token, self.kwargs["account"], capability)

    def serializer_context(self) -> dict[str, Any]:
        return {**super().serializer_context(), "account": self.account}

    def table(self) -> Table:
        """Return the table in the path, in any letter case; raises 404."""
        try:
            table = tables.get(self.account, self.kwargs["table"])
        except StorageError:
            raise Http404 from None
        table.account = self.account
        return table

    def endpoint(self) -> str:
        return endpoint(self.request, self.account.name)


def _forget_body(response: Any) -> None:
    response.renderer_context["request"].__dict__.clear()
