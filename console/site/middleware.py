"""The console's middleware: headers, redirects, time zone, compression, upgrades and concurrent deletion."""

import logging
import uuid
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers

from console.site import errors, time_zones
from console.site.addresses import split_url
from console.site.log_fields import describe_address, log_fields
from console.site.responses import is_script, wants_part
from storage.domain.errors import InsufficientAccountPermissions, ResourceNotFound, TableNotFound
from storage.domain.requests.cleaning import clean_method
from storage.domain.requests.observed import REFUSALS
from storage.health import database_version
from storage.rest import middleware as api

logger = logging.getLogger(__name__)

Next = Callable[[HttpRequest], HttpResponse]
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
# also statuses of invalid input
_LOGGED: Final = (*REFUSALS, 400, 405, 413, 415, 422)
SECURE_PREFIX: Final = "__Secure-"
SIGN_IN: Final = "X-Tablero-Sign-In"  # where a script has its user sign in

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
        if response.status_code in _LOGGED:
            _log_refusal(request, response.status_code)
        if request.is_secure() and not _is_local(request):
            # sent with 0 too: a browser that knows an earlier value forgets it
            response.headers["Strict-Transport-Security"] = settings.STRICT_TRANSPORT_SECURITY
        # a page is for one user; views with secrets send no-store themselves
        response.headers.setdefault("Cache-Control", "private, no-cache")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ["Cookie", "HX-Request", "HX-Request-Type"])
            response.headers["Speculation-Rules"] = f'"{static("console/site/pressed.rules")}"'
        return response

    return answer


def cookie_names(get_response: Next) -> Next:
    """Put ``__Secure-`` before the names of cookies over TLS, so that nothing without TLS can set them.

    ``__Host-`` needs the path /, and the Table service, which shares the host, would get the cookies. Without TLS,
    as on loopback, browsers refuse the prefix. Plain names still count over TLS: sessions of 1.0 have them.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        is_secure = request.is_secure()  # also where a trusted proxy has TLS
        if is_secure:
            prefixed = {name: it for name, it in request.COOKIES.items() if name.startswith(SECURE_PREFIX)}
            request.COOKIES.update({name.removeprefix(SECURE_PREFIX): it for name, it in prefixed.items()})
        response = get_response(request)
        if getattr(request, "session", None) is not None and request.session.has_former_key:  # type: ignore[attr-defined]
            response.cookies.pop(settings.SESSION_COOKIE_NAME, None)
        for name in list(response.cookies) if is_secure else ():
            cookie = response.cookies.pop(name)
            cookie.set(SECURE_PREFIX + name, cookie.value, cookie.coded_value)
            cookie["secure"] = True
            response.cookies[cookie.key] = cookie
        return response

    return answer


def _log_refusal(request: HttpRequest, status: int) -> None:
    fields = log_fields(request)
    logger.info(
        "%s %s refused with %d to %s from %s: request %s",
        clean_method(request.method or ""),
        describe_address(request),
        status,
        fields["user"] or "an unknown user",
        request.META.get("REMOTE_ADDR", ""),
        fields["request_id"],
        extra=fields,
    )


def _is_local(request: HttpRequest) -> bool:
    """Return whether the browser uses localhost for the server."""
    return request.get_host().partition(":")[0].rpartition(".")[2] == "localhost"


def script_redirects(get_response: Next) -> Next:
    """Let pages follow redirects that their scripts cannot."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        target = response.headers.get("Location", "")
        if response.status_code == 307:
            return response  # the same request at another address, which scripts send
        if target and request.headers.get("Accept") == "text/event-stream":
            del response.headers["Location"]
            response.status_code = 204  # a page is no stream, which browsers would report as an error
            return response
        if not target or not is_script(request):
            return response
        path = split_url(target).path
        if path in (reverse("account_login"), reverse("account_reauthenticate")) and path != request.path:
            return _tell(response, 401, SIGN_IN, f"{path}?{urlencode({'next': reverse('people:signed_in')})}")
        if request.method == "POST" and not wants_part(request) and request.headers.get("HX-Request"):
            return _tell(response, 204, "HX-Redirect", target)
        return response

    return answer


def _tell(response: HttpResponse, status: int, header: str, address: str) -> HttpResponse:
    """Replace a redirect by a header, keeping its cookies."""
    del response.headers["Location"]
    response.status_code, response.headers[header] = status, address
    return response


def refuse_outdated(get_response: Next) -> Next:
    """Respond 503 to writes while the database belongs to a newer version."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.method in _SAFE or not database_version.is_outdated():
            return get_response(request)
        if request.path.startswith(api.PREFIX):
            return api.unavailable(request, database_version.explain_outdated())
        return errors.outdated(request)

    return answer


def lead_from_forms(get_response: Next) -> Next:
    """Replace a bare 405 response to a GET by a page that links to the parent page."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_page = (
            request.method == "GET" and not is_script(request) and not request.path.startswith(api.PREFIX)
        )
        if response.status_code != 405 or not is_page:
            return response
        page = errors.not_allowed(request)
        page.headers["Allow"] = response.headers["Allow"]
        return page

    return answer


class ConcurrentDeletionMiddleware:
    """Middleware that responds 404 instead of 500 when a table is deleted during a request."""

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
    """Use the user's time zone, or else the browser's."""

    def answer(request: HttpRequest) -> HttpResponse:
        with timezone.override(time_zones.find_zone(request)):
            return get_response(request)

    return answer


class CompressionMiddleware(GZipMiddleware):
    """Compression of all responses but streams, as browsers would read only the first piece of these."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming:
            return response
        return super().process_response(request, cast("HttpResponse", response))
