"""Conversion of errors at any stage of a request to problem details."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from storage.accounts.refusals import AccountIsBusy
from storage.domain.errors import NotImplemented, ServerBusy, StorageError
from storage.domain.refusals import Missing, Reason, Refused
from storage.domain.requests import spans
from storage.rest import problems
from storage.rest.problems import FieldError, Problem, replace_surrogates
from storage.transfer.file_work import TooMuchFileWork

RETRY_AFTER: Final = 5  # seconds
MOST_ERRORS: Final = 100  # that are listed; a body of 1 MiB can have 100,000


class InvalidParameters(exceptions.ValidationError):
    """The query string is invalid."""


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Convert an exception of a view to a response; None lets Django log it as a server error."""
    problem = problem_of(error)
    if problem is None:
        return None
    set_rollback()
    spans.note({"error.type": problem.code or problem.type.name})
    content = problem.serialize(getattr(context["request"], "number", ""))
    response = Response(content, status=problem.type.status, headers=dict(problem.headers))
    response.content_type = problems.MEDIA_TYPE
    return response


def problem_of(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case NotImplemented():
            # the state of a table is the reason, or a query, with the span at fault if a person wrote it
            is_of_state = error.refusal.reason is not Reason.OTHER and error.span is None
            return Problem(problems.CONFLICT if is_of_state else problems.INVALID, error.text, error.code)
        case StorageError():
            headers = {"Retry-After": str(RETRY_AFTER)} if isinstance(error, ServerBusy) else {}
            return Problem(
                problems.BY_STATUS.get(error.status, problems.FAILED), error.text, error.code, headers
            )
        case TooMuchFileWork():
            return Problem(problems.TOO_MANY, str(error), headers={"Retry-After": str(RETRY_AFTER)})
        case AccountIsBusy():
            return Problem(problems.CONFLICT, str(error), headers={"Retry-After": str(RETRY_AFTER)})
        case Missing():
            return Problem(problems.NOT_FOUND, str(error))
        case Refused():
            return Problem(problems.CONFLICT, str(error))
        case OperationalError() | InterfaceError():
            return Problem(problems.UNAVAILABLE, headers={"Retry-After": str(RETRY_AFTER)})
        case SuspiciousOperation():
            return Problem(problems.MALFORMED, "The request line or a header cannot be read.")
        case Http404() | ObjectDoesNotExist():  # it may have been deleted meanwhile
            return Problem(problems.NOT_FOUND)
        case PermissionDenied():
            return Problem(problems.FORBIDDEN)
        case exceptions.APIException():
            return _from_framework(error)
    return None


def _from_framework(error: exceptions.APIException) -> Problem | None:
    match error:
        case exceptions.ValidationError():
            in_query = isinstance(error, InvalidParameters)
            errors = _flatten(error.detail, "", in_query=in_query)
            return Problem(problems.INVALID, errors=list(islice(errors, MOST_ERRORS)))
        case exceptions.ParseError():
            return Problem(problems.MALFORMED, str(error.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            header = getattr(error, "auth_header", "Bearer")
            return Problem(problems.UNAUTHENTICATED, str(error.detail), headers={"WWW-Authenticate": header})
        case exceptions.Throttled():
            return Problem(problems.TOO_MANY, headers={"Retry-After": str(int(error.wait or 1))})
        case exceptions.MethodNotAllowed():
            return Problem(problems.NO_METHOD)  # REST framework adds the Allow header
    kind = problems.BY_STATUS.get(error.status_code)
    return None if kind is None else Problem(kind, str(error.detail))


def _flatten(detail: Any, pointer: str, *, in_query: bool) -> Iterator[FieldError]:
    match detail:
        case dict():
            for name, inner in detail.items():
                escaped = replace_surrogates(str(name)).replace("~", "~0").replace("/", "~1")
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
