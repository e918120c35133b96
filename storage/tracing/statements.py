"""Spans of SQL statements, of the protocol and of Django, one per round trip."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from django.db.backends.signals import connection_created

from storage.core.tracer import T, Table
from storage.domain.requests.spans import Attributes, current, span
from storage.tracing.traces import Span

_NAME: Final = "postgresql"
_TRACED: Final = "tablero_traced"  # an attribute of a connection


def traced(run: Callable[[Table], Awaitable[T]]) -> Callable[[Table], Awaitable[T]]:
    """Wrap a statement runner so that statements of traced requests are spans."""
    parent = current.get()
    if not isinstance(parent, Span):
        return run

    async def run_traced(known: Table) -> T:
        with parent.span(_NAME, _describe(), is_root=False):
            return await run(known)

    return run_traced


def trace_connections() -> None:
    """Make each statement on Django's connections a span of its request or job."""
    connection_created.connect(_trace_connection, dispatch_uid=_TRACED)


def _trace_connection(connection: Any, **_: object) -> None:
    if _execute not in connection.execute_wrappers:
        connection.execute_wrappers.append(_execute)


def _execute(execute: Callable[..., Any], sql: object, params: object, many: bool, context: object) -> Any:
    with span(_NAME, _describe(sql)):
        return execute(sql, params, many, context)


def _describe(sql: object = "") -> Attributes:
    """Return attributes of a statement without its text, which may contain values."""
    attributes: Attributes = {"db.system.name": "postgresql"}
    words = sql.split(None, 1) if isinstance(sql, str) else ()
    if words:
        attributes["db.operation.name"] = words[0].upper()
    return attributes
