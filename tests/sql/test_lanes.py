"""The lanes: statements on the event loop, whatever happens to connections and to those who wait."""

import asyncio
from contextlib import asynccontextmanager
from time import monotonic

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from storage.domain.errors import OperationTimedOut, ServerBusy, TableNotFound
from storage.domain.requests.consistency import Session
from storage.sql import lanes as module
from storage.sql.failures import Canceled, UnexpectedFailure
from storage.sql.forms import waits_elsewhere
from storage.sql.lanes import COUNTS, Lanes
from storage.sql.statement import ChangedMeanwhile, Lane, Statement

NAME = "lanes under test"


@pytest.fixture
async def admin(postgres):
    """Open a connection in addition to the lanes."""
    async with await psycopg.AsyncConnection.connect(**postgres, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def open_lanes(postgres, monkeypatch):
    """`await open_lanes(key=1, **settings)`: lanes with so many connections for statements by key."""
    opened = []

    async def open_lanes(key=COUNTS[Lane.KEY], *, options=""):
        monkeypatch.setitem(COUNTS, Lane.KEY, key)
        monkeypatch.setitem(COUNTS, Lane.FILTER, 1)
        lanes = Lanes(make_conninfo("", **postgres, application_name=NAME, options=options))
        opened.append(lanes)
        await lanes.open()
        return lanes

    yield open_lanes
    for lanes in opened:
        lanes.close()


@pytest.fixture
async def lanes(open_lanes):
    return await open_lanes()


@pytest.fixture
def short_filters(monkeypatch):
    """Give filters less time; a test names it before its lanes."""
    settings = module.SETTINGS[Lane.FILTER].replace("'1500ms'", "'200ms'")
    assert settings != module.SETTINGS[Lane.FILTER]
    monkeypatch.setitem(module.SETTINGS, Lane.FILTER, settings)


@pytest.fixture
async def single(open_lanes):
    """Lanes with a single connection for statements by key."""
    return await open_lanes(1)


def value(result):
    """Return the only value of a result."""
    outcome = result.get_value(0, 0)
    return None if outcome is None else outcome.decode()


def statement(text, *parameters, lane=Lane.KEY):
    return Statement(text, parameters, lane, value)


ECHO = "SELECT $1::text"
SLOW_ECHO = "SELECT $1::text FROM pg_sleep(0.2)"
HELD_ECHO = "SELECT $1::text FROM pg_advisory_xact_lock_shared(4711)"


@asynccontextmanager
async def holding(admin):
    """HELD_ECHO waits until the block ends."""
    await admin.execute("SELECT pg_advisory_lock(4711)")
    try:
        yield
    finally:
        await admin.execute("SELECT pg_advisory_unlock(4711)")


async def test_runs_the_locking_statement_if_the_reason_does_not_apply_any_more(lanes):
    def is_outdated(result):
        raise ChangedMeanwhile

    outcome = statement("SELECT $1::text WHERE false", "first")
    outcome.reason = Statement("SELECT 1", (), Lane.KEY, is_outdated)
    outcome.locking = lambda: statement(ECHO, "second")

    assert await lanes.run(outcome) == "second"


async def terminate(admin, condition="true"):
    """End connections of the lanes, as an administrator or a failover would, and wait until they are gone."""
    cursor = await admin.execute(
        "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity "
        f"WHERE application_name = '{NAME}' AND {condition}"
    )
    return (await cursor.fetchone())[0]


async def until(admin, condition, count=1):
    """Wait for so many connections of the lanes to be in a state."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}' AND {condition}"
    async with asyncio.timeout(60):
        while (await (await admin.execute(query)).fetchone())[0] != count:  # noqa: ASYNC110 - PostgreSQL's event
            await asyncio.sleep(0.01)


# results


async def test_a_statement_gives_what_its_reader_reads(lanes):
    assert await lanes.run(statement(ECHO, "é😀\n'")) == "é😀\n'"
    assert await lanes.run(statement(ECHO, "")) == ""
    assert await lanes.run(statement(ECHO, None)) is None
    assert await lanes.run(statement("SELECT count(*) FROM pg_class WHERE false")) == "0"


async def test_there_are_never_more_connections_than_lanes(lanes, admin):
    async with holding(admin):
        running = [
            asyncio.ensure_future(lanes.run(statement(HELD_ECHO, str(number)))) for number in range(30)
        ]
        await until(admin, "state = 'active'", COUNTS[Lane.KEY])
        await until(admin, "true", COUNTS[Lane.KEY] + COUNTS[Lane.FILTER])
    assert await asyncio.gather(*running) == [str(number) for number in range(30)]


async def test_statements_without_a_free_lane_wait_in_line(single):
    order = []

    async def run(number):
        order.append(await single.run(statement(SLOW_ECHO if number == "0" else ECHO, number)))

    await asyncio.gather(*(run(str(number)) for number in range(20)))

    assert order == [str(number) for number in range(20)]


async def test_statements_by_key_and_by_filter_have_settings_of_their_own(lanes):
    shown = {
        lane: [
            await lanes.run(statement(f"SHOW {name}", lane=lane))
            for name in ("plan_cache_mode", "enable_sort", "enable_seqscan", "enable_bitmapscan", "jit")
        ]
        for lane in Lane
    }

    assert shown == {
        Lane.KEY: ["force_generic_plan", "off", "off", "off", "off"],
        Lane.FILTER: ["force_custom_plan", "on", "on", "on", "off"],
    }


@pytest.mark.parametrize("size", [3 * 1024 * 1024, 12 * 1024 * 1024])
async def test_large_values_go_both_ways(single, size):
    large = "é" * (size // 2)

    assert await single.run(statement(ECHO, large)) == large
    assert await single.run(statement(ECHO, "small")) == "small"


# failures


def refuse(result):
    raise ServerBusy


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (statement("SELECT 1 / 0"), UnexpectedFailure),
        (statement("SELECT $1::int", "no number"), UnexpectedFailure),
        (statement("not SQL at all"), UnexpectedFailure),
        (Statement(ECHO, ("x",), Lane.KEY, refuse), ServerBusy),
    ],
)
async def test_a_statement_that_fails_leaves_the_lane_usable(single, failing, error):
    for _ in range(3):
        with pytest.raises(error):
            await single.run(failing)

        assert await single.run(statement(ECHO, "next")) == "next"


async def test_everyone_gets_the_result_or_failure_of_the_own_statement(lanes):
    divisors = [number % 4 for number in range(100)]
    results = await asyncio.gather(
        *(
            lanes.run(statement(f"SELECT 12 / $1::int FROM pg_sleep({number % 7} / 2000.0)", str(divisor)))
            for number, divisor in enumerate(divisors)
        ),
        return_exceptions=True,
    )

    for divisor, result in zip(divisors, results, strict=True):
        assert result == str(12 // divisor) if divisor else isinstance(result, UnexpectedFailure)


@pytest.mark.slow
async def test_a_filter_has_only_so_much_time(short_filters, lanes):
    with pytest.raises(Canceled):
        await lanes.run(statement("SELECT pg_sleep(10)", lane=Lane.FILTER))

    assert await lanes.run(statement(ECHO, "next", lane=Lane.FILTER)) == "next"


async def test_connections_to_a_server_that_hangs_are_given_up(single, admin):
    """The one that is busy too; what comes next has a new one."""
    waiting = asyncio.ensure_future(single.run(statement("SELECT pg_sleep(4)")))
    await asyncio.sleep(0)

    single.give_up_older(monotonic())

    with pytest.raises(ServerBusy):
        await waiting
    assert await single.run(statement(ECHO, "next")) == "next"
    await terminate(admin, "state = 'active'")


# prepared statements


@pytest.fixture
def limit(monkeypatch):
    """Set the number of statements that a lane keeps prepared."""
    monkeypatch.setattr(module, "_PREPARED_LIMIT", 4)
    return 4


PREPARED = statement("SELECT count(*) FROM pg_prepared_statements")


async def test_statements_are_prepared_once(single):
    for number in range(20):
        await single.run(statement(ECHO, str(number)))

    assert await single.run(PREPARED) == "2"  # and the one that counts


async def test_the_statement_not_used_for_longest_is_forgotten(single, limit):
    for number in range(30):
        assert await single.run(statement(f"SELECT $1::text || {number}", "n")) == f"n{number}"
        assert await single.run(statement(ECHO, "often")) == "often"

    assert await single.run(PREPARED) == str(limit)
    names = "SELECT string_agg(statement, '; ' ORDER BY prepare_time) FROM pg_prepared_statements"
    assert ECHO in (await single.run(statement(names))).split("; ")


async def test_a_connection_that_has_prepared_very_many_statements_is_replaced(single, monkeypatch):
    monkeypatch.setattr(module, "_MOST_PREPARED", 5)
    used = set()
    for number in range(12):
        used.add(await single.run(statement(f"SELECT pg_backend_pid()::text AS a{number}")))

    assert len(used) == 3
    assert await single.run(PREPARED) == "3"


async def test_statements_that_cannot_be_prepared_take_no_room(single, limit):
    for number in range(10):
        assert await single.run(statement(f"SELECT $1::text || {number}", "n")) == f"n{number}"
        with pytest.raises(UnexpectedFailure):
            await single.run(statement(f"SELECT nonsense{number}"))

    assert int(await single.run(PREPARED)) <= limit


async def test_a_prepared_statement_follows_a_table_that_is_made_again(single, admin):
    insert = statement("INSERT INTO lanes_anew VALUES ($1) RETURNING a", "x")
    for _ in range(2):
        with pytest.raises(TableNotFound):
            await single.run(insert)
        await admin.execute("CREATE TABLE lanes_anew (a text)")
        try:
            assert await single.run(insert) == "x"
        finally:
            await admin.execute("DROP TABLE lanes_anew")


# statements that lose against others

LOCKS = """
SELECT 'done' FROM (
    SELECT pg_advisory_xact_lock($1::bigint), pg_sleep(0.1), pg_advisory_xact_lock($2::bigint)
) AS locks
"""


async def test_the_victim_of_a_deadlock_is_sent_again(open_lanes):
    lanes = await open_lanes(2, options="-c deadlock_timeout=50ms")

    both = [lanes.run(statement(LOCKS, "1", "2")), lanes.run(statement(LOCKS, "2", "1"))]

    async with asyncio.timeout(60):
        assert list(await asyncio.gather(*both)) == ["done", "done"]


@pytest.fixture
async def lose(admin):
    """Return `lose(times)`, a statement that is rolled back so many times before it succeeds."""
    await admin.execute("CREATE SEQUENCE lanes_attempts")
    await admin.execute(
        """
        CREATE FUNCTION lanes_lose(times bigint, state text) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE attempt bigint := nextval('lanes_attempts');
        BEGIN
            IF attempt <= times THEN RAISE EXCEPTION USING ERRCODE = state; END IF;
            RETURN attempt;
        END
        $$
        """
    )
    yield lambda times, state: statement("SELECT lanes_lose($1, $2)", str(times), state)
    await admin.execute("DROP FUNCTION lanes_lose")
    await admin.execute("DROP SEQUENCE lanes_attempts")


@pytest.mark.parametrize("state", ["40P01", "40001"])
async def test_a_statement_rolled_back_whole_is_sent_again(single, lose, state):
    assert await single.run(lose(4, state)) == "5"

    with pytest.raises((ServerBusy, OperationTimedOut)):
        await single.run(lose(1000, state))
    assert await single.run(statement("SELECT currval('lanes_attempts')")) == "10"


async def test_no_other_failure_is_tried_again(single, lose):
    with pytest.raises(UnexpectedFailure):
        await single.run(lose(1, "22000"))


# connections that break


async def test_connections_are_opened_when_they_are_needed(open_lanes, admin):
    lanes = await open_lanes(3)
    await until(admin, "true", 2)

    both = [asyncio.ensure_future(lanes.run(statement("SELECT pg_sleep(30)"))) for _ in range(2)]
    await until(admin, "state = 'active'", 2)

    await until(admin, "true", 3)
    await terminate(admin)
    await asyncio.gather(*both, return_exceptions=True)


async def test_a_connection_that_breaks_while_idle_is_replaced(open_lanes, admin):
    lanes = await open_lanes(2)
    await asyncio.gather(*(lanes.run(statement(SLOW_ECHO, "")) for _ in range(2)))
    await until(admin, "true", 3)

    assert await terminate(admin) == 3

    await until(admin, "true", 3)
    for lane in Lane:
        assert await lanes.run(statement(ECHO, "again", lane=lane)) == "again"


async def test_waiting_statements_get_the_new_connection(single, admin):
    first = asyncio.ensure_future(single.run(statement("SELECT pg_sleep(30)")))
    second = [asyncio.ensure_future(single.run(statement(ECHO, str(number)))) for number in range(3)]
    await until(admin, "state = 'active'")

    await terminate(admin, "state = 'active'")

    with pytest.raises(ServerBusy):
        await first
    assert await asyncio.gather(*second) == ["0", "1", "2"]


async def test_a_connection_that_breaks_while_it_is_written_to(single, admin):
    large = "x" * 20 * 1024 * 1024
    waiting = asyncio.ensure_future(single.run(statement("SELECT length($1::text) FROM pg_sleep(30)", large)))
    await asyncio.sleep(0)

    await terminate(admin)

    with pytest.raises(ServerBusy):
        await waiting
    async with asyncio.timeout(60):
        await until(admin, "true", 2)
    assert await single.run(statement(ECHO, "again")) == "again"


async def test_a_new_connection_knows_no_prepared_statement(single, admin):
    assert await single.run(statement(ECHO, "before")) == "before"
    await terminate(admin)
    await until(admin, "true", 2)

    assert await single.run(statement(ECHO, "after")) == "after"


async def test_no_lanes_without_a_database(postgres):
    lanes = Lanes(make_conninfo("", **{**postgres, "dbname": "no_such_database"}))

    with pytest.raises(psycopg.OperationalError, match="no_such_database"):
        await lanes.open()


# those who do not wait any longer


async def test_the_result_of_a_cancelled_statement_reaches_no_other(single, admin):
    async with holding(admin):
        gone = asyncio.ensure_future(single.run(statement(HELD_ECHO, "for nobody")))
        await until(admin, "state = 'active'")
        gone.cancel()
        mine = asyncio.ensure_future(single.run(statement(ECHO, "mine")))

    assert await mine == "mine"
    assert gone.cancelled()


async def test_cancelled_waiting_statements_do_not_block_others(single):
    first = asyncio.ensure_future(single.run(statement(SLOW_ECHO, "first")))
    gone = [asyncio.ensure_future(single.run(statement(ECHO, "gone"))) for _ in range(5)]
    last = asyncio.ensure_future(single.run(statement(ECHO, "last")))
    await asyncio.sleep(0.05)
    for waiting in gone:
        waiting.cancel()

    assert list(await asyncio.gather(first, last)) == ["first", "last"]


async def test_a_lane_is_not_lost_if_its_statement_is_cancelled_as_it_arrives(single):
    """The statement is cancelled in the very moment in which the lane is handed over."""
    first, gone = (asyncio.ensure_future(single.run(statement(ECHO, text))) for text in ("first", "gone"))
    line = single._pools[Lane.KEY]._waiting
    while not line:  # noqa: ASYNC110 - turn by turn of the loop
        await asyncio.sleep(0)
    while line:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([first, gone])

    assert gone.cancelled()
    async with asyncio.timeout(60):
        assert await single.run(statement(ECHO, "last")) == "last"


async def test_waiting_in_line_has_a_time_limit(single, admin, monkeypatch):
    monkeypatch.setattr(module, "_ACQUIRE_TIMEOUT", 0.1)
    async with holding(admin):
        first = asyncio.ensure_future(single.run(statement(HELD_ECHO, "first")))
        await asyncio.sleep(0)
        with pytest.raises(ServerBusy):
            await single.run(statement(ECHO, "second"))

    assert await first == "first"
    assert await single.run(statement(ECHO, "third")) == "third"


# walks


async def test_a_walk_runs_every_statement_it_yields_until_one_fails(lanes):
    def steps():
        first = yield statement(ECHO, "1")
        second = yield statement(ECHO, first + "2")
        yield statement(f"SELECT 1 / {second} / 0")

    with pytest.raises(UnexpectedFailure):
        await lanes.walk(steps())


@pytest.mark.slow
async def test_a_walk_may_go_on_after_a_failure(short_filters, lanes):
    def steps():
        try:
            yield statement("SELECT pg_sleep(10)", lane=Lane.FILTER)
        except Canceled:
            return (yield statement(ECHO, "after all"))

    assert await lanes.walk(steps()) == "after all"


# positions in the log


async def test_a_session_notes_the_position_after_its_statement(single, admin):
    async def position():
        cursor = await admin.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
        return (await cursor.fetchone())[0]

    session = Session()
    before = await position()
    text = "SELECT pg_logical_emit_message(true, 'test', $1)::text"
    for _ in range(3):  # prepared, and twice known
        await single.run(statement(text, "x"), session)
        assert session.position > before
        before = session.position
    assert await position() >= before
    # statements outside a session note nothing
    assert await single.run(statement(ECHO, "x")) == "x"
    assert session.position == before


async def test_a_failed_statement_has_a_position_too(single):
    for _ in range(2):
        session = Session()
        with pytest.raises(UnexpectedFailure):
            await single.run(statement("SELECT 1 / $1::int", "0"), session)
        assert session.position
    session = Session()
    with pytest.raises(UnexpectedFailure):
        await single.run(statement("not SQL at all"), session)
    assert session.position
    assert await single.run(statement(ECHO, "after"), session) == "after"


async def test_a_pipeline_sends_large_values_both_ways(single):
    large = "é" * (4 * 1024 * 1024)
    for _ in range(2):
        assert await single.run(statement(ECHO, large), Session()) == large


async def test_statements_that_are_not_used_any_more_are_deallocated(single, monkeypatch):
    monkeypatch.setattr(module, "_PREPARED_LIMIT", 2)
    for _ in range(3):
        for number in range(5):
            session = Session()
            assert await single.run(statement(f"SELECT $1::text || {number}", "x"), session) == f"x{number}"
            assert session.position
    prepared = statement("SELECT count(*)::text FROM pg_prepared_statements WHERE name <> 'position'")
    assert await single.run(prepared) == "2"


async def test_a_lost_connection_of_a_session_is_replaced(single, admin):
    session = Session()
    running = asyncio.ensure_future(single.run(statement("SELECT $1::text FROM pg_sleep(60)", "x"), session))
    await until(admin, "state = 'active'")
    await terminate(admin)
    with pytest.raises(ServerBusy):
        await running
    assert await single.run(statement(ECHO, "x"), session) == "x"
    assert session.position


# servers that change


async def test_a_server_that_became_a_standby_is_left(open_lanes, admin):
    lanes = await open_lanes(1)
    await lanes.run(statement("SELECT set_config('default_transaction_read_only', 'on', false)"))
    before = await lanes.run(statement("SELECT pg_backend_pid()"))

    with pytest.raises(ServerBusy):
        await lanes.run(statement("CREATE TABLE written (n int)"))

    assert await lanes.run(statement("SELECT pg_backend_pid()")) != before


async def test_suspended_lanes_give_up_what_runs_and_what_waits(single, admin):
    running = [asyncio.ensure_future(single.run(statement("SELECT 'x' FROM pg_sleep(60)"))) for _ in range(3)]
    await asyncio.sleep(0)

    single.suspend()

    for it in running:
        with pytest.raises(ServerBusy):
            await it
    with pytest.raises(ServerBusy):
        await single.run(statement(ECHO, "x"))
    single.resume()
    assert await single.run(statement(ECHO, "x")) == "x"
    await terminate(admin, "state = 'active'")


async def test_waits_for_a_database_that_recovers(postgres, scratch, monkeypatch):
    there, is_told = scratch / "there", asyncio.Event()
    monkeypatch.setattr(module.logger, "warning", lambda *_: is_told.set())
    lanes = Lanes(make_conninfo("", **{**postgres, "host": str(there)}))
    opening = asyncio.create_task(lanes.open(recovery=60))
    await is_told.wait()
    there.symlink_to(postgres["host"])
    await opening
    assert lanes.is_open
    lanes.close()


# nodes of a cluster, and a server that cannot be reached


async def test_statements_that_wait_for_nodes_leave_connections_to_others(open_lanes, admin):
    lanes = await open_lanes(4)
    async with holding(admin):
        held = [
            asyncio.ensure_future(lanes.run(statement(f"{HELD_ECHO} -- distributed_1", str(number))))
            for number in range(8)
        ]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while await (await admin.execute(waiting)).fetchone() != (3,):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert [await lanes.run(statement(ECHO, str(number))) for number in range(3)] == ["0", "1", "2"]
        assert not any(it.done() for it in held)
    assert await asyncio.gather(*held) == [str(number) for number in range(8)]


async def test_a_statement_that_is_abandoned_frees_its_connection_at_once(open_lanes, admin):
    lanes = await open_lanes(1)
    async with holding(admin):
        held = asyncio.ensure_future(lanes.run(statement(f"{HELD_ECHO} -- distributed_1", "a")))
        await asyncio.sleep(0)
        next_one = asyncio.ensure_future(lanes.run(statement(f"{ECHO} -- distributed_1", "b")))
        await asyncio.sleep(0)
        held.cancel(module.ABANDONED)
        assert await asyncio.wait_for(next_one, 60) == "b"
    with pytest.raises(asyncio.CancelledError):
        await held


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM distributed_17 WHERE pk = $1", True),
        ("SELECT * FROM distributed_17_change_set($1)", True),
        ("DROP TABLE deleted_distributed_17", True),
        ("SELECT 1 FROM entity_17", False),
        ("SELECT distributed_rows, distributed_bytes FROM storage_table", False),
    ],
)
def test_statements_that_wait_for_nodes_are_known_by_their_relations(text, expected):
    assert waits_elsewhere(text) is expected


async def test_a_server_that_cannot_be_reached_is_waited_for_only_a_moment(postgres, admin, monkeypatch):
    monkeypatch.setattr(module, "_UNREACHABLE_TIMEOUT", 0.2)
    await admin.execute("CREATE DATABASE passing")
    lanes = Lanes(make_conninfo("", **{**postgres, "dbname": "passing"}), counts={Lane.KEY: 2})
    try:
        await lanes.open()
        assert await lanes.run(statement(ECHO, "a")) == "a"
        await lanes.until_reachable()

        await admin.execute("ALTER DATABASE passing ALLOW_CONNECTIONS false")
        end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = 'passing'"
        await admin.execute(end)
        while lanes.is_open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for ask in (lambda: lanes.run(statement(ECHO, "b")), lanes.until_reachable):
            with pytest.raises(ServerBusy):
                await asyncio.wait_for(ask(), module._ACQUIRE_TIMEOUT / 2)

        await admin.execute("ALTER DATABASE passing ALLOW_CONNECTIONS true")
        while not lanes.is_open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await lanes.until_reachable()
        assert await lanes.run(statement(ECHO, "c")) == "c"
    finally:
        lanes.close()
        await admin.execute("DROP DATABASE passing WITH (FORCE)")
