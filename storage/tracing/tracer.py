"""Tracer of a server: spans of requests, pages, statements and jobs."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from storage.core.tracer import Application, B, H, T, Table, Tracer, W
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.spans import current
from storage.tracing import pages, requests, statements
from storage.tracing.exporting import Telemetry
from storage.tracing.traces import Span


class TelemetryTracer(Tracer):
    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry

    def open(self) -> None:
        self.telemetry.open()
        statements.trace_connections()
        current.set(self.telemetry.roots)  # for jobs

    def close(self) -> None:
        self.telemetry.close()

    def trace_requests(
        self, serve: Callable[[H, B, W], Coroutine[Any, Any, None]]
    ) -> Callable[[H, B, W], Coroutine[Any, Any, None]]:
        def serve_traced(head: H, body: B, write: W) -> Coroutine[Any, Any, None]:
            span = requests.begin(self.telemetry, head)
            steps = serve(head, body, write)
            return steps if span is None else requests.run_within(span, steps)

        return serve_traced

    def finish_request(self, observed: ObservedRequest) -> None:
        span = current.get()
        if isinstance(span, Span):
            requests.describe(span, observed)
            span.finish()

    def trace_statement(self, run: Callable[[Table], Awaitable[T]]) -> Callable[[Table], Awaitable[T]]:
        return statements.traced(run)

    def trace_pages(self, application: Application) -> Application:
        return pages.TracedPages(application, self.telemetry)

    def trace_routes(self, handler: Any) -> None:
        pages.note_routes(handler)
