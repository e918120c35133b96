"""Errors of every stage of a request as problem details.

https://www.rfc-editor.org/rfc/rfc9457
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from storage.domain.errors import ServerBusy, StorageError
from storage.operations.accounts import AccountError
from storage.operations.api_tokens import TokenError

MEDIA_TYPE: Final = "application/problem+json"
DOCUMENTED_AT: Final = "/ui/api/docs/"
RETRY_AFTER: Final = 5  # seconds


@dataclass(frozen=True, slots=True)
class ProblemType:
    """``name`` is part of the type's URL and never changes; ``description`` is for the documentation."""

    name: str
    status: int
    title: str
    description: str

    @property
    def url(self) -> str:
        return f"{DOCUMENTED_AT}#problem-{self.name}"


MALFORMED: Final = ProblemType(
    "malformed", 400, "The request cannot be read", "The body is not valid JSON or not UTF-8."
)
INVALID: Final = ProblemType(
    "invalid",
    400,
    "The request is not valid",
    "A member or parameter is missing, unknown or malformed; `errors` lists each one.",
)
UNAUTHENTICATED: Final = ProblemType(
    "unauthenticated", 401, "Authentication required", "The token is missing, unknown, expired or revoked."
)
OUT_OF_SCOPE: Final = ProblemType(
    "scope", 403, "The scope of the token is insufficient", "The operation needs a token with a wider scope."
)
FORBIDDEN: Final = ProblemType(
    "forbidden",
    403,
    "Not allowed",
    "The user of the token lacks the required role, or the account is read-only.",
)
NOT_FOUND: Final = ProblemType(
    "not-found", 404, "Not found", "The resource does not exist, or the token has no access to it."
)
NO_METHOD: Final = ProblemType(
    "method-not-allowed", 405, "Method not allowed", "`Allow` lists the methods of this path."
)
CONFLICT: Final = ProblemType(
    "conflict", 409, "Conflict", "The name is taken, or the current state does not allow the operation."
)
PRECONDITION: Final = ProblemType(
    "precondition-failed",
    412,
    "Precondition failed",
    "The resource has changed: its ETag does not match `If-Match`.",
)
TOO_LARGE: Final = ProblemType("too-large", 413, "The body is too large", "The limit is 1 MiB.")
MEDIA_TYPE_REFUSED: Final = ProblemType(
    "unsupported-media-type", 415, "Unsupported media type", "Send the body as `application/json`."
)
KEY_REUSED: Final = ProblemType(
    "idempotency-key-reused",
    422,
    "The Idempotency-Key was used for another request",
    "For 24 hours, a key identifies a single request.",
)
TOO_MANY: Final = ProblemType(
    "too-many-requests", 429, "Too many requests", "`Retry-After` gives the number of seconds to wait."
)
FAILED: Final = ProblemType(
    "internal", 500, "Internal server error", "The server failed; its log has an entry for `instance`."
)
UNAVAILABLE: Final = ProblemType(
    "unavailable", 503, "Service unavailable", "The database does not respond at the moment; try again."
)
PROBLEM_TYPES: Final = (
    MALFORMED, INVALID, UNAUTHENTICATED, OUT_OF_SCOPE, FORBIDDEN, NOT_FOUND, NO_METHOD, CONFLICT, PRECONDITION,
    TOO_LARGE, MEDIA_TYPE_REFUSED, KEY_REUSED, TOO_MANY, FAILED, UNAVAILABLE,
)  # fmt: skip
_BY_STATUS: Final = {
    kind.status: kind for kind in reversed(PROBLEM_TYPES) if kind not in (MALFORMED, OUT_OF_SCOPE)
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong at a ``pointer`` into the body (RFC 6901) or with a query ``parameter``."""

    detail: str
    pointer: str = ""
    parameter: str = ""

    def serialize(self) -> dict[str, str]:
        where = {"parameter": self.parameter} if self.parameter else {"pointer": f"#{self.pointer}"}
        return {**where, "detail": _replace_surrogates(self.detail)}


@dataclass(slots=True)
class Problem(Exception):
    """An error that a view raises; from_exception makes one of every other error."""

    type: ProblemType
    detail: str = ""
    code: str = ""  # of the Table service
    headers: Mapping[str, str] = field(default_factory=dict)
    errors: Sequence[FieldError] = ()

    def serialize(self, request_id: str) -> dict[str, Any]:
        members = {
            "type": self.type.url,
            "title": self.type.title,
            "status": self.type.status,
            "detail": _replace_surrogates(self.detail),
            "code": self.code,
            "instance": f"urn:uuid:{request_id}" if request_id else "",
            "errors": [error.serialize() for error in self.errors],
        }
        return {name: value for name, value in members.items() if value}


class InvalidParameters(exceptions.ValidationError):
    """Validation errors of the query string, not of the body."""


def invalid(detail: str, pointer: str = "") -> Problem:
    return Problem(INVALID, detail, errors=[FieldError(detail, pointer)])


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the response to an exception of a view; None lets Django log it as a server error."""
    problem = from_exception(error)
    if problem is None:
        return None
    set_rollback()
    content = problem.serialize(getattr(context["request"], "number", ""))
    response = Response(content, status=problem.type.status, headers=dict(problem.headers))
    response.content_type = MEDIA_TYPE
    return response


def from_exception(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case StorageError():
            headers = {"Retry-After": str(RETRY_AFTER)} if isinstance(error, ServerBusy) else {}
            return Problem(_BY_STATUS.get(error.status, FAILED), error.text, error.code, headers)
        case AccountError() | TokenError():
            return Problem(CONFLICT, str(error))
        case OperationalError() | InterfaceError():
            return Problem(UNAVAILABLE, headers={"Retry-After": str(RETRY_AFTER)})
        case SuspiciousOperation():
            return Problem(MALFORMED, "The request line or a header cannot be read.")
        case Http404() | ObjectDoesNotExist():  # it may have been deleted meanwhile
            return Problem(NOT_FOUND)
        case PermissionDenied():
            return Problem(FORBIDDEN)
        case exceptions.APIException():
            return _from_framework(error)
    return None


def from_status(status: int) -> Problem:
    """Return the problem for an error response that another part of the server made."""
    kind = _BY_STATUS.get(status) or ProblemType("other", status, HTTPStatus(status).phrase, "")
    return Problem(kind)


def _from_framework(error: exceptions.APIException) -> Problem | None:
    match error:
        case exceptions.ValidationError():
            in_query = isinstance(error, InvalidParameters)
            return Problem(INVALID, errors=list(_flatten(error.detail, "", in_query=in_query)))
        case exceptions.ParseError():
            return Problem(MALFORMED, str(error.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            header = getattr(error, "auth_header", "Bearer")
            return Problem(UNAUTHENTICATED, str(error.detail), headers={"WWW-Authenticate": header})
        case exceptions.Throttled():
            return Problem(TOO_MANY, headers={"Retry-After": str(int(error.wait or 1))})
        case exceptions.MethodNotAllowed():
            return Problem(NO_METHOD)  # REST framework adds the Allow header
    kind = _BY_STATUS.get(error.status_code)
    return None if kind is None else Problem(kind, str(error.detail))


def _flatten(detail: Any, pointer: str, *, in_query: bool) -> Iterator[FieldError]:
    match detail:
        case dict():
            for name, inner in detail.items():
                escaped = _replace_surrogates(str(name)).replace("~", "~0").replace("/", "~1")
                below = pointer if name == "non_field_errors" else f"{pointer}/{escaped}"
                yield from _flatten(inner, below, in_query=in_query)
        case list():
            for index, inner in enumerate(detail):
                # a list of sentences describes the value itself, any other list its items
                below = pointer if isinstance(inner, str) else f"{pointer}/{index}"
                yield from _flatten(inner, below, in_query=in_query)
        case _ if in_query:
            yield FieldError(str(detail), parameter=pointer.lstrip("/"))
        case _:
            yield FieldError(str(detail), pointer)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which a client may send and UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
