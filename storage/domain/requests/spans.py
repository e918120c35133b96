"""Tracing spans in the current context; no-ops without tracing."""

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

Attributes = MutableMapping[str, str | int | float | bool]


class Parent(Protocol):
    """Open span, or the opener of root spans."""

    def span(self, name: str, attributes: Attributes, *, is_root: bool) -> AbstractContextManager[Attributes]:
        """Open a span; any other than a root needs a parent."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes to the root of the open span."""


current: ContextVar[Parent | None] = ContextVar("span", default=None)


def span(
    name: str, attributes: Attributes | None = None, *, is_root: bool = False
) -> AbstractContextManager[Attributes]:
    """Open a span for a block; with ``is_root``, also without a parent."""
    parent = current.get()
    if parent is None:
        return nullcontext({})
    return parent.span(name, attributes or {}, is_root=is_root)


def note(attributes: Attributes) -> None:
    """Add attributes to the span of the current request."""
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
