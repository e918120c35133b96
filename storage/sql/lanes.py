"""Asynchronous executor: a few connections on the event loop, each running one prepared statement at a time.

It uses psycopg.pq directly, because a cursor costs more than the statement. A connection is busy until its result is
read completely, even if its request was cancelled, so that a result can never reach another request.

Several commands are sent as a pipeline, in one round trip: a statement that has to be prepared first, or one
followed by a query for the log position.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any, Final, TypeVar, cast

from psycopg import AsyncConnection, OperationalError, pq
from psycopg.pq.abc import PGconn, PGresult

from storage.domain.errors import ServerBusy
from storage.domain.requests.consistency import Session
from storage.sql import timelines
from storage.sql.combining import Combiner
from storage.sql.failures import (
    ATTEMPTS,
    OTHER_TIMESTAMP,
    READ_ONLY,
    TRANSIENT,
    RolledBack,
    failure,
    pause_before_repeat,
)
from storage.sql.forms import EXTENSIONS, waits_elsewhere
from storage.sql.positions import POSITION, read_position
from storage.sql.statement import ChangedMeanwhile, Lane, Parameters, Statement

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
# with an extension for relations of another form; after SETTINGS
WITH_EXTENSION: Final = "; ".join(
    f"""
SELECT {", ".join(f"set_config('{name}', '{value}', {{is_local}})" for name, value in it.key_settings.items())}
FROM pg_extension WHERE extname = '{it.name}' AND current_setting('plan_cache_mode') = 'force_generic_plan'
"""
    for it in EXTENSIONS
)
COUNTS: Final = {Lane.KEY: 8, Lane.FILTER: 4}  # more did not increase throughput; each takes 2 to 5 MB
# the share of a lane's connections that statements that wait for other nodes leave to the others: a node that hangs
# holds each of its statements, and tables that are not on it must not wait for these
_RESERVED_SHARE: Final = 4

_PREPARED_LIMIT: Final = 400  # prepared statements per connection; a table takes about a dozen
# statements that a connection prepares until another takes its place: PostgreSQL never forgets a relation that it has
# used, which takes 12 KB, nor a function, so that with thousands of tables a connection would take gigabytes
_MOST_PREPARED: Final = 2_000
_ACQUIRE_TIMEOUT: Final = 20.0  # seconds a request waits for a connection before it gets ServerBusy
# the same while there is none at all, because the server cannot be reached: clients repeat a request that is answered
_UNREACHABLE_TIMEOUT: Final = 3.0
# seconds without an answer, far longer than PostgreSQL itself lets a statement run, after which a server hangs: it,
# its machine or its disk has stopped, and keeps its connections open
_HUNG_AFTER: Final = 15.0
_LOOK_INTERVAL: Final = 1.0

# the message of a task's cancellation: its statement waits for a node that does not answer, so its connection is lost
ABANDONED: Final = "abandoned"

_RECOVERY_PAUSE: Final = 0.2  # seconds between attempts to reach a database that does not answer
_HIGH_LATENCY: Final = 0.005  # seconds of a round trip to a server in another place

_POSITION_NAME: Final = b"position"
_GIVE_UP: Final = b"SELECT 'the rest of a change set was refused'::integer"  # fails

# parameters, and 1 for each that is in binary; None if all are text
_Values = tuple[list[bytes | None], list[int] | None]


class _Connection:
    """Connection with the future that awaits its statement's result."""

    def __init__(self, pool: "_Pool", opened: AsyncConnection[Any]) -> None:
        self._pool = pool
        self._opened = opened  # only its socket and the state of libpq are used
        self._pgconn: PGconn = opened.pgconn
        self._loop = asyncio.get_running_loop()
        self._prepared: OrderedDict[str, bytes] = OrderedDict()
        self._names = count()
        self._waiter: asyncio.Future[PGresult] | None = None
        self._result: PGresult | None = None
        self._pipeline: _Pipeline | None = None
        self._knows_position = False  # whether the statement that asks for it is prepared
        self._writing = False
        self.is_lost = False
        self.is_ready = False  # whether it may be released after a statement
        self.is_outdated = False  # whether to close it instead of using it again
        self.is_of_nodes = False  # whether its statement has taken a place for statements that wait for nodes
        self.opened_at = monotonic()
        self.round_trip = float("inf")  # seconds to the server and back, once set up
        self._seen: tuple[asyncio.Future[PGresult] | None, float] = (
            None,
            0.0,
        )  # the future that waited at the last check, and since when
        self._socket = self._pgconn.socket
        self._pgconn.nonblocking = 1
        self._loop.add_reader(self._socket, self._readable)

    async def set_up(self, settings: str) -> PGresult:
        """Run several commands, and return the result of the last one."""
        began = self._loop.time()
        self._waiter = self._loop.create_future()
        try:
            self._pgconn.send_query(settings.encode())
            self._flush()
        except OperationalError:
            self._lost()
        result = await self._waiter
        self.round_trip = self._loop.time() - began
        return result

    def start(
        self,
        text: str,
        values: _Values,
        waiter: "asyncio.Future[PGresult]",
        session: Session | None = None,
    ) -> None:
        """Run a statement.

        With a ``session``, it notes the position in the log after the statement, even if that fails.
        """
        self._waiter = waiter
        name = self._prepared.get(text)
        try:
            if name is not None and session is None:
                self._prepared.move_to_end(text)
                self._pgconn.send_query_prepared(name, *values)
            else:
                self._send_pipeline(text, values, session)
            self._flush()
        except OperationalError:
            self._lost()

    def start_halves(
        self,
        text: str,
        values: _Values,
        make_second: "Callable[[], tuple[str, _Values]]",
        waiter: "asyncio.Future[PGresult]",
    ) -> None:
        """Run two statements in one transaction, building the second while the first runs."""
        self._waiter = waiter
        try:
            self._pgconn.enter_pipeline_mode()
            pipeline = self._pipeline = _Pipeline(None, unfinished=1)
            self._send_prepared(text, values, pipeline)
            self._flush()
            try:
                self._send_prepared(*make_second(), pipeline)
            except BaseException:
                # an error, without which what was sent would be committed
                self._pgconn.send_query_params(_GIVE_UP, None)
                raise
            finally:
                self._pgconn.pipeline_sync()
                self._flush()
        except OperationalError:
            self._lost()

    def _send_pipeline(self, text: str, values: _Values, session: Session | None) -> None:
        """Send several commands at once, as parts with separate synchronization that fail independently."""
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        pipeline = self._pipeline = _Pipeline(session)
        if text not in self._prepared and len(self._prepared) >= _PREPARED_LIMIT:
            while len(self._prepared) >= _PREPARED_LIMIT:
                _, old = self._prepared.popitem(last=False)
                pgconn.send_query_params(b"DEALLOCATE " + old, None)
            pgconn.pipeline_sync()
            pipeline.place += 1
        self._send_prepared(text, values, pipeline)
        pgconn.pipeline_sync()
        pipeline.unfinished = pipeline.place + 1
        if session is not None:
            if not self._knows_position:
                pgconn.send_prepare(_POSITION_NAME, POSITION.encode())
                self._knows_position = True
            pgconn.send_query_prepared(_POSITION_NAME, None)
            pgconn.pipeline_sync()
            pipeline.unfinished += 1

    def _send_prepared(self, text: str, values: _Values, pipeline: "_Pipeline") -> None:
        """Send a statement in a pipeline, preparing it first if needed."""
        name = self._prepared.get(text)
        if name is None:
            number = next(self._names)
            self.is_outdated = self.is_outdated or number + 1 >= _MOST_PREPARED
            name = self._prepared[text] = b"s%d" % number
            self._pgconn.send_prepare(name, text.encode())
            pipeline.prepared[pipeline.commands] = text
            pipeline.commands += 1
        else:
            self._prepared.move_to_end(text)
        self._pgconn.send_query_prepared(name, *values)
        pipeline.commands += 1

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
        """Take available results; return whether the statement has finished."""
        if self._pipeline is not None:
            return self._take_pipeline(self._pipeline)
        pgconn = self._pgconn
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                return self._settled()
            self._result = result
        return False

    def _take_pipeline(self, pipeline: "_Pipeline") -> bool:
        pgconn = self._pgconn
        was_none = False
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == pq.ConnStatus.BAD:
                    self._lost()
                    return True
                if was_none:  # there is nothing to wait for but what is on its way
                    return False
                was_none = True
                continue
            was_none = False
            if result.status != pq.ExecStatus.PIPELINE_SYNC:
                pipeline.parts[-1].append(result)
                continue
            pipeline.unfinished -= 1
            if pipeline.unfinished:
                pipeline.parts.append([])
                continue
            pgconn.exit_pipeline_mode()
            self._pipeline = None
            self._end_pipeline(pipeline)
            return True
        return False

    def _end_pipeline(self, pipeline: "_Pipeline") -> None:
        results = pipeline.parts[pipeline.place]
        failed = next((result for result in results if not _is_done(result)), None)
        if failed is not None:
            for number, text in pipeline.prepared.items():
                if number >= len(results) or not _is_done(results[number]):
                    self._prepared.pop(text, None)
        if pipeline.session is not None:
            position = pipeline.parts[-1][-1]
            if not _is_done(position):
                self.is_outdated = True
            elif (value := position.get_value(0, 0)) is not None:
                pipeline.session.note(read_position(value))
        self._hand_over(failed or results[-1], is_failed=failed is not None)

    def _settled(self) -> bool:
        """Deliver the result and become idle; return False if only a notice has arrived."""
        result, self._result = self._result, None
        if self._pgconn.status == pq.ConnStatus.BAD:
            self._lost()
            return True
        if result is None:
            return False
        self._hand_over(result, is_failed=not _is_done(result))
        return True

    def _hand_over(self, result: PGresult, *, is_failed: bool) -> None:
        waiter, self._waiter = self._waiter, None
        if self.is_ready:
            self._pool.release(self)
        if waiter is not None and not waiter.done():
            if is_failed:
                waiter.set_exception(_StatementFailed(result))
            else:
                waiter.set_result(result)

    def hangs(self, now: float) -> bool:
        """Return whether the same statement has waited for _HUNG_AFTER; called every _LOOK_INTERVAL."""
        if self._waiter is not self._seen[0]:
            self._seen = (self._waiter, now)
        return self._waiter is not None and now - self._seen[1] > _HUNG_AFTER

    def give_up(self) -> None:
        """Close the connection, failing its pending statement with ServerBusy."""
        self._lost()

    def _lost(self) -> None:
        if self.is_lost:
            return  # the loop calls back once more for an event that it had seen before
        self.is_lost = True
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


def _is_done(result: PGresult) -> bool:
    return result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


@dataclass(slots=True)
class _Pipeline:
    """Pipeline of commands with the results of each part."""

    session: Session | None
    place: int = 0  # the index of the statement's part in ``parts``
    commands: int = 0
    # the texts that the statement's part prepares, by the numbers of the commands in it
    prepared: dict[int, str] = field(default_factory=dict)
    unfinished: int = 0  # parts
    parts: list[list[PGresult]] = field(default_factory=lambda: [[]])


class _StatementFailed(Exception):
    def __init__(self, result: PGresult) -> None:
        sqlstate = result.error_field(pq.DiagnosticField.SQLSTATE)
        self.sqlstate = sqlstate.decode() if sqlstate else None
        primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        self.message = primary.decode(errors="replace") if primary else ""
        super().__init__(self.sqlstate, self.message)


class _Pool:
    """Connection pool of one lane: opened on first use, kept, and reopened when lost.

    Requests queue while all are busy.
    """

    def __init__(
        self,
        conninfo: str,
        lane: Lane,
        size: int,
        patience: float | None,
        reconnects: bool,
        is_primary: bool,
        replayed: Callable[[], int],
    ) -> None:
        self._conninfo = conninfo
        self._is_primary = is_primary
        self._replayed = replayed
        self._lane = lane
        self._size = size
        self._patience = patience
        self._reconnects = reconnects
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._waiting: deque[asyncio.Future[_Connection]] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self._suspended = False
        self._look: asyncio.TimerHandle | None = None
        self._unreachable: asyncio.TimerHandle | None = None
        # places of statements that wait for nodes
        self._places = max(1, size - max(1, size // _RESERVED_SHARE))
        self._waiting_for_place: deque[asyncio.Future[None]] = deque()

    @property
    def is_far(self) -> bool:
        return min((connection.round_trip for connection in self._all), default=0.0) > _HIGH_LATENCY

    @property
    def is_idle(self) -> bool:
        return len(self._idle) == len(self._all) > 0

    async def open(self) -> None:
        await self._connect()

    @property
    def is_open(self) -> bool:
        return bool(self._all)

    async def until_reachable(self) -> None:
        """Wait until a connection is open; raises ServerBusy after a few seconds."""
        if not self._all:
            self.release(await self._acquire())

    async def _connect(self) -> None:
        # on the event loop: libpq's own function would block this process until the server answers
        if self._is_primary:
            opened = await timelines.connect(self._conninfo)
        else:
            opened = await AsyncConnection.connect(self._conninfo, autocommit=True)
        connection = _Connection(self, opened)
        self._all.add(connection)
        if self._unreachable is not None:
            self._unreachable.cancel()
            self._unreachable = None
        if self._look is None:
            self._look_again()
        replayed = self._replayed()
        settings = f"{SETTINGS[self._lane]}; {WITH_EXTENSION.format(is_local=False)}"
        try:
            result = await connection.set_up(f"{settings}; {POSITION}" if replayed else settings)
            if connection.is_lost:
                raise ServerBusy
            if replayed and read_position(result.get_value(0, 0) or b"0") < replayed:
                raise OperationalError("It was restarted, and has replayed less of its log than before.")
            connection.is_ready = True
        except (ServerBusy, _StatementFailed) as error:
            raise OperationalError(str(error)) from None
        finally:
            if not connection.is_ready:
                connection.give_up()
        self.release(connection)

    async def acquire(self, *, of_nodes: bool = False) -> _Connection:
        """Return an idle connection; ``of_nodes`` marks a statement that waits for nodes."""
        if of_nodes:
            await self._take_place()
            try:
                connection = await self._acquire()
            except BaseException:
                self._give_place()
                raise
            connection.is_of_nodes = True
            return connection
        return await self._acquire()

    async def _acquire(self) -> _Connection:
        if self._idle:
            return self._idle.pop()
        if self._suspended:
            raise ServerBusy
        if self._reconnects and len(self._all) + len(self._opening) < self._size:
            self._open_another()
        patience = self._patience or (_ACQUIRE_TIMEOUT if self._all else _UNREACHABLE_TIMEOUT)
        turn: asyncio.Future[_Connection] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return await _wait_for_turn(turn, patience, self.release)

    async def _take_place(self) -> None:
        if self._places:
            self._places -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_place.append(turn)
        await _wait_for_turn(turn, self._patience or _ACQUIRE_TIMEOUT, lambda _: self._give_place())

    def _give_place(self) -> None:
        while self._waiting_for_place:
            turn = self._waiting_for_place.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._places += 1

    def _leave_place(self, connection: _Connection) -> None:
        if connection.is_of_nodes:
            connection.is_of_nodes = False
            self._give_place()

    def release(self, connection: _Connection) -> None:
        self._leave_place(connection)
        if connection.is_outdated:
            connection.give_up()
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        self._leave_place(connection)
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if not self._all and self._unreachable is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._unreachable = loop.call_later(self._patience or _UNREACHABLE_TIMEOUT, self._give_up_waiting)
        # a connection that could not be set up is tried again by its opener
        is_wanted = connection.is_ready and self._reconnects and not self._closed and not self._suspended
        if is_wanted and len(self._all) + len(self._opening) < self._size:
            self._open_another()

    def renew(self) -> None:
        """Replace all connections; busy ones are closed after their statements."""
        for connection in list(self._all):
            connection.is_outdated = True
        for connection in list(self._idle):
            connection.give_up()

    def suspend(self) -> None:
        """Close all connections and open none until ``resume``."""
        self._suspended = True
        for task in self._opening:
            task.cancel()
        for connection in list(self._all):
            connection.give_up()
        self._give_up_waiting()

    def _give_up_waiting(self) -> None:
        self._unreachable = None
        for waiting in (self._waiting, self._waiting_for_place):
            while waiting:
                _give_up(waiting.popleft())

    def resume(self) -> None:
        self._suspended = False

    def give_up_older(self, moment: float) -> None:
        for connection in list(self._all):
            if connection.opened_at < moment:
                connection.give_up()

    def _look_again(self) -> None:
        """Close hanging connections, now and repeatedly."""
        loop = asyncio.get_running_loop()
        for connection in [it for it in self._all if it.hangs(loop.time())]:
            logger.warning(
                "The database gave no answer for %.0f seconds. A connection is closed.", _HUNG_AFTER
            )
            connection.give_up()
        self._look = None if self._closed else loop.call_later(_LOOK_INTERVAL, self._look_again)

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
        for timer in (self._look, self._unreachable):
            if timer is not None:
                timer.cancel()
        for task in self._opening:
            task.cancel()
        for connection in self._all:
            connection.close()


async def _wait_for_turn(turn: "asyncio.Future[T]", patience: float, give_back: Callable[[T], None]) -> T:
    """Wait for another request to release a resource; raises ServerBusy after ``patience`` seconds."""
    timer = asyncio.get_running_loop().call_later(patience, _give_up, turn)
    try:
        return await turn
    except asyncio.CancelledError:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            give_back(turn.result())
        raise
    finally:
        timer.cancel()


def _give_up(turn: "asyncio.Future[Any]") -> None:
    if not turn.done():
        turn.set_exception(ServerBusy())


def _encoded(parameters: Parameters) -> _Values:
    values = [it.encode() if isinstance(it, str) else it for it in parameters]
    return values, [int(type(it) is bytes) for it in parameters] if bytes in map(type, parameters) else None


class Lanes:
    """Connections of a process to one database server for the statements of the protocol, by lane."""

    def __init__(
        self,
        conninfo: str,
        *,
        counts: Mapping[Lane, int] = COUNTS,
        patience: float | None = None,
        attempts: int = ATTEMPTS,
        reconnects: bool = True,
        is_primary: bool = True,
        replayed: Callable[[], int] = lambda: 0,
    ) -> None:
        """Create the lanes; ``patience`` is the seconds that a statement waits for a connection.

        A connection to a standby is used if its server has got to the position ``replayed``: one that was restarted may
        be behind where it was.
        """
        self._pools = {
            lane: _Pool(conninfo, lane, size, patience, reconnects, is_primary, replayed)
            for lane, size in counts.items()
        }
        self._attempts = attempts
        self._combiner = Combiner(self._run, lambda: self._pools[Lane.KEY].is_far)

    async def open(self, *, recovery: float = 0.0) -> None:
        """Open one connection per lane; raises psycopg.OperationalError."""
        deadline = time.monotonic() + recovery
        for pool in self._pools.values():
            while not pool.is_open:
                try:
                    await pool.open()
                except OperationalError as error:
                    if time.monotonic() >= deadline:
                        raise
                    logger.warning("The database does not answer: %s", str(error).strip())
                    await asyncio.sleep(_RECOVERY_PAUSE)

    @property
    def is_open(self) -> bool:
        return all(pool.is_open for pool in self._pools.values())

    async def until_reachable(self) -> None:
        """Raise ServerBusy if the server cannot be reached for a few seconds."""
        await self._pools[Lane.KEY].until_reachable()

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def suspend(self) -> None:
        """Close all connections; waiting and new requests get ServerBusy until ``resume``."""
        for pool in self._pools.values():
            pool.suspend()

    def resume(self) -> None:
        for pool in self._pools.values():
            pool.resume()

    def give_up_older(self, moment: float) -> None:
        """Close the connections opened before a time of the monotonic clock, busy ones included."""
        for pool in self._pools.values():
            pool.give_up_older(moment)

    async def run(self, statement: Statement[T], session: Session | None = None) -> T:
        """Run a statement, possibly combined with others, converting failures to the service's errors."""
        if statement.combination is not None:
            return cast("T", await self._combiner.run(statement, session))
        return await self._run(statement, session)

    async def run_halves(self, first: Statement[Any], make_second: Callable[[], Statement[T]]) -> T:
        """Run two statements in one transaction, building the second while the first runs."""
        connection = await self._pools[first.lane].acquire(of_nodes=waits_elsewhere(first.text))
        waiter: asyncio.Future[PGresult] = asyncio.get_running_loop().create_future()
        made: list[Statement[T]] = []

        def make() -> tuple[str, _Values]:
            made.append(make_second())
            return made[0].text, _encoded(made[0].parameters)

        try:
            connection.start_halves(first.text, _encoded(first.parameters), make, waiter)
        except BaseException:
            with suppress(_StatementFailed, ServerBusy):
                await waiter  # rolled back
            raise
        try:
            result = await waiter
        except _StatementFailed as error:
            if error.sqlstate == READ_ONLY:
                self._renew()
            if error.sqlstate == OTHER_TIMESTAMP:
                raise RolledBack from None
            raise failure(error.sqlstate, error.message) from None
        return made[0].read(result)

    @property
    def are_idle(self) -> bool:
        """Return whether the key lane is idle."""
        return self._pools[Lane.KEY].is_idle

    async def _run(self, statement: Statement[T], session: Session | None = None) -> T:
        values = _encoded(statement.parameters)
        pool, of_nodes = self._pools[statement.lane], waits_elsewhere(statement.text)
        for attempt in range(self._attempts):
            connection = await pool.acquire(of_nodes=of_nodes)
            waiter: asyncio.Future[PGresult] = asyncio.get_running_loop().create_future()
            connection.start(statement.text, values, waiter, session)
            try:
                result = await waiter
            except asyncio.CancelledError as error:
                if error.args == (ABANDONED,):
                    connection.give_up()
                raise
            except _StatementFailed as error:
                if error.sqlstate in TRANSIENT:
                    await asyncio.sleep(pause_before_repeat(attempt))
                    continue
                if error.sqlstate == READ_ONLY:
                    self._renew()
                raise failure(error.sqlstate, error.message) from None
            if statement.reason is not None and result.ntuples == 0:
                return await self._run_reason(statement, statement.reason, session)
            return statement.read(result)
        raise ServerBusy

    async def _run_reason(self, statement: Statement[T], reason: Statement[T], session: Session | None) -> T:
        try:
            return await self._run(reason)
        except ChangedMeanwhile:
            if statement.locking is None:
                raise
            return await self._run(statement.locking(), session)

    def _renew(self) -> None:
        """Reconnect because the server has become a standby and another one may be the primary."""
        for pool in self._pools.values():
            pool.renew()

    async def walk(
        self,
        steps: "Generator[Statement[Any], Any, T]",
        prepare: Callable[[Statement[Any]], Statement[Any]] = lambda statement: statement,
        session: Session | None = None,
    ) -> T:
        """Drive a generator of statements: run each one and send its result back.

        ``prepare`` may replace a statement.
        """
        try:
            statement = next(steps)
            while True:
                try:
                    result = await self.run(cast("Statement[object]", prepare(statement)), session)
                except Exception as error:
                    statement = steps.throw(error)
                else:
                    statement = steps.send(result)
        except StopIteration as stop:
            return cast("T", stop.value)
