"""OpenAPI document, generated once from the view sets, their serializers and the `operation` decorator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getdoc
from threading import Lock
from typing import Annotated, Any, Final, TypeVar

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import Direction, OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from storage.domain.access.api_tokens import PREFIX
from storage.domain.access.roles import LEAST_ROLE, Capability
from storage.rest import problems
from storage.rest.access import least_scope
from storage.rest.answers import OPTIONAL, TypedSerializer, serializer_of
from storage.rest.fields import QueryParameters, StrictSerializer
from storage.rest.jobs import JobSerializer
from storage.rest.problems import ProblemType

F = TypeVar("F", bound=Callable[..., Any])

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="1 to 255 printable ASCII characters that identify this request for 24 hours.",
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": "^[ -~]*$"},
    OpenApiParameter.HEADER,
    description="The ETag of the version to replace; 412 if there is a newer one.",
)
LAST_EVENT_ID: Final = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="The `id` of the last event, with which a client of a stream connects again. Replaces `after`.",
)
ASYNC: Final = "respond-async"
_PREFER: Final = OpenApiParameter(
    "Prefer",
    {"type": "string", "pattern": "^[ -~]*$"},
    OpenApiParameter.HEADER,
    description=f"With `{ASYNC}` the answer does not wait for the end: it is the job that does the work.",
)
PLAIN_TEXT: Final = {(200, "text/plain"): OpenApiTypes.STR}
_ETAG: Final = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, description="For `If-Match`.", response=[200], required=True
)


def document() -> dict[str, Any]:
    """Return the OpenAPI document, generated under a lock as the generator is not thread-safe."""
    with _generating:
        return _generate()


_generating: Final = Lock()


@cache
def _generate() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    operations = (given for methods in document["paths"].values() for given in methods.values())
    tags = {tag for given in operations for tag in given["tags"]}
    # without those of subjects that are left out
    return {**document, "tags": [tag for tag in document["tags"] if tag["name"] in tags]}


@require_safe
def show(request: HttpRequest) -> JsonResponse:
    """Return the OpenAPI document, which is public because it contains no data."""
    return JsonResponse(document(), headers={"Cache-Control": "public, max-age=300"})


show.login_required = False  # type: ignore[attr-defined]


class FieldErrorSerializer(TypedSerializer):
    pointer: Annotated[str, OPTIONAL, "JSON pointer into the body, such as `#/labels/branch`."]
    parameter: Annotated[str, OPTIONAL, "Name of the query parameter."]
    detail: str


class ProblemSerializer(TypedSerializer):
    type: Annotated[str, "URL of the description of this type of problem."]
    title: str
    status: int
    detail: Annotated[str, OPTIONAL, "What is wrong with this request."]
    code: Annotated[str, OPTIONAL, "Error code of the Table service."]
    instance: Annotated[str, OPTIONAL, "ID of the request, as in the server's log."]
    errors: Annotated[list[FieldErrorSerializer], OPTIONAL]


@dataclass(frozen=True, slots=True)
class Operation:
    """Declared input and output of an action, for both schema and responses."""

    answer: type[serializers.Serializer[Any]] | None
    body: type[StrictSerializer] | None
    query: type[QueryParameters] | None
    problems: Sequence[ProblemType]


def operation(
    id: str,  # noqa: A002  as OpenAPI calls it
    summary: str,
    description: str = "",
    *,
    answer: type | None = None,
    body: type[StrictSerializer] | None = None,
    query: type[QueryParameters] | None = None,
    headers: Sequence[OpenApiParameter] = (),
    problems: Sequence[ProblemType] = (),
    is_creation: bool = False,
    is_job: bool = False,
    has_etag: bool = False,
    example: Mapping[str, Any] | None = None,
    file_examples: Mapping[str, Any] | None = None,
    other_responses: Mapping[Any, Any] | None = None,
) -> Callable[[F], F]:
    """Declare an action of a view set; ``problems`` are those beyond the common ones."""
    serializer = None if answer is None else serializer_of(answer)
    responses = {} if is_job and answer is JobSerializer else _responses(serializer, is_creation=is_creation)
    responses |= other_responses or {}
    if is_job:
        responses[202] = OpenApiResponse(JobSerializer, description="The job that does the work.")
        headers = headers if answer is JobSerializer else [*headers, _PREFER]

    def decorate(view: F) -> F:
        view.operation = Operation(serializer, body, query, problems)  # type: ignore[attr-defined]
        return extend_schema(
            operation_id=id,
            summary=summary,
            description=description,
            request=dict.fromkeys(file_examples, OpenApiTypes.BINARY) if file_examples else body,
            responses=responses,
            parameters=[*([query] if query else []), *headers, *([_ETAG] if has_etag else [])],
            examples=[
                *([OpenApiExample(summary, value=dict(example), request_only=True)] if example else []),
                *(
                    OpenApiExample(type_, value=value, request_only=True, media_type=type_)
                    for type_, value in (file_examples or {}).items()
                ),
            ],
        )(view)

    return decorate


def _responses(answer: type[serializers.Serializer[Any]] | None, *, is_creation: bool) -> dict[Any, Any]:
    if answer is None:
        return {204: OpenApiResponse(description="Done.")}
    if is_creation:
        return {
            201: OpenApiResponse(answer, description="Created."),
            200: OpenApiResponse(answer, description="An identical request has created it before."),
        }
    return {(200, "application/json"): OpenApiResponse(answer, description="Success.")}


class Schema(AutoSchema):
    """OpenAPI schema that groups operations by view set and adds the common problems."""

    def get_description(self) -> str:
        """Return the operation's description, never the docstring of its view set."""
        return ""

    def get_operation(self, *args: Any, **options: Any) -> dict[str, Any] | None:
        """Make operation ids unique for view sets that exist both below an account and for the server."""
        operation: dict[str, Any] | None = super().get_operation(*args, **options)
        if operation is not None:
            operation["operationId"] += getattr(self.view, "operation_suffix", "")
        return operation

    def get_tags(self) -> list[str]:
        return [self.view.tag]

    def get_extensions(self) -> dict[str, Any]:
        capability: Capability | None = self.view.capabilities.get(self.view.action)
        assert capability is not None, f"{type(self.view).__name__}.capabilities lacks {self.view.action}"
        role = LEAST_ROLE[capability].name.lower() if "{account}" in self.path else ""
        is_for_admins = capability in (Capability.OWN, Capability.GRANT) and not role
        return {
            "x-scope": str(least_scope(capability)),
            "x-role": "admin" if is_for_admins else role,
        }

    def _get_serializer_field_meta(self, field: Any, direction: Direction) -> dict[str, Any]:
        meta: dict[str, Any] = super()._get_serializer_field_meta(field, direction)
        if meta.get("default") == "" and not getattr(field, "allow_blank", False):
            del meta["default"]  # it stands for a parameter that is left out; sending it is refused
        return meta

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        if schema.get("description") == getdoc(TypedSerializer):
            del schema["description"]
        if direction == "request" and isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status, types in sorted(self._problems().items()):
            description = " ".join(dict.fromkeys(type_.description for type_ in types))
            response = OpenApiResponse(ProblemSerializer, description=description)
            bodies[str(status)] = self._get_response_for_code(response, str(status), [problems.MEDIA_TYPE])
        return bodies

    def _problems(self) -> dict[int, list[ProblemType]]:
        action: Operation = getattr(self.view, self.view.action).operation
        types = [
            problems.UNAUTHENTICATED,
            problems.OUT_OF_SCOPE,
            problems.TOO_MANY,
            problems.UNAVAILABLE,
            *action.problems,
        ]
        if "{" in self.path:
            types += [problems.NOT_FOUND, problems.FORBIDDEN]
        if self.method != "GET":
            types += [problems.FORBIDDEN]
        if self._get_request_body():
            types += [problems.MALFORMED, problems.TOO_LARGE, problems.MEDIA_TYPE_REFUSED]
        types += [problems.INVALID]
        by_status: dict[int, list[ProblemType]] = {}
        for type_ in dict.fromkeys(types):
            by_status.setdefault(type_.status, []).append(type_)
        return by_status


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "storage.rest.access.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": f"{PREFIX}…",
            "description": "A token from the profile page or from `manage.py token add`.",
        }
