"""Spans of console and management API requests, by wrapping their ASGI application."""

from collections.abc import MutableMapping
from typing import Any, Final

from storage.core.tracer import Application, Receive, Scope, Send
from storage.domain.requests import spans
from storage.domain.requests.cleaning import addressed_names
from storage.domain.requests.spans import current
from storage.tracing.exporting import Telemetry
from storage.tracing.traces import ERROR, Span

ROUTE: Final = "http.route"
_STREAM: Final = b"text/event-stream"


class TracedPages:
    def __init__(self, application: Application, telemetry: Telemetry) -> None:
        self._application = application
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        span = self._telemetry.begin(scope["method"], dict(scope["headers"]))
        if span is None:
            await self._application(scope, receive, send)
            return
        span.attributes["http.request.method"] = scope["method"]

        async def send_noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                _note_response(span, message)
                if _is_stream(message):
                    span.finish()  # the rest of a stream may last for hours
            await send(message)

        token = current.set(span)
        try:
            await self._application(scope, receive, send_noted)
        finally:
            current.reset(token)
            if not span.end:
                span.finish()


def note_routes(handler: Any) -> None:
    """Wrap a Django handler so that spans note the route and the arguments that are not keys of entities."""
    resolve = handler.resolve_request

    def resolve_noted(request: Any) -> Any:
        match = resolve(request)
        spans.note({"http.route": f"/{match.route}"})
        spans.note({f"tablero.{name}": text for name, text in addressed_names(match.kwargs).items()})
        return match

    handler.resolve_request = resolve_noted


def _note_response(span: Span, message: MutableMapping[str, Any]) -> None:
    status = message["status"]
    span.attributes["http.response.status_code"] = status
    span.failed = status >= 500
    if span.failed:
        span.attributes.setdefault(ERROR, str(status))
    for name, value in message["headers"]:
        if name.lower() == b"x-request-id":
            span.attributes["tablero.request_id"] = value.decode("latin-1")
    span.name = f"{span.name} {span.attributes.get(ROUTE, '')}".strip()


def _is_stream(message: MutableMapping[str, Any]) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(_STREAM) for name, value in message["headers"]
    )
