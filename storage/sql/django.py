"""The synchronous executor: the same statements on Django's own connection, inside its transaction if there is one."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import psycopg
from django.db import OperationalError, connection, transaction

from storage.domain.errors import OperationTimedOut
from storage.sql.failures import failure
from storage.sql.lanes import SETTINGS
from storage.sql.statement import Statement

T = TypeVar("T")


def run(statement: Statement[T]) -> T:
    """The statement's result; its failures as the service's errors."""
    connection.ensure_connection()
    with psycopg.RawCursor(connection.connection) as cursor:
        try:
            cursor.execute(statement.text.encode(), statement.parameters or None)
        except psycopg.Error as error:
            raise failure(error.sqlstate, error.diag.message_primary or "") from error
        assert cursor.pgresult is not None
        return statement.read(cursor.pgresult)


def run_in_lane(statement: Statement[T], *, limit: timedelta | None = None) -> T:
    """As run, but planned, and unless there is another ``limit`` limited in time, as the statement's lane does it."""
    with transaction.atomic():
        execute(SETTINGS[statement.lane].replace("SET ", "SET LOCAL "))
        if limit is not None:
            execute(f"SET LOCAL statement_timeout = {limit // timedelta(milliseconds=1)}")
        return run(statement)


@contextmanager
def limited(limit: timedelta) -> Iterator[None]:
    """A transaction whose statements of the ORM may each take this long; raises OperationTimedOut."""
    try:
        with transaction.atomic():
            execute(f"SET LOCAL statement_timeout = {limit // timedelta(milliseconds=1)}")
            yield
            execute("SET LOCAL statement_timeout = 0")  # a transaction around this one may take its time
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise OperationTimedOut from None
        raise


def walk(steps: "Generator[Statement[Any], Any, T]", run: Callable[[Statement[Any]], Any] = run) -> T:
    """Runs an operation of several statements: each is yielded and its result sent back."""
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


def execute(text: str) -> None:
    """Runs SQL of our own that takes no values: the relations of tables."""
    with connection.cursor() as cursor:
        cursor.execute(text)
