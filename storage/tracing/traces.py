"""Traces of requests and jobs, recorded cheaply and handed to the exporter afterwards.

The SDK's own spans are made while a request is processed and cost several times as much. Here a request keeps
only names and times; its spans are made after the response.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol

from storage.domain.errors import StorageError
from storage.domain.requests.outcomes import is_server_failure
from storage.domain.requests.spans import Attributes, Parent, current

ERROR: Final = "error.type"
_MOST: Final = 500  # spans of a trace; further ones are only counted


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a trace: its id, and the client's span if it sent one."""

    trace_id: int
    parent: object | None = None  # a SpanContext


class Source(Protocol):
    """Source of span ids, and receiver of ended traces."""

    def new_span_id(self) -> int: ...

    def take(self, trace: "Trace") -> None: ...


class Trace:
    """Trace of a request or job turn: its spans in order of their ends; the last is the root."""

    __slots__ = ("ended", "is_server", "missed", "offset", "origin", "source")

    def __init__(self, source: Source, origin: Origin, *, is_server: bool) -> None:
        self.source = source
        self.origin = origin
        self.is_server = is_server
        self.offset = time.time_ns() - time.perf_counter_ns()  # offset of the wall clock
        self.ended: list[Span] = []
        self.missed = 0


class Span:
    """Open span of a block; times are nanoseconds of perf_counter."""

    __slots__ = ("_before", "attributes", "began", "end", "failed", "id", "name", "parent", "root", "trace")

    def __init__(self, trace: Trace, name: str, attributes: Attributes, parent: "Span | None" = None) -> None:
        self.trace = trace
        self.name = name
        self.attributes = attributes
        self.parent = parent
        self.root: Span = self if parent is None else parent.root
        self.id = trace.source.new_span_id()
        self.failed = False
        self.end = 0
        self._before: Parent | None = None
        self.began = time.perf_counter_ns()

    def span(self, name: str, attributes: Attributes, *, is_root: bool) -> "Span":
        return Span(self.trace, name, attributes, self)

    def note(self, attributes: Attributes) -> None:
        self.root.attributes.update(attributes)

    def finish(self) -> None:
        """End the span, and with the root span the trace."""
        self.end = time.perf_counter_ns()
        trace = self.trace
        if self.parent is None:
            if trace.missed:
                self.attributes["tablero.missed_spans"] = trace.missed
            trace.ended.append(self)
            trace.source.take(trace)
        elif len(trace.ended) < _MOST:
            trace.ended.append(self)
        else:
            trace.missed += 1

    def __enter__(self) -> Attributes:
        self._before = current.get()
        current.set(self)
        return self.attributes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        current.set(
            self._before
        )  # a request may go on in another context than it began in: a token would be refused
        if isinstance(error, Exception):
            self.attributes[ERROR] = error.code if isinstance(error, StorageError) else type(error).__name__
            self.failed = not isinstance(error, StorageError) or is_server_failure(error.status)
        self.finish()


class Roots:
    """Opener of root spans for jobs."""

    def __init__(self, begin: Callable[[str, Attributes], Span | None]) -> None:
        self._begin = begin

    def span(self, name: str, attributes: Attributes, *, is_root: bool) -> AbstractContextManager[Attributes]:
        found = self._begin(name, attributes) if is_root else None
        return nullcontext({}) if found is None else found

    def note(self, attributes: Attributes) -> None:
        pass
