"""Middleware that turns every error below the API's path into problem details."""

import json
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from storage.rest import problems

PREFIX: Final = "/ui/api/v1/"
_PRESERVED_HEADERS: Final = ("Allow", "Retry-After", "WWW-Authenticate")


def problem_details(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_problem = response.headers.get("Content-Type", "").startswith(problems.MEDIA_TYPE)
        if not request.path.startswith(PREFIX) or response.status_code < 400 or is_problem:
            return response
        problem = problems.from_status(response.status_code).serialize(getattr(request, "number", ""))
        return HttpResponse(
            json.dumps(problem),
            status=response.status_code,
            content_type=problems.MEDIA_TYPE,
            headers={name: response.headers[name] for name in _PRESERVED_HEADERS if name in response.headers},
        )

    return respond


def unavailable(request: HttpRequest, reason: str) -> HttpResponse:
    """Respond that the server cannot serve the request, with a reason."""
    problem = problems.Problem(problems.UNAVAILABLE, reason).serialize(getattr(request, "number", ""))
    return HttpResponse(json.dumps(problem), status=503, content_type=problems.MEDIA_TYPE)


def refused_body(status: int, path: str) -> bytes:
    """Return the response body for a request whose body was not read; empty outside the API."""
    if not path.startswith(PREFIX):
        return b""
    return json.dumps(problems.from_status(status).serialize("")).encode()
