"""Spans of Table service requests, as children of the client's span if it sent a traceparent."""

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final

from storage.core.tracer import Head
from storage.domain.access.grants import Operation
from storage.domain.filters.access_plan import AccessPath, plan_access
from storage.domain.requests.cleaning import clean_words
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.outcomes import is_server_failure
from storage.domain.requests.spans import Parent, current
from storage.tracing.exporting import Telemetry
from storage.tracing.traces import ERROR, Span

_TEXT_LIMIT: Final = 256  # characters


def begin(telemetry: Telemetry, head: Head) -> Span | None:
    """Begin the span of a request; None if it is not sampled."""
    span = telemetry.begin(head.method, head.headers)
    if span is not None:
        span.attributes["http.request.method"] = head.method
        client_request_id = clean_words(_client_request_id(head))
        if client_request_id:
            span.attributes["az.client_request_id"] = _text(client_request_id)
    return span


async def run_within(span: Span, steps: Coroutine[Any, Any, None]) -> None:
    await _Within(span, steps)


class _Within:
    """Awaitable that runs a coroutine with a span as the current one.

    Requests are not tasks, so several share a context: the current span is set for each step only.
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


def describe(span: Span, observed: ObservedRequest) -> None:
    """Add attributes of a request to its span, without keys and values of entities."""
    operation, attributes = observed.operation, span.attributes
    attributes["az.service_request_id"] = observed.request_id
    attributes["tablero.authentication"] = observed.authentication.value
    attributes["http.request.body.size"] = observed.ingress
    attributes["http.response.body.size"] = observed.egress
    attributes["client.address"] = _text(observed.address)
    if observed.status:
        attributes["http.response.status_code"] = observed.status
    if operation is not None:
        span.name = operation
        attributes["tablero.operation"] = operation.value
    path = _access_path(observed)
    if path is not None:
        attributes["tablero.access_path"] = path.value
    for name, value in (
        ("tablero.account", observed.account),
        ("tablero.table", observed.table),
        ("user_agent.original", observed.agent.decode("latin-1")),
    ):
        if value:
            attributes[name] = _text(value)
    if observed.error or not observed.status:
        attributes[ERROR] = observed.error or "ClientDisconnected"
    span.failed = is_server_failure(observed.status)


def _client_request_id(head: Head) -> str:
    return head.headers.get(b"x-ms-client-request-id", b"")[:_TEXT_LIMIT].decode("latin-1")


def _access_path(observed: ObservedRequest) -> AccessPath | None:
    if observed.query is not None:
        return plan_access(observed.query.filter).path
    if observed.partition is None or observed.operation is Operation.ENTITY_GROUP_TRANSACTION:
        return None
    return AccessPath.POINT


def _text(value: str) -> str:
    """Truncate a text, replacing lone surrogates, which UTF-8 cannot encode."""
    return value[:_TEXT_LIMIT].encode(errors="replace").decode()
