"""The server's metrics, for a Prometheus that has the token."""

import asyncio
import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse

from storage.operations import prometheus


@login_not_required
async def metrics(request: HttpRequest) -> HttpResponse:
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
