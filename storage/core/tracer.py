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
    """The part of a request's head that a trace needs."""

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
        """Begin to trace. Tasks that are made in the present context afterwards can open spans of jobs."""

    @abstractmethod
    def close(self) -> None:
        """Send the remaining spans; this takes up to a few seconds."""

    @abstractmethod
    def trace_requests(
        self, serve: Callable[[H, B, W], Coroutine[Any, Any, None]]
    ) -> Callable[[H, B, W], Coroutine[Any, Any, None]]:
        """Return a function that serves requests of the Table service, each as a span."""

    @abstractmethod
    def finish_request(self, observed: ObservedRequest) -> None:
        """Describe the request that is under way in its span, and end that."""

    @abstractmethod
    def trace_statement(self, run: Callable[[Table], Awaitable[T]]) -> Callable[[Table], Awaitable[T]]:
        """Return a function that runs a statement as a span, if its request has one."""

    @abstractmethod
    def trace_pages(self, application: Application) -> Application:
        """Return an application that serves requests to the console and the management API, each as a span."""

    @abstractmethod
    def trace_routes(self, handler: Any) -> None:
        """Let a handler of Django note in spans which page a request is for."""
