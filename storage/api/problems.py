"""Errors as problem details, of whatever stage of a request.

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
from storage.domain.requests.statuses import status_of
from storage.operations.accounts import AccountError
from storage.operations.api_tokens import TokenError

MEDIA_TYPE: Final = "application/problem+json"
DOCUMENTED_AT: Final = "/ui/api/docs/"
PAUSE: Final = 5  # seconds until it is worth asking again


@dataclass(frozen=True, slots=True)
class Kind:
    """``name`` is a part of the type's address and never changes."""

    name: str
    status: int
    title: str
    told: str  # when it comes, for the documentation

    @property
    def type(self) -> str:
        return f"{DOCUMENTED_AT}#problem-{self.name}"


MALFORMED: Final = Kind("malformed", 400, "The request cannot be read", "The body is no JSON, or no UTF-8.")
INVALID: Final = Kind(
    "invalid",
    400,
    "What was sent is not valid",
    "A member or parameter is missing, unknown or of a wrong form; `errors` names each.",
)
UNAUTHENTICATED: Final = Kind(
    "unauthenticated", 401, "A token is needed", "There is no token, or it is unknown, expired or revoked."
)
OUT_OF_SCOPE: Final = Kind(
    "scope", 403, "The scope of the token does not do", "The token has a lesser scope than this needs."
)
FORBIDDEN: Final = Kind(
    "forbidden",
    403,
    "This is not allowed",
    "The user of the token has a lesser role than this needs, or the account is read-only.",
)
NOT_FOUND: Final = Kind(
    "not-found", 404, "There is no such thing", "It is not there, or not for this token to see."
)
NO_METHOD: Final = Kind(
    "method-not-allowed", 405, "There is no such method here", "`Allow` names those that there are."
)
CONFLICT: Final = Kind(
    "conflict", 409, "It cannot be so now", "The name is taken, or what there is stands against it."
)
PRECONDITION: Final = Kind(
    "precondition-failed", 412, "It was changed meanwhile", "The ETag is not that of `If-Match`."
)
TOO_LARGE: Final = Kind("too-large", 413, "The body is too large", "It has more than a mebibyte.")
MEDIA_TYPE_REFUSED: Final = Kind(
    "unsupported-media-type", 415, "The body must be JSON", "Its `Content-Type` is not `application/json`."
)
KEY_REUSED: Final = Kind(
    "idempotency-key-reused",
    422,
    "The Idempotency-Key was used for another request",
    "Within a day the same key stands for the same request.",
)
TOO_MANY: Final = Kind(
    "too-many-requests", 429, "Too many requests", "`Retry-After` says for how many seconds to wait."
)
FAILED: Final = Kind(
    "internal", 500, "The server failed", "That is a fault of the server; `instance` is in its log."
)
UNAVAILABLE: Final = Kind(
    "unavailable", 503, "The server is busy", "The database does not answer at the moment; try again."
)
KINDS: Final = (
    MALFORMED, INVALID, UNAUTHENTICATED, OUT_OF_SCOPE, FORBIDDEN, NOT_FOUND, NO_METHOD, CONFLICT, PRECONDITION,
    TOO_LARGE, MEDIA_TYPE_REFUSED, KEY_REUSED, TOO_MANY, FAILED, UNAVAILABLE,
)  # fmt: skip
_OF_STATUS: Final = {kind.status: kind for kind in reversed(KINDS) if kind not in (MALFORMED, OUT_OF_SCOPE)}


@dataclass(frozen=True, slots=True)
class FieldError:
    """``pointer`` into the body (RFC 6901) or ``parameter`` of the address; one of them."""

    detail: str
    pointer: str = ""
    parameter: str = ""

    def write(self) -> dict[str, str]:
        where = {"parameter": self.parameter} if self.parameter else {"pointer": f"#{self.pointer}"}
        return {**where, "detail": _clean(self.detail)}


@dataclass(slots=True)
class Problem(Exception):
    """What a view raises; anything else that can go wrong becomes one."""

    kind: Kind
    detail: str = ""
    code: str = ""  # of the Table service
    headers: Mapping[str, str] = field(default_factory=dict)
    errors: Sequence[FieldError] = ()

    def write(self, request_id: str) -> dict[str, Any]:
        members = {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": _clean(self.detail),
            "code": self.code,
            "instance": f"urn:uuid:{request_id}" if request_id else "",
            "errors": [error.write() for error in self.errors],
        }
        return {name: value for name, value in members.items() if value}


class WrongParameters(exceptions.ValidationError):
    """Of the address, not of the body."""


def invalid(detail: str, pointer: str = "") -> Problem:
    return Problem(INVALID, detail, errors=[FieldError(detail, pointer)])


def answer(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """What REST framework asks for the answer to an exception; None leaves it to the server's log."""
    problem = of(error)
    if problem is None:
        return None
    set_rollback()
    written = problem.write(getattr(context["request"], "number", ""))
    response = Response(written, status=problem.kind.status, headers=dict(problem.headers))
    response.content_type = MEDIA_TYPE
    return response


def of(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case StorageError():
            return _of_service(error)
        case AccountError() | TokenError():
            return Problem(CONFLICT, str(error))
        case OperationalError() | InterfaceError():
            return Problem(UNAVAILABLE, headers={"Retry-After": str(PAUSE)})
        case SuspiciousOperation():
            return Problem(MALFORMED, "The request line or a header cannot be read.")
        case Http404() | ObjectDoesNotExist():  # it went meanwhile
            return Problem(NOT_FOUND)
        case PermissionDenied():
            return Problem(FORBIDDEN)
        case exceptions.APIException():
            return _of_framework(error)
    return None


def of_status(status: int) -> Problem:
    """Of an answer that was made without regard to whom it goes."""
    kind = _OF_STATUS.get(status)
    if kind is None:
        phrase = HTTPStatus(status).phrase
        kind = Kind("other", status, phrase, "")
    return Problem(kind)


def _of_service(error: StorageError) -> Problem:
    status = status_of(error)
    headers = {"Retry-After": str(PAUSE)} if isinstance(error, ServerBusy) else {}
    return Problem(_OF_STATUS.get(status, FAILED), error.text, error.code, headers)


def _of_framework(error: exceptions.APIException) -> Problem | None:
    match error:
        case exceptions.ValidationError():
            is_parameter = isinstance(error, WrongParameters)
            return Problem(INVALID, errors=list(_flat(error.detail, "", is_parameter=is_parameter)))
        case exceptions.ParseError():
            return Problem(MALFORMED, str(error.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            header = getattr(error, "auth_header", "Bearer")
            return Problem(UNAUTHENTICATED, str(error.detail), headers={"WWW-Authenticate": header})
        case exceptions.Throttled():
            return Problem(TOO_MANY, headers={"Retry-After": str(int(error.wait or 1))})
        case exceptions.MethodNotAllowed():
            return Problem(NO_METHOD)  # REST framework names those there are
    kind = _OF_STATUS.get(error.status_code)
    return None if kind is None else Problem(kind, str(error.detail))


def _flat(detail: Any, pointer: str, *, is_parameter: bool) -> Iterator[FieldError]:
    match detail:
        case dict():
            for name, inner in detail.items():
                below = pointer if name == "non_field_errors" else f"{pointer}/{_escaped(str(name))}"
                yield from _flat(inner, below, is_parameter=is_parameter)
        case list():
            for place, inner in enumerate(detail):
                # a list of sentences is about what it belongs to, one of anything else about its members
                below = pointer if isinstance(inner, str) else f"{pointer}/{place}"
                yield from _flat(inner, below, is_parameter=is_parameter)
        case _ if is_parameter:
            yield FieldError(str(detail), parameter=pointer.lstrip("/"))
        case _:
            yield FieldError(str(detail), pointer)


def _escaped(name: str) -> str:
    return _clean(name).replace("~", "~0").replace("/", "~1")


def _clean(text: str) -> str:
    """As UTF-8 can carry it, whatever a client called things."""
    return text.encode(errors="replace").decode()
