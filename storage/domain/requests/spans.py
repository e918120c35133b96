"""Spans of a trace in the current context; without tracing, nothing happens.

Tracing sets ``current``. All other code only says which step begins: ``with span("step"): ...``.
"""

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

Attributes = MutableMapping[str, str | int | float | bool]


class Parent(Protocol):
    """A span that is open, or what opens spans that have no parent."""

    def span(self, name: str, attributes: Attributes, *, is_root: bool) -> AbstractContextManager[Attributes]:
        """Open a span; any other than a root needs a parent."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes to the root of the open span."""


current: ContextVar[Parent | None] = ContextVar("span", default=None)


def span(
    name: str, attributes: Attributes | None = None, *, is_root: bool = False
) -> AbstractContextManager[Attributes]:
    """Open a span for a block, which gets its attributes; ``is_root``: also one without a parent."""
    parent = current.get()
    if parent is None:
        return nullcontext({})
    return parent.span(name, attributes or {}, is_root=is_root)


def note(attributes: Attributes) -> None:
    """Add attributes to the request that is under way."""
    parent = current.get()
    if parent is not None:
        parent.note(attributes)


def carried(operation: Callable[[], T]) -> Callable[[], T]:
    """Bind an operation to the current span, so that it can run in another thread."""
    parent = current.get()
    if parent is None:
        return operation

    def run() -> T:
        token = current.set(parent)
        try:
            return operation()
        finally:
            current.reset(token)

    return run
