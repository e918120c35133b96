"""Synchronous executor of statements on Django's connection, in the current transaction if any."""

import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, cast

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from psycopg.adapt import Dumper
from psycopg.pq import Format

from storage.domain.errors import OperationTimedOut, ServerBusy
from storage.domain.requests.spans import span
from storage.sql.failures import ATTEMPTS, Canceled, NodeLost, RolledBack, failure, pause_before_repeat
from storage.sql.forms import EXTENSIONS
from storage.sql.lanes import SETTINGS, WITH_EXTENSION
from storage.sql.statement import ChangedMeanwhile, Statement

P = ParamSpec("P")
T = TypeVar("T")

# among Django's databases only beside a pooler in transaction mode, which ``default`` is then
SESSION: Final = "session"


class _Encoded(bytes):
    """Parameter in PostgreSQL's binary format."""


class _EncodedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the server knows the type from the statement

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


def run(statement: Statement[T]) -> T:
    """Run a statement, converting failures to the service's errors."""
    if connection.in_atomic_block:
        return _run(statement)
    return _repeat(lambda: _run(statement))


def repeatable(operation: Callable[P, T]) -> Callable[P, T]:
    """Run a function in a transaction, retrying it when a concurrent statement rolls it back.

    In the caller's transaction it runs in a savepoint.
    """
    in_transaction = transaction.atomic(operation)

    @wraps(operation)
    def run_repeatedly(*args: P.args, **kwargs: P.kwargs) -> T:
        return _repeat(lambda: in_transaction(*args, **kwargs))

    return run_repeatedly


def _repeat(attempt: Callable[[], T]) -> T:
    for number in range(ATTEMPTS):
        try:
            return attempt()
        except RolledBack:
            time.sleep(pause_before_repeat(number))
    raise ServerBusy


def repeatable_on_nodes(operation: Callable[P, T]) -> Callable[P, T]:
    """Run a function that changes relations on nodes in a transaction, retrying it once after NodeLost.

    After the restart of a node, the first transaction of a session that uses its old connection fails. In the
    caller's transaction the function runs in a savepoint, once.
    """
    in_transaction = transaction.atomic(operation)

    @wraps(operation)
    def run_repeatedly(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return in_transaction(*args, **kwargs)
        except NodeLost:
            if connection.in_atomic_block:
                raise
            try:
                for extension in EXTENSIONS:
                    execute(extension.renewal)
            except DatabaseError:
                raise ServerBusy from None
        return in_transaction(*args, **kwargs)

    return run_repeatedly


def _run(statement: Statement[T]) -> T:
    connection.ensure_connection()
    parameters = [_Encoded(it) if isinstance(it, bytes) else it for it in statement.parameters]
    # past Django's cursor, and so past what traces that
    with (
        span("postgresql", {"db.system.name": "postgresql"}),
        psycopg.RawCursor(connection.connection) as cursor,
    ):
        cursor.adapters.register_dumper(_Encoded, _EncodedDumper)
        try:
            cursor.execute(statement.text.encode(), parameters or None)
        except psycopg.Error as error:
            raise failure(error.sqlstate, error.diag.message_primary or "") from error
        assert cursor.pgresult is not None
        result = cursor.pgresult
    if statement.reason is not None and result.ntuples == 0:
        return _run_reason(statement, statement.reason)
    return statement.read(result)


def _run_reason(statement: Statement[T], reason: Statement[T]) -> T:
    try:
        return run(reason)
    except ChangedMeanwhile:
        if statement.locking is None:
            raise
        return run(statement.locking())


def run_in_lane(statement: Statement[T], *, settings: str = "", limit: timedelta | None = None) -> T:
    """Run a statement with the planner settings of its lane, or the given ``SET`` commands."""
    settings = settings or SETTINGS[statement.lane]
    if limit is not None:
        settings += f"; SET {_time_limit(limit)}"
    is_nested = connection.in_atomic_block
    with transaction.atomic():
        execute(f"{settings.replace('SET ', 'SET LOCAL ')}; {WITH_EXTENSION.format(is_local=True)}")
        result = run(statement)
        if is_nested:
            execute(re.sub(r"SET (\w+) = [^;]+", r"SET LOCAL \1 TO DEFAULT", settings))
        return result


def run_limited(statement: Statement[T], limit: timedelta, *, settings: str = "") -> T:
    """Run a statement like ``run_in_lane`` with a time limit; raises OperationTimedOut."""
    try:
        return run_in_lane(statement, settings=settings, limit=limit)
    except Canceled:
        raise OperationTimedOut from None


def _time_limit(limit: timedelta) -> str:
    return f"statement_timeout = {limit // timedelta(milliseconds=1)}"


@contextmanager
def in_session() -> Iterator[None]:
    """Keep one PostgreSQL session for the block, across transactions."""
    pooled = connections[DEFAULT_DB_ALIAS]
    direct = connections[SESSION] if SESSION in connections else pooled  # noqa: SIM401 - it has no get()
    if pooled is direct or pooled.in_atomic_block:
        yield
        return
    connections[DEFAULT_DB_ALIAS] = direct
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = pooled
        direct.close()  # back to its pool


def release_connection() -> None:
    """Release Django's connection to its pool, unless a transaction is open."""
    if not connection.in_atomic_block:
        connection.close()


@contextmanager
def beside_transaction() -> Iterator[None]:
    """Use a connection of its own in the block, whose commits others see before the open transaction ends."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = beside = usual.copy(alias=DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        beside.close()


_loses_locks: ContextVar[bool] = ContextVar("loses_locks", default=False)


# connections that requests of the console cannot take: one for each thread that needs one
RESERVED_CONNECTIONS: Final = 5
_RESERVED: Final = "reserved"


@contextmanager
def reserved_connection() -> Iterator[None]:
    """Use the connection pool reserved for the Table service and probes in the block."""
    usual = connections[DEFAULT_DB_ALIAS]
    reserved = usual.copy(alias=_RESERVED)
    pool = reserved.settings_dict["OPTIONS"].get("pool")
    if pool:
        pool["max_size"] = RESERVED_CONNECTIONS
    connections[DEFAULT_DB_ALIAS] = connections[_RESERVED] = reserved
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        reserved.close()  # back to its pool


@contextmanager
def losing_locks() -> Iterator[None]:
    """Have PostgreSQL terminate this session and its locks if the client stops responding."""
    if _loses_locks.get():
        yield
        return
    fetch(_LOSE_LOCKS)
    token = _loses_locks.set(True)
    try:
        yield
    finally:
        _loses_locks.reset(token)
        if connection.is_usable() and not connection.needs_rollback:
            fetch(_KEEP_LOCKS)


def server_version() -> int:
    """Return the PostgreSQL version as a number, such as 18_00_04."""
    connection.ensure_connection()
    return int(connection.connection.info.server_version)


def is_node_lost(error: DatabaseError) -> bool:
    """Return whether an error means that a cluster node was lost, possibly earlier."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error) or is_lost(error):
        return False
    return isinstance(failure(cause.sqlstate, cause.diag.message_primary or ""), NodeLost)


def is_lock_timeout(error: DatabaseError) -> bool:
    """Return whether a statement hit its lock timeout."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


def is_unavailable(error: DatabaseError) -> bool:
    """Return whether the database or a node was unavailable, so that a retry may succeed."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error):
        return False
    return isinstance(failure(cause.sqlstate, cause.diag.message_primary or ""), ServerBusy)


def is_lost(error: Exception) -> bool:
    """Return whether an error means that the database is lost, so that further statements would fail as well.

    It is not lost when it refuses one statement, because of a cancellation, a lock timeout or a node that is
    down.
    """
    if not isinstance(error, InterfaceError | OperationalError):
        return False
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error) or cause.sqlstate is None:
        return True
    return cause.diag.severity_nonlocalized in ("FATAL", "PANIC")


@contextmanager
def limited(limit: timedelta) -> Iterator[None]:
    """Run a transaction in which each ORM query has a time limit; raises OperationTimedOut."""
    try:
        with transaction.atomic():
            execute(f"SET LOCAL {_time_limit(limit)}")
            yield
            execute("SET LOCAL statement_timeout TO DEFAULT")  # an outer transaction has no limit
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise OperationTimedOut from None
        raise


@contextmanager
def repeatable_read() -> Iterator[None]:
    """Run the block in a separate REPEATABLE READ transaction."""
    with transaction.atomic(durable=True):
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def walk(steps: "Generator[Statement[Any], Any, T]", run: Callable[[Statement[Any]], Any] = run) -> T:
    """Drive a generator of statements: run each one and send its result back."""
    try:
        statement = next(steps)
        while True:
            try:
                result = run(statement)
            except Exception as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


_reads_from: ContextVar[str | None] = ContextVar("reads_from", default=None)


@contextmanager
def reading_from(alias: str) -> Iterator[None]:
    """Read models from another of Django's databases, a standby, in the block."""
    token = _reads_from.set(alias)
    try:
        yield
    finally:
        _reads_from.reset(token)
        connections[alias].close()


class StandbyRouter:
    """Database router for DATABASE_ROUTERS that reads models from a standby."""

    def db_for_read(self, model: type[object], **hints: object) -> str | None:
        return _reads_from.get()


def storable_text(text: str, limit: int) -> str:
    """Truncate a text, dropping NUL and replacing lone surrogates, which PostgreSQL cannot store."""
    return text[:limit].replace("\0", "").encode(errors="replace").decode()


def execute(text: str, *parameters: Any) -> None:
    """Run SQL without a result."""
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)


def fetch(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run SQL and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


_SETTINGS: Final = """(VALUES
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('client_connection_check_interval', '5s'),
    ('idle_in_transaction_session_timeout', '1min'), ('idle_session_timeout', '5min')
) AS wanted (name, value)
"""
_LOSE_LOCKS: Final = f"SELECT set_config(name, value, false) FROM {_SETTINGS}"
_KEEP_LOCKS: Final = f"SELECT set_config(name, NULL, false) FROM {_SETTINGS}"  # the defaults
