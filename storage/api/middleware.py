"""Under the API's address every error is one of its own, also those that arise before or beside its views."""

import json
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from storage.api import problems

PREFIX: Final = "/ui/api/v1/"
_KEPT: Final = ("Allow", "Retry-After", "WWW-Authenticate")


def problem_details(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.path.startswith(PREFIX) or response.status_code < 400 or _is_problem(response):
            return response
        written = problems.of_status(response.status_code).write(getattr(request, "number", ""))
        headers = {name: response.headers[name] for name in _KEPT if name in response.headers}
        body = json.dumps(written)
        return HttpResponse(
            body, status=response.status_code, content_type=problems.MEDIA_TYPE, headers=headers
        )

    return answer


def too_large(path: str) -> bytes:
    """The body of the answer to a request whose own is too large; empty where the API is not asked."""
    return (
        json.dumps(problems.Problem(problems.TOO_LARGE).write("")).encode()
        if path.startswith(PREFIX)
        else b""
    )


def _is_problem(response: HttpResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith(problems.MEDIA_TYPE)
