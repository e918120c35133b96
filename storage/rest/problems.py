"""Problem details, the error format of the API; `exceptions` converts exceptions of views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

MEDIA_TYPE: Final = "application/problem+json"
DOCUMENTED_AT: Final = "/ui/api/docs/"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """Type of a problem; ``name`` is part of its URL and never changes, ``description`` is for documentation."""

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
    "A member or parameter is missing, unknown or malformed; `errors` lists each one, up to a hundred.",
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
EXPIRED_TOKEN: Final = ProblemType(
    "expired-token",
    410,
    "The changes are no longer known",
    "The changes after the token or the time are no longer kept, or the token belongs to another database.",
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
    MALFORMED, INVALID, UNAUTHENTICATED, OUT_OF_SCOPE, FORBIDDEN, NOT_FOUND, NO_METHOD, CONFLICT, EXPIRED_TOKEN,
    PRECONDITION, TOO_LARGE, MEDIA_TYPE_REFUSED, KEY_REUSED, TOO_MANY, FAILED, UNAVAILABLE,
)  # fmt: skip
BY_STATUS: Final = {
    kind.status: kind for kind in reversed(PROBLEM_TYPES) if kind not in (MALFORMED, OUT_OF_SCOPE)
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error at a ``pointer`` into the body (RFC 6901), or in a query ``parameter``."""

    detail: str
    pointer: str = ""
    parameter: str = ""

    def serialize(self) -> dict[str, str]:
        where = {"parameter": self.parameter} if self.parameter else {"pointer": f"#{self.pointer}"}
        return {**where, "detail": replace_surrogates(self.detail)}


@dataclass(slots=True)
class Problem(Exception):
    """Problem that a view raises; exceptions.problem_of converts every other error."""

    type: ProblemType
    detail: str = ""
    code: str = ""  # the Table service's own code
    headers: Mapping[str, str] = field(default_factory=dict)
    errors: Sequence[FieldError] = ()

    def serialize(self, request_id: str) -> dict[str, Any]:
        members = {
            "type": self.type.url,
            "title": self.type.title,
            "status": self.type.status,
            "detail": replace_surrogates(self.detail),
            "code": self.code,
            "instance": f"urn:uuid:{request_id}" if request_id else "",
            "errors": [error.serialize() for error in self.errors],
        }
        return {name: value for name, value in members.items() if value}


def invalid(detail: str, pointer: str = "") -> Problem:
    return Problem(INVALID, detail, errors=[FieldError(detail, pointer)])


def from_status(status: int) -> Problem:
    """Return the problem for an error response from another part of the server."""
    kind = BY_STATUS.get(status) or ProblemType("other", status, HTTPStatus(status).phrase, "")
    return Problem(kind)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()
