"""Interface for tracing requests in the engine; jobs and steps open spans through storage.domain.requests.spans."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, Protocol, TypeVar

from storage.domain.requests.observed import ObservedRequest

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Head(Protocol):
    """Parts of a request's head that a trace uses."""

    @property
    def method(self) -> str: ...

    @property
    def headers(self) -> Mapping[bytes, bytes]: ...


H = TypeVar("H", bound=Head)
B = TypeVar("B")
W = TypeVar("W")
T = TypeVar("T")
Table = TypeVar("Table")


class Tracer(ABC):
    """Interface of a tracer, which makes spans of requests; the engine skips all calls without one."""

    @abstractmethod
    def open(self) -> None:
        """Start tracing; tasks created afterwards in this context can open spans of jobs."""

    @abstractmethod
    def close(self) -> None:
        """Send the remaining spans; this takes up to a few seconds."""

    @abstractmethod
    def trace_requests(
        self, serve: Callable[[H, B, W], Coroutine[Any, Any, None]]
    ) -> Callable[[H, B, W], Coroutine[Any, Any, None]]:
        """Wrap a handler of Table service requests so that each is a span."""

    @abstractmethod
    def finish_request(self, observed: ObservedRequest) -> None:
        """Describe the current request in its span, and end the span."""

    @abstractmethod
    def trace_statement(self, run: Callable[[Table], Awaitable[T]]) -> Callable[[Table], Awaitable[T]]:
        """Wrap a function so that each statement of a traced request is a span."""

    @abstractmethod
    def trace_pages(self, application: Application) -> Application:
        """Wrap an ASGI application of the console and management API so that each request is a span."""

    @abstractmethod
    def trace_routes(self, handler: Any) -> None:
        """Make a Django handler note the route of a request in its span."""
