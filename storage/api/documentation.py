"""What the OpenAPI document says of an operation beside what its serializers say."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import Direction, OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from storage.api import problems
from storage.api.permissions import least_scope
from storage.api.problems import Kind
from storage.api.serializers.fields import Strict
from storage.domain.access.api_tokens import PREFIX
from storage.domain.access.roles import LEAST_ROLE, Capability

F = TypeVar("F", bound=Callable[..., Any])

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="1 to 255 printable ASCII characters; for a day they stand for this request.",
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": "^[ -~]*$"},
    OpenApiParameter.HEADER,
    description="The ETag of what is to be replaced; 412 if it is another by now.",
)
PLAIN_TEXT: Final = {(200, "text/plain"): OpenApiTypes.STR}
_ETAG: Final = OpenApiParameter(
    "ETag", str, OpenApiParameter.HEADER, description="For `If-Match`.", response=[200], required=True
)


class FieldError(serializers.Serializer[Any]):
    pointer = serializers.CharField(required=False, help_text="Into the body, as `#/labels/branch`.")
    parameter = serializers.CharField(required=False, help_text="Of the address.")
    detail = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    type = serializers.CharField(help_text="The address of what this kind of problem is.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(required=False, help_text="What it is about this time.")
    code = serializers.CharField(required=False, help_text="The Table service's own code of it.")
    instance = serializers.CharField(required=False, help_text="The number of the request.")
    errors = FieldError(many=True, required=False)


def operation(
    id: str,  # noqa: A002  as OpenAPI calls it
    summary: str,
    description: str = "",
    *,
    answer: type[serializers.Serializer[Any]] | None = None,
    body: type[Strict] | None = None,
    parameters: Sequence[Any] = (),
    problems: Sequence[Kind] = (),
    is_creation: bool = False,
    has_etag: bool = False,
    example: Mapping[str, Any] | None = None,
    also: Mapping[Any, Any] | None = None,
) -> Callable[[F], F]:
    """``problems``: those that not every such operation has."""

    def decorate(view: F) -> F:
        view.problems = problems  # type: ignore[attr-defined]
        responses = _responses(answer, is_creation=is_creation) | dict(also or {})
        return extend_schema(
            operation_id=id,
            summary=summary,
            description=description,
            request=body,
            responses=responses,
            parameters=[*parameters, *([_ETAG] if has_etag else [])],
            examples=_examples(summary, example),
        )(view)

    return decorate


def _examples(summary: str, example: Mapping[str, Any] | None) -> list[OpenApiExample]:
    return [OpenApiExample(summary, value=dict(example), request_only=True)] if example else []


def _responses(answer: type[serializers.Serializer[Any]] | None, *, is_creation: bool) -> dict[Any, Any]:
    if answer is None:
        return {204: OpenApiResponse(description="Done.")}
    if is_creation:
        return {
            201: OpenApiResponse(answer, description="It was made."),
            200: OpenApiResponse(answer, description="The same request has made it before."),
        }
    return {(200, "application/json"): OpenApiResponse(answer, description="What was asked for.")}


class Schema(AutoSchema):
    """Groups operations by their views, and adds the problems that any operation may end in."""

    def get_tags(self) -> list[str]:
        return [self.view.tag]

    def get_extensions(self) -> dict[str, Any]:
        capability: Capability = self.view.capabilities[self.view.action]
        role = LEAST_ROLE[capability].name.lower() if "{account}" in self.path else ""
        is_for_admins = capability is Capability.OWN and not role
        return {
            "x-scope": str(least_scope(capability)),
            "x-role": "admin" if is_for_admins else role,
        }

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        if direction == "request" and isinstance(serializer, Strict):
            schema["additionalProperties"] = False
        return schema

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        found: dict[str, Any] = super()._get_response_bodies(direction)
        for status, kinds in sorted(self._problems().items()):
            told = " ".join(dict.fromkeys(kind.told for kind in kinds))
            response = self._get_response_for_code(
                OpenApiResponse(Problem, description=told), str(status), [problems.MEDIA_TYPE]
            )
            found[str(status)] = response
        return found

    def _problems(self) -> dict[int, list[Kind]]:
        special: Sequence[Kind] = getattr(getattr(self.view, self.view.action), "problems", ())
        kinds = [
            problems.UNAUTHENTICATED,
            problems.OUT_OF_SCOPE,
            problems.TOO_MANY,
            problems.UNAVAILABLE,
            *special,
        ]
        if "{" in self.path:
            kinds += [problems.NOT_FOUND, problems.FORBIDDEN]
        if self.method != "GET":
            kinds += [problems.FORBIDDEN]
        if self._get_request_body():
            kinds += [problems.MALFORMED, problems.TOO_LARGE, problems.MEDIA_TYPE_REFUSED]
        kinds += [problems.INVALID]
        found: dict[int, list[Kind]] = {}
        for kind in dict.fromkeys(kinds):
            found.setdefault(kind.status, []).append(kind)
        return found


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "storage.api.authentication.Bearer"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": f"{PREFIX}…",
            "description": "A token of the profile page, or of `manage.py token add`.",
        }
