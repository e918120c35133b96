"""Endpoints for monitoring: liveness, readiness and metrics.

These paths bypass the console's middleware, which runs in a thread that probes do not need.
"""

import asyncio
import hmac
import math
from time import monotonic
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import ResolverMatch

from storage.domain.errors import ServerBusy
from storage.health import database_version, disk
from storage.runtime import prometheus
from storage.runtime.threads import in_probe_thread

PATHS: Final = frozenset({"/ui/healthz", "/ui/readyz", "/ui/metrics"})
_CACHED_FOR: Final = 1.0  # seconds; many probes must not keep the database busy


class ProbeHandler(ASGIHandler):
    """Django without middleware, and with the URLs of probes alone."""

    def load_middleware(self, is_async: bool = True) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        respond: Any = self._get_response_async  # type: ignore[attr-defined]
        self._middleware_chain = convert_exception_to_response(respond)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        request.urlconf = "console.site.probe_urls"
        return super().resolve_request(request)


@login_not_required
async def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "alive"})


@login_not_required
async def ready(request: HttpRequest) -> JsonResponse:
    reason = await _readiness.reason()
    if reason:
        return JsonResponse({"status": "unavailable", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


class _Readiness:
    def __init__(self) -> None:
        self._reason = ""
        self._checked_at = -math.inf
        self._checking = asyncio.Lock()

    async def reason(self) -> str:
        """Return why the process cannot serve; empty if ready."""
        async with self._checking:
            if monotonic() - self._checked_at > _CACHED_FOR:
                self._reason = await _check()
                self._checked_at = monotonic()
        return self._reason


async def _check() -> str:
    try:
        return await in_probe_thread(_explain_version)
    except (DatabaseError, ServerBusy):
        return disk.reason_for_no_database()


def _explain_version() -> str:
    if database_version.is_older():
        return "The database is not migrated."
    return database_version.explain_newer()


_readiness: Final = _Readiness()


@login_not_required
async def metrics(request: HttpRequest) -> HttpResponse:
    """Respond with the server's metrics, if the metrics token is correct."""
    token: str = settings.OPTIONS.metrics_token
    if not token:
        return HttpResponse("This server shows no metrics.\n", status=404, content_type="text/plain")
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token.encode()):
        return HttpResponse(
            "The token is missing or wrong.\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return HttpResponse(await asyncio.to_thread(prometheus.write), content_type=prometheus.CONTENT_TYPE)
