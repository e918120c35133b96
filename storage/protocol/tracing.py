"""The Table service with traces: each request a span, under that of the client if it sent a traceparent."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final

from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.requests.cleaning import clean_words
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.outcomes import is_server_failure
from storage.domain.requests.spans import Parent, current
from storage.protocol.call import ServerSettings
from storage.protocol.http_exchange import Write
from storage.protocol.http_request import RequestBody, RequestHead
from storage.protocol.table_service import TableService
from storage.runtime.telemetry.exporting import Telemetry
from storage.runtime.telemetry.service import TracedService, trace_connections
from storage.runtime.telemetry.traces import ERROR, Span

_TEXT_LIMIT: Final = 256  # characters


class TracedTableService(TableService):
    service_type = TracedService

    def __init__(self, settings: ServerSettings, telemetry: Telemetry) -> None:
        super().__init__(settings)
        self._telemetry = telemetry

    async def startup(self) -> None:
        self._telemetry.open()
        trace_connections()
        current.set(self._telemetry.roots)  # for the jobs, which start here
        await super().startup()

    async def shutdown(self) -> None:
        await super().shutdown()
        await asyncio.to_thread(self._telemetry.close)

    def serve(self, head: RequestHead, body: RequestBody, write: Write) -> Coroutine[Any, Any, None]:
        span = self._telemetry.begin(head.method, head.headers)
        steps = super().serve(head, body, write)
        return steps if span is None else _run_within(span, steps)

    def _record(self, head: RequestHead, observed: ObservedRequest) -> None:
        super()._record(head, observed)
        span = current.get()
        if isinstance(span, Span):
            _describe(span, head, observed)
            span.finish()


async def _run_within(span: Span, steps: Coroutine[Any, Any, None]) -> None:
    await _Within(span, steps)


class _Within:
    """Runs a coroutine with a span as the current one.

    Requests are no tasks, so several share a context: what is open is set for each step only.
    """

    def __init__(self, span: Span, steps: Coroutine[Any, Any, None]) -> None:
        self._open: Parent | None = span
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, None]:
        following: Callable[[], Any] = partial(self._steps.send, None)
        while True:
            token = current.set(self._open)
            try:
                future = following()
            except StopIteration:
                return
            finally:
                self._open = current.get()
                current.reset(token)
            try:
                yield future
            except BaseException as error:
                following = partial(self._steps.throw, error)
            else:
                following = partial(self._steps.send, None)


def _describe(span: Span, head: RequestHead, observed: ObservedRequest) -> None:
    """Note what is known of a request, without keys and values of entities."""
    operation, attributes = observed.operation, span.attributes
    span.name = operation or head.method
    attributes["http.request.method"] = head.method
    attributes["az.service_request_id"] = observed.request_id
    attributes["tablero.authentication"] = observed.authentication.value
    attributes["http.request.body.size"] = observed.ingress
    attributes["http.response.body.size"] = observed.egress
    attributes["client.address"] = _text(observed.address)
    if observed.status:
        attributes["http.response.status_code"] = observed.status
    if operation is not None:
        attributes["tablero.operation"] = operation.value
    path = _access_path(observed)
    if path is not None:
        attributes["tablero.access_path"] = path.value
    for name, value in (
        ("tablero.account", observed.account),
        ("tablero.table", observed.table),
        ("user_agent.original", observed.agent.decode("latin-1")),
        ("az.client_request_id", clean_words(_client_request_id(head))),
    ):
        if value:
            attributes[name] = _text(value)
    if observed.error or not observed.status:
        attributes[ERROR] = observed.error or "ClientDisconnected"
    span.failed = is_server_failure(observed.status)


def _client_request_id(head: RequestHead) -> str:
    return head.headers.get(b"x-ms-client-request-id", b"")[:_TEXT_LIMIT].decode("latin-1")


def _access_path(observed: ObservedRequest) -> AccessPath | None:
    if observed.query is not None:
        return plan_access(observed.query.filter).path
    if observed.partition is None or observed.operation is Operation.ENTITY_GROUP_TRANSACTION:
        return None
    return AccessPath.POINT


def _text(value: str) -> str:
    """Cut a text, and replace lone surrogates, which UTF-8 cannot encode."""
    return value[:_TEXT_LIMIT].encode(errors="replace").decode()
