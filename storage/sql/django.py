"""The synchronous executor: it runs statements on Django's connection, in its transaction if there is one."""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import psycopg
from django.db import OperationalError, connection, transaction
from psycopg.adapt import Dumper
from psycopg.pq import Format

from storage.domain.errors import OperationTimedOut
from storage.sql.failures import Canceled, failure
from storage.sql.lanes import SETTINGS
from storage.sql.statement import Statement

T = TypeVar("T")


class _Encoded(bytes):
    """A parameter that is in PostgreSQL's binary format already."""


class _EncodedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the server knows the type from the statement

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


def run(statement: Statement[T]) -> T:
    """Run a statement; raise its failure as an error of the service."""
    connection.ensure_connection()
    parameters = [_Encoded(it) if isinstance(it, bytes) else it for it in statement.parameters]
    with psycopg.RawCursor(connection.connection) as cursor:
        cursor.adapters.register_dumper(_Encoded, _EncodedDumper)
        try:
            cursor.execute(statement.text.encode(), parameters or None)
        except psycopg.Error as error:
            raise failure(error.sqlstate, error.diag.message_primary or "") from error
        assert cursor.pgresult is not None
        return statement.read(cursor.pgresult)


def run_in_lane(statement: Statement[T], *, settings: str = "", limit: timedelta | None = None) -> T:
    """Run a statement with the planner settings of its lane, or ``settings``, which are ``SET`` commands as well.

    ``limit`` takes the place of the lane's time limit. An outer transaction goes on without the settings.
    """
    settings = settings or SETTINGS[statement.lane]
    if limit is not None:
        settings += f"; SET {_time_limit(limit)}"
    is_nested = connection.in_atomic_block
    with transaction.atomic():
        execute(settings.replace("SET ", "SET LOCAL "))
        result = run(statement)
        if is_nested:
            execute(re.sub(r"SET (\w+) = [^;]+", r"SET LOCAL \1 TO DEFAULT", settings))
        return result


def run_limited(statement: Statement[T], limit: timedelta, *, settings: str = "") -> T:
    """Run a statement as ``run_in_lane`` does with a time limit; raises OperationTimedOut."""
    try:
        return run_in_lane(statement, settings=settings, limit=limit)
    except Canceled:
        raise OperationTimedOut from None


def _time_limit(limit: timedelta) -> str:
    return f"statement_timeout = {limit // timedelta(milliseconds=1)}"


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
    """Run a transaction of its own in which all statements see what the first one sees."""
    with transaction.atomic(durable=True):
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def walk(steps: "Generator[Statement[Any], Any, T]", run: Callable[[Statement[Any]], Any] = run) -> T:
    """Run an operation of several statements: it yields each one and receives its result."""
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


def storable_text(text: str, limit: int) -> str:
    """Cut a text, drop NUL, which PostgreSQL refuses, and replace lone surrogates, which UTF-8 cannot encode."""
    return text[:limit].replace("\0", "").encode(errors="replace").decode()


def execute(text: str, *parameters: Any) -> None:
    """Run SQL that returns nothing of interest."""
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)


def fetch(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run SQL and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(text, parameters or None)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
