"""The server's metrics, for a Prometheus that has the token."""

import asyncio
import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse

from storage.operations import prometheus


async def metrics(request: HttpRequest) -> HttpResponse:
    token: str = settings.OPTIONS.metrics_token
    if not token:
        raise Http404
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token.encode()):
        return HttpResponse(
            "The token is missing or wrong.\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return HttpResponse(await asyncio.to_thread(prometheus.write), content_type=prometheus.CONTENT_TYPE)
