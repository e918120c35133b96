"""The console's middleware: headers, time zone, compression and concurrent deletion."""

import uuid
import zoneinfo
from collections.abc import Callable
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils import timezone
from django.utils.cache import patch_vary_headers

from console.site import errors
from storage.domain.errors import InsufficientAccountPermissions, ResourceNotFound, TableNotFound

Next = Callable[[HttpRequest], HttpResponse]

# the console uses none of the browser's devices
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "fullscreen", "geolocation",
        "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture", "usb",
        "xr-spatial-tracking",
    )
)  # fmt: skip


def response_headers(get_response: Next) -> Next:
    def answer(request: HttpRequest) -> HttpResponse:
        request.number = uuid.uuid4().hex  # type: ignore[attr-defined]
        response = get_response(request)
        response.headers["X-Request-Id"] = request.number  # type: ignore[attr-defined]
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        # a page is for one user; views with secrets send no-store themselves
        response.headers.setdefault("Cache-Control", "private, no-cache")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ["Cookie", "HX-Request", "HX-Request-Type"])
        return response

    return answer


class ConcurrentDeletionMiddleware:
    """Answers 404 instead of 500 when somebody deletes a table while its page is made."""

    def __init__(self, get_response: Next) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        match exception:
            case TableNotFound() | ResourceNotFound():
                return errors.not_found(request, exception)
            case InsufficientAccountPermissions():
                return errors.forbidden(request, exception)
        return None


def time_zone(get_response: Next) -> Next:
    """Show times in the user's time zone."""

    def answer(request: HttpRequest) -> HttpResponse:
        with timezone.override(_zone(getattr(request.user, "time_zone", "UTC"))):
            return get_response(request)

    return answer


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):  # a zone that this machine does not know
        return None


class CompressionMiddleware(GZipMiddleware):
    """Compresses all but streams: each piece would be a gzip file of its own, and browsers read only the first."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming:
            return response
        return super().process_response(request, cast("HttpResponse", response))
