"""The error pages. Those for server errors do not use the database."""

import logging
import sys

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from console.site import appearance, rate_limits
from console.site.access import RoleNeeded, users_with_role
from storage.domain.errors import OperationTimedOut, ServerBusy

logger = logging.getLogger(__name__)

UNAVAILABLE = (OperationalError, InterfaceError, OperationTimedOut, ServerBusy)  # the database
PAUSE = 5  # seconds until the page reloads itself


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig):
        size = int(request.headers.get("Content-Length") or 0)
        context = {"limit": settings.DATA_UPLOAD_MAX_MEMORY_SIZE, "size": size}
        return render(request, "413.html", context, status=413)
    return render(request, "400.html", status=400)


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Name the role that is missing, and the people who have it."""
    context: dict[str, object] = {"reason": str(exception)}
    if isinstance(exception, RoleNeeded):
        context["people"] = users_with_role(exception)
    return render(request, "403.html", context, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "404.html", status=404)


@login_not_required
def too_many(request: HttpRequest) -> HttpResponse:
    seconds = rate_limits.longest_wait(request)
    response = render(request, "429.html", {"seconds": seconds}, status=429)
    if seconds:
        response["Retry-After"] = str(seconds)
    return response


@login_not_required
def failed(request: HttpRequest) -> HttpResponse:
    number = getattr(request, "number", "")
    error = sys.exception()
    if isinstance(error, UNAVAILABLE):
        response = _bare(request, "503.html", {"pause": PAUSE}, status=503)
        response["Retry-After"] = str(PAUSE)
        return response
    logger.error("%s %s failed: request %s", request.method, request.path, number)
    return _bare(request, "500.html", {"number": number}, status=500)


def _bare(request: HttpRequest, template: str, context: dict[str, object], status: int) -> HttpResponse:
    """Render without context processors, one of which reads the user from the database."""
    seen = {"request": request, "appearance": appearance.read(request), "languages": settings.LANGUAGES}
    return HttpResponse(render_to_string(template, {**seen, **context}), status=status)


@login_not_required
def untrusted(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that was not sent by one of our pages, or by one that is too old."""
    return render(request, "403_csrf.html", status=403)
