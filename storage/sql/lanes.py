"""The asynchronous executor: a few connections on the event loop, each running one prepared statement at a time.

It uses psycopg.pq directly, because a cursor costs more than the statement. A connection is busy until its result is
read completely, even if its request was cancelled, so that a result can never reach another request.
"""

import asyncio
import logging
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from contextlib import suppress
from itertools import count
from typing import Any, Final, TypeVar, cast

from psycopg import OperationalError, pq
from psycopg.pq.abc import PGconn, PGresult

from storage.domain.errors import ServerBusy
from storage.sql.combining import Combiner
from storage.sql.failures import TRANSIENT, failure
from storage.sql.statement import Lane, Statement

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Statements by key must use the primary key, whatever the statistics were when they were prepared. Statements with a
# property filter are planned with their values, so that selectivity decides between the GIN index and an ordered scan.
SETTINGS: Final = {
    Lane.KEY: (
        "SET plan_cache_mode = force_generic_plan; SET enable_bitmapscan = off; SET enable_sort = off; "
        "SET enable_seqscan = off; SET jit = off; SET statement_timeout = '5s'"
    ),
    Lane.FILTER: "SET plan_cache_mode = force_custom_plan; SET jit = off; SET statement_timeout = '1500ms'",
}
# Citus has no generic plans of most statements on distributed relations, so its coordinator may choose; after SETTINGS
ON_COORDINATOR: Final = """
SELECT set_config('plan_cache_mode', 'auto', {is_local}) FROM pg_extension
WHERE extname = 'citus' AND current_setting('plan_cache_mode') = 'force_generic_plan'
"""
COUNTS: Final = {Lane.KEY: 8, Lane.FILTER: 4}  # more did not increase throughput; each takes 2 to 5 MB

_PREPARED_LIMIT: Final = 400  # prepared statements per connection; a table takes about a dozen
_ACQUIRE_TIMEOUT: Final = 20.0  # seconds a request waits for a connection before it gets ServerBusy
_ATTEMPTS: Final = 5  # for a statement that was rolled back because of a concurrent one

_RETURNS_OLD: Final = 18_00_00  # the first version of PostgreSQL with RETURNING old

Command = Callable[[PGconn], None]


class _Connection:
    """A connection: its queued commands, and the future that waits for the result of the last one."""

    def __init__(self, pool: "_Pool", pgconn: PGconn) -> None:
        self._pool = pool
        self._pgconn = pgconn
        self._loop = asyncio.get_running_loop()
        self._prepared: OrderedDict[str, bytes] = OrderedDict()
        self._names = count()
        self._commands: deque[Command] = deque()
        self._waiter: asyncio.Future[PGresult] | None = None
        self._result: PGresult | None = None
        self._writing = False
        self._is_lost = False
        self._socket = pgconn.socket
        pgconn.nonblocking = 1
        self._loop.add_reader(self._socket, self._readable)

    def start(
        self,
        text: str,
        values: list[bytes | None],
        formats: list[int] | None,
        waiter: "asyncio.Future[PGresult]",
    ) -> None:
        """Run a statement; ``formats`` are 1 for values in binary, None if all are text."""
        self._waiter = waiter
        name = self._prepared.get(text)
        if name is None:
            name = self._prepare(text)
        else:
            self._prepared.move_to_end(text)
        self._commands.append(lambda pgconn: pgconn.send_query_prepared(name, values, formats))
        self._next()

    def _prepare(self, text: str) -> bytes:
        """Queue the preparation of a statement; deallocate the least recently used one if there are too many."""
        if len(self._prepared) >= _PREPARED_LIMIT:
            _, old = self._prepared.popitem(last=False)
            self._commands.append(lambda pgconn: pgconn.send_query_params(b"DEALLOCATE " + old, None))
        name = b"s%d" % next(self._names)
        self._prepared[text] = name
        encoded = text.encode()
        self._commands.append(lambda pgconn: pgconn.send_prepare(name, encoded))
        return name

    def _next(self) -> None:
        try:
            self._commands.popleft()(self._pgconn)
            self._flush()
        except OperationalError:
            self._lost()

    def _flush(self) -> None:
        # 1: the socket buffer is full, as with a large document
        unsent = self._pgconn.flush()
        if unsent and not self._writing:
            self._loop.add_writer(self._socket, self._writable)
        elif self._writing and not unsent:
            self._loop.remove_writer(self._socket)
        self._writing = bool(unsent)

    def _writable(self) -> None:
        try:
            self._flush()
        except OperationalError:
            self._lost()

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            if self._writing:
                self._flush()
            if not self._take_results():
                # again, because uvloop reports the last bytes and the end of a connection only once
                self._pgconn.consume_input()
                self._take_results()
        except OperationalError:
            self._lost()

    def _take_results(self) -> bool:
        """Take available results; return whether a command has finished."""
        pgconn = self._pgconn
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                return self._settled()
            self._result = result
        return False

    def _settled(self) -> bool:
        """Finish a command: start the next one, or hand over the result and become idle.

        Returns False if there was no result, only a notice.
        """
        result, self._result = self._result, None
        if self._pgconn.status == pq.ConnStatus.BAD:
            self._lost()
            return True
        if result is None:
            return False
        failed = result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
        if self._commands and not failed:
            self._next()
            return True
        if self._commands:  # the preparation failed
            self._commands.clear()
            self._prepared.popitem()
        waiter, self._waiter = self._waiter, None
        self._pool.release(self)
        if waiter is not None and not waiter.done():
            if failed:
                waiter.set_exception(_StatementFailed(result))
            else:
                waiter.set_result(result)
        return True

    def _lost(self) -> None:
        if self._is_lost:
            return  # the loop calls back once more for what it had seen before
        self._is_lost = True
        waiter, self._waiter = self._waiter, None
        self.close()
        self._pool.lost(self)
        if waiter is not None and not waiter.done():
            # it is unknown whether the statement took effect, so only the client can decide to try again
            waiter.set_exception(ServerBusy())

    def close(self) -> None:
        # libpq closes the socket of a lost connection, and asyncio's own loop cannot change what it watches of it then
        with suppress(OSError):
            self._loop.remove_writer(self._socket)
        with suppress(OSError):
            self._loop.remove_reader(self._socket)
        self._pgconn.finish()


class _StatementFailed(Exception):
    def __init__(self, result: PGresult) -> None:
        sqlstate = result.error_field(pq.DiagnosticField.SQLSTATE)
        self.sqlstate = sqlstate.decode() if sqlstate else None
        primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        self.message = primary.decode(errors="replace") if primary else ""
        super().__init__(self.sqlstate, self.message)


class _Pool:
    """The connections of one lane: opened when they are first needed, kept, and opened again when they are lost.

    Requests queue while all are busy.
    """

    def __init__(self, conninfo: str, lane: Lane, size: int) -> None:
        self._conninfo = conninfo.encode()
        self._lane = lane
        self._size = size
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._line: deque[asyncio.Future[_Connection]] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self.server_version = 0  # of PostgreSQL, once connected

    async def open(self) -> None:
        await self._connect()

    async def _connect(self) -> None:
        pgconn = await asyncio.to_thread(_connected, self._conninfo, SETTINGS[self._lane])
        if self._closed:
            pgconn.finish()
            return
        self.server_version = pgconn.server_version
        connection = _Connection(self, pgconn)
        self._all.add(connection)
        self.release(connection)

    async def acquire(self) -> _Connection:
        if self._idle:
            return self._idle.pop()
        if len(self._all) + len(self._opening) < self._size:
            self._open_another()
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[_Connection] = loop.create_future()
        self._line.append(turn)
        timer = loop.call_later(_ACQUIRE_TIMEOUT, _give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(turn.result())
            raise
        finally:
            timer.cancel()

    def release(self, connection: _Connection) -> None:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._closed:
            self._open_another()

    def _open_another(self) -> None:
        task = asyncio.get_running_loop().create_task(self._keep_connecting())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _keep_connecting(self) -> None:
        pause = 0.05
        while not self._closed:
            try:
                await self._connect()
                return
            except OperationalError as error:
                logger.warning("The database does not answer: %s", str(error).strip())
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        for connection in self._all:
            connection.close()


def _give_up(turn: "asyncio.Future[_Connection]") -> None:
    if not turn.done():
        turn.set_exception(ServerBusy())


def _connected(conninfo: bytes, settings: str) -> PGconn:
    pgconn = pq.PGconn.connect(conninfo)
    if pgconn.status != pq.ConnStatus.OK:
        message = pgconn.get_error_message()
        pgconn.finish()
        raise OperationalError(message)
    result = pgconn.exec_(f"{settings}; {ON_COORDINATOR.format(is_local=False)}".encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        message = result.get_error_message()
        pgconn.finish()
        raise OperationalError(message)
    return pgconn


class Lanes:
    """The connections of one process for the statements of the protocol."""

    def __init__(self, conninfo: str) -> None:
        self._pools = {lane: _Pool(conninfo, lane, size) for lane, size in COUNTS.items()}
        self._combiner = Combiner(self._run)
        self.returns_old = False  # whether an UPDATE can return the row as it was

    async def open(self) -> None:
        for pool in self._pools.values():
            await pool.open()
        self.returns_old = self._pools[Lane.KEY].server_version >= _RETURNS_OLD

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    async def run(self, statement: Statement[T]) -> T:
        """Run a statement, perhaps together with others; raise its failure as an error of the service."""
        if statement.combination is not None:
            return cast("T", await self._combiner.run(statement))
        return await self._run(statement)

    async def _run(self, statement: Statement[T]) -> T:
        parameters = statement.parameters
        values = [it.encode() if isinstance(it, str) else it for it in parameters]
        formats = [int(type(it) is bytes) for it in parameters] if bytes in map(type, parameters) else None
        pool = self._pools[statement.lane]
        for attempt in range(_ATTEMPTS):
            connection = await pool.acquire()
            waiter: asyncio.Future[PGresult] = asyncio.get_running_loop().create_future()
            connection.start(statement.text, values, formats, waiter)
            try:
                result = await waiter
            except _StatementFailed as error:
                if error.sqlstate in TRANSIENT:
                    await asyncio.sleep(random.uniform(0, 0.02) * (attempt + 1))  # noqa: S311
                    continue
                raise failure(error.sqlstate, error.message) from None
            if statement.reason is not None and result.ntuples == 0:
                return await self._run(statement.reason)
            return statement.read(result)
        raise ServerBusy

    async def walk(
        self,
        steps: "Generator[Statement[Any], Any, T]",
        prepare: Callable[[Statement[Any]], Statement[Any]] = lambda statement: statement,
    ) -> T:
        """Run an operation of several statements: it yields each one and receives its result.

        ``prepare`` returns the statement to run instead.
        """
        try:
            statement = next(steps)
            while True:
                try:
                    result = await self.run(cast("Statement[object]", prepare(statement)))
                except Exception as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(result)
        except StopIteration as stop:
            return cast("T", stop.value)
