"""Clock of Timestamps, and the floor below which none are issued."""

from collections.abc import Callable, Iterable
from typing import Final

from django.db.models import DateTimeField, Func
from django.db.models.expressions import Combinable

from storage.core.relation_forms import Extension
from storage.domain.entities.moments import Moment
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.sql.failures import IN_DISORDER
from storage.sql.forms import capabilities
from storage.sql.record import Record, is_of
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at


def ticks(time: str) -> str:
    """Return SQL that converts a time to ticks."""
    # by way of float8, whose 53 bits hold microseconds exactly: numeric takes four times as long
    return f"(date_part('epoch', {time}) * 1000000)::bigint * 10"


# statement_timestamp: statements on relations without has_floor may call no volatile functions
CLOCK: Final = ticks("statement_timestamp()")
_PRESENT_CLOCK: Final = ticks("clock_timestamp()")
# reading it with a subquery would take 3 µs instead of 0.3
_FLOOR: Final = "pg_sequence_last_value('moment_floor'::regclass)"
_NOTED: Final = "coalesce(pg_sequence_last_value('moment_noted'::regclass), 0)"
# A write notes the clock when the floor is farther behind. To do so takes 10 µs, thirty times as long as to see that
# it is not necessary.
_NOTED_EVERY: Final = TICKS_PER_SECOND // 20
# The clock is noted at least this often: every few seconds, by a server that is idle or starts again. Timestamps stand
# still for so much longer than a clock was set back.
_AHEAD: Final = 30 * TICKS_PER_SECOND


def as_time(ticks: str) -> str:
    """Return the SQL of ticks as a time, rounded up to microseconds."""
    return f"to_timestamp(({ticks} + 9) / 10 / 1000000.0)"


def _is_usual(clock: str) -> str:
    """Return the condition that a clock is above the floor and was noted recently."""
    # a single look at the floor: BETWEEN would take two
    return f"abs({clock} - {_FLOOR} - {_NOTED_EVERY // 2}) < {_NOTED_EVERY // 2}"


def _above_floor(clock: str) -> str:
    """Return SQL for a Timestamp by a clock, above the floor."""
    return f"(CASE WHEN {_is_usual(clock)} THEN {clock} ELSE next_moment({clock}) END)"


# An insertion may have to wait for a deletion, which took its Timestamp when its statement began. So this one is taken
# as late as possible.
NOW: Final = _above_floor(CLOCK)
PRESENT: Final = _above_floor(_PRESENT_CLOCK)

_LOCK: Final = 0x74616D66  # the advisory lock of those who raise the floor
_RAISED: Final = "TB005"  # the state of the exception that releases it
# The floor is not raised farther ahead of the clock. A clock is often wrong by as much as time zones differ: a right
# one catches up with a floor within this distance.
_FARTHEST: Final = 26 * 3600 * TICKS_PER_SECOND
# A clock that is set back by more was wrong before or is wrong now. It was wrong before if it had jumped ahead in this
# time, and comes back to no earlier than where it jumped from: then the floor is lowered, so that it does not stop
# Timestamps for years, and no moment before the jump changes. Otherwise it is wrong now, and the floor stays.
_JUMP_FORGOTTEN: Final = 30 * 24 * 3600 * TICKS_PER_SECOND

# An inserted row returns its Timestamp, unless a deletion may have got a later one because the insertion was held up
# after it took its own. That is looked up unless the insertion was too quick for another statement to have come
# between; asking the clock takes a tenth of the time.
_IS_QUICK: Final = f"abs({_PRESENT_CLOCK} - e.ts - 500) <= 500"  # less than 100 µs
_IN_ORDER: Final = (
    f"CASE WHEN {_IS_QUICK} THEN e.ts ELSE {{history}}_in_order({{table}}, e.pk, e.rk, e.ts) END"
)
_DELETED: Final = (
    f"CASE WHEN {CLOCK} > e.ts AND {_is_usual(CLOCK)} THEN {CLOCK} ELSE entity_deleted_ahead(e.ts) END"
)

# Writers of relations without has_floor hold this shared lock, with the id of their table, before they take a time: a
# LOCK TABLE would be sent to all nodes.
_WRITING: Final = 0x74616D77
WRITE: Final = f"pg_advisory_xact_lock_shared({_WRITING}, {{table_id}})"
# makes them wait before they take a time
HOLD_WRITES: Final = f"SELECT pg_advisory_xact_lock({_WRITING}, {{table_id}})"
# A deletion has raised the floor to its Timestamp, later than the one of an insertion that may have waited for it, or
# may have raised that of another node: the shard moved there while the insertion waited, for longer than this.
_WAITED: Final = TICKS_PER_SECOND // 200
IS_OVERTAKEN: Final = f"({_FLOOR} >= moment OR node_moment() - moment > {_WAITED})"

# a transaction that holds a lock may have taken its time up to a moment; one that is prepared has no process
_MAY_BE_EARLIER: Final = """CASE WHEN l.pid IS NOT NULL THEN (
                SELECT coalesce(xact_start <= to_timestamp(moment / 10000000.0), true)
                FROM pg_stat_get_activity(l.pid)
            ) ELSE true END"""

_JUMPED_FROM: Final = "coalesce(pg_sequence_last_value('moment_jump_from'::regclass), 0)"
_JUMPED_TO: Final = "coalesce(pg_sequence_last_value('moment_jump_to'::regclass), 0)"

# the clock that was noted last, and what it has jumped from and to, for keep_moment_floor
CREATE_NOTES: Final = """
CREATE SEQUENCE IF NOT EXISTS moment_noted AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS moment_jump_from AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS moment_jump_to AS bigint MINVALUE 0 START 0;
"""
# servers before 1.1 have noted the clock in the floor itself
NOTE_FLOOR: Final = f"SELECT setval('moment_noted', {_FLOOR}) WHERE {_NOTED} = 0 AND {_FLOOR} > 0"
CREATE_FUNCTIONS: Final = f"""
-- No one may lower what another has raised. The exception releases the lock at once, not at the end of a transaction
-- that others would wait for; it takes nothing back, as sequences are not part of transactions.
CREATE OR REPLACE FUNCTION raise_moment_floor(ticks bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF ticks > coalesce({_FLOOR}, 0) AND ticks < {_PRESENT_CLOCK} + {_FARTHEST} THEN
        PERFORM pg_advisory_xact_lock({_LOCK});
        IF ticks > coalesce({_FLOOR}, 0) THEN
            PERFORM setval('moment_floor', ticks);
        END IF;
        RAISE EXCEPTION USING ERRCODE = '{_RAISED}';
    END IF;
EXCEPTION WHEN SQLSTATE '{_RAISED}' THEN
    NULL;
END
$$;
CREATE OR REPLACE FUNCTION keep_moment_floor() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    floor bigint;
    noted bigint;
    ticks bigint;
    is_remembered boolean;
BEGIN
    PERFORM pg_advisory_xact_lock({_LOCK});
    floor := coalesce({_FLOOR}, 0);
    noted := {_NOTED};
    ticks := {_PRESENT_CLOCK};  -- read last: if it is earlier than one that was noted, it has been set back
    is_remembered := floor < {_JUMPED_TO} + {_JUMP_FORGOTTEN};
    IF ticks >= noted THEN
        IF noted > 0 AND ticks > noted + {_FARTHEST} THEN
            IF NOT is_remembered THEN
                PERFORM setval('moment_jump_from', noted + {_AHEAD});
            END IF;
            PERFORM setval('moment_jump_to', ticks);
        END IF;
        PERFORM setval('moment_noted', ticks);
        IF ticks - 1 > floor THEN
            PERFORM setval('moment_floor', ticks - 1);
        END IF;
    ELSIF floor > ticks + {_FARTHEST} AND is_remembered AND ticks >= {_JUMPED_FROM} - {_AHEAD} THEN
        PERFORM setval('moment_noted', ticks);
        PERFORM setval('moment_floor', greatest(ticks, {_JUMPED_FROM}) - 1);
    ELSIF noted + {_AHEAD} - 1 > floor THEN
        PERFORM setval('moment_floor', noted + {_AHEAD} - 1);
    END IF;
    RAISE EXCEPTION USING ERRCODE = '{_RAISED}';
EXCEPTION WHEN SQLSTATE '{_RAISED}' THEN
    NULL;
END
$$;
-- returns the Timestamp of a write whose clock is not just above the floor
CREATE OR REPLACE FUNCTION next_moment(ticks bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    floor bigint := coalesce({_FLOOR}, 0);
    noted bigint := {_NOTED};
    clock bigint := {_PRESENT_CLOCK};  -- read last, as above
BEGIN
    IF ticks > floor + {_NOTED_EVERY}
        OR clock < noted AND (floor < noted + {_AHEAD} - 1 OR floor > clock + {_FARTHEST})
    THEN
        PERFORM keep_moment_floor();
    END IF;
    RETURN greatest(ticks, {_FLOOR} + 1);
END
$$;
-- returns the virtual transactions that may still write with a Timestamp up to the moment; null: it is in the future
CREATE OR REPLACE FUNCTION close_moment(moment bigint, latest bigint, relation regclass) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
    IF moment > coalesce({_FLOOR}, 0) THEN
        IF moment > greatest({PRESENT}, least(latest, {_PRESENT_CLOCK} + {_FARTHEST} - 1)) THEN
            RETURN NULL;
        END IF;
        PERFORM raise_moment_floor(moment);
    END IF;
    RETURN ARRAY(
        SELECT l.virtualtransaction FROM pg_locks AS l
        WHERE l.locktype = 'relation' AND l.relation = close_moment.relation AND l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
            AND l.pid IS DISTINCT FROM pg_backend_pid()
            AND {_MAY_BE_EARLIER}
    );
END
$$;
CREATE OR REPLACE FUNCTION entity_deleted_ahead(was bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ticks bigint := greatest({NOW}, was + 1);
BEGIN
    IF ticks >= {_PRESENT_CLOCK} THEN
        PERFORM raise_moment_floor(ticks);  -- the entity may be inserted again
    END IF;
    RETURN ticks;
END
$$;
"""
# for nodes that have relations without has_floor; each has a floor of its own
CREATE_NODE_FUNCTIONS: Final = f"""
-- returns the present Timestamp of this node
CREATE OR REPLACE FUNCTION node_moment() RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN {PRESENT};
EXCEPTION WHEN undefined_table THEN  -- the node is new
    PERFORM pg_advisory_xact_lock({_LOCK});
    CREATE SEQUENCE IF NOT EXISTS moment_floor AS bigint MINVALUE 0 START 0;
    {CREATE_NOTES.strip()}
    RETURN {PRESENT};
END
$$;
-- returns how many transactions of this node may still write up to the moment; null: its clock is wrong
CREATE OR REPLACE FUNCTION close_node_moment(moment bigint, table_id integer) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM node_moment();
    PERFORM raise_moment_floor(moment);
    IF moment > {_FLOOR} THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT count(*) FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.classid = {_WRITING} AND l.objid = table_id::oid AND l.objsubid = 2
            AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND l.pid IS DISTINCT FROM pg_backend_pid() AND {_MAY_BE_EARLIER}
    );
END
$$;
"""
CREATE: Final = f"""
CREATE SEQUENCE moment_floor AS bigint MINVALUE 0 START 0;
{CREATE_NOTES}
{CREATE_FUNCTIONS}
{CREATE_NODE_FUNCTIONS}
"""
_CREATE_IN_ORDER: Final = f"""
CREATE OR REPLACE FUNCTION {{history}}_in_order(table_id bigint, p text, r text, ticks bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    latest bigint := (
        SELECT h.ts FROM {{history}} AS h
        WHERE {is_of("table_id", "p", "r")}
        ORDER BY h.seq DESC LIMIT 1
    );
BEGIN
    -- a Timestamp of a clock that was wrong by more cannot be waited for
    IF latest >= ticks AND latest < {_PRESENT_CLOCK} + {_FARTHEST} THEN
        PERFORM raise_moment_floor(latest);
        RAISE EXCEPTION USING ERRCODE = '{IN_DISORDER}';
    END IF;
    RETURN ticks;
END
$$
"""
DROP: Final = """
DROP FUNCTION close_node_moment; DROP FUNCTION node_moment;
DROP FUNCTION entity_deleted_ahead; DROP FUNCTION close_moment; DROP FUNCTION next_moment;
DROP FUNCTION keep_moment_floor; DROP FUNCTION raise_moment_floor; DROP SEQUENCE moment_floor;
DROP SEQUENCE moment_noted;
DROP SEQUENCE moment_jump_from; DROP SEQUENCE moment_jump_to
"""


def now(relation: str) -> str:
    """Return SQL for the Timestamp of a write on a relation, in ticks."""
    return NOW if capabilities(relation).has_floor else CLOCK


def now_of_insertion(relation: str) -> str:
    """Return SQL for the Timestamp of an insert."""
    return PRESENT if capabilities(relation).has_floor else CLOCK


def after(ticks: str) -> str:
    """Return SQL for the new Timestamp of a changed row ``e``, later than its present one."""
    return f"greatest({ticks}, e.ts + 1)"


def in_order(history: str, table: str) -> str:
    """Return SQL for the Timestamp of an inserted row ``e``; the statement must be repeated if it is too early.

    ``history`` is the view that changes are written to, ``table`` the id that they are recorded with.
    """
    return _IN_ORDER.format(history=history, table=table)


def create_in_order(history: str) -> str:
    """Return SQL that creates the function called by ``in_order``."""
    return _CREATE_IN_ORDER.format(history=history)


def drop_in_order(history: str) -> str:
    return f"DROP FUNCTION IF EXISTS {history}_in_order"


def of_deletion(relation: str) -> str:
    """Return SQL for the deletion time of a row ``e``, in ticks."""
    return _DELETED if capabilities(relation).has_floor else after(CLOCK)


# the same as a time, rounded up
PRESENT_TIME: Final = (
    f"CASE WHEN {_is_usual(CLOCK)} THEN statement_timestamp() ELSE {as_time(f'next_moment({CLOCK})')} END"
)


def present_time() -> Combinable:
    """Return the database's present time as a datetime."""
    return Func(template=PRESENT_TIME, output_field=DateTimeField())


def present() -> Statement[int]:
    """Return the statement for the database's present time in ticks."""
    return Statement(f"SELECT {PRESENT}", (), Lane.KEY, lambda result: integer_at(result, 0, 0))


_CLOSE_PRESENT: Final = f"""
SELECT ticks, raise_moment_floor(ticks)
FROM (SELECT keep_moment_floor(), {ticks(PRESENT_TIME)} AS ticks OFFSET 0) AS present
"""


def close_present() -> Statement[int]:
    """Return the statement that closes the present moment; its result is the ``present_time`` in ticks."""
    return Statement(_CLOSE_PRESENT, (), Lane.KEY, lambda result: integer_at(result, 0, 0))


def close(moment: Moment, relation: str, latest: int = 0) -> Statement[str | None]:
    """Return the statement that closes a moment for a relation."""

    def read(result: Result) -> str | None:
        return None if result.get_value(0, 0) is None else text_at(result, 0, 0)

    text = "SELECT array_to_string(close_moment($1::bigint, $2::bigint, $3::text::regclass), ',')"
    return Statement(text, (str(moment.ticks), str(latest), relation), Lane.KEY, read)


def close_everywhere(extension: Extension, moment: Moment, table_id: int) -> Statement[int | None]:
    """Return the statement that closes a moment on all servers, for a relation without has_floor.

    It yields the number of transactions that may still write up to the moment; None if not all servers have
    closed it.
    """
    text = extension.everywhere.format(command=f"SELECT close_node_moment({moment.ticks}, {table_id})")
    return Statement(text, (), Lane.KEY, lambda result: _total(result, sum))


def present_everywhere(extension: Extension) -> Statement[int | None]:
    """Return the statement for the latest present time of all servers; None if not all of them have answered."""
    text = extension.everywhere.format(command="SELECT node_moment()")
    return Statement(text, (), Lane.KEY, lambda result: _total(result, max))


def _total(result: Result, combine: Callable[[Iterable[int]], int]) -> int | None:
    rows = range(result.ntuples)
    if not all(text_at(result, row, 0) == "t" and result.get_value(row, 1) for row in rows):
        return None
    return combine(integer_at(result, row, 1) for row in rows)


def are_running(transactions: str) -> Statement[bool]:
    """Return the statement that tells whether any of the transactions from ``close`` is still running."""
    text = "SELECT count(*) FROM pg_locks WHERE virtualtransaction = ANY (string_to_array($1, ','))"
    return Statement(text, (transactions,), Lane.KEY, lambda result: integer_at(result, 0, 0) > 0)


def ahead() -> Statement[float]:
    """Return the statement for the seconds by which Timestamps are ahead of the clock, if positive."""
    text = f"SELECT (coalesce({_FLOOR}, 0) - {CLOCK}) / {TICKS_PER_SECOND}::float8"
    return Statement(text, (), Lane.KEY, lambda result: float(text_at(result, 0, 0)))


def latest(record: Record) -> Statement[int]:
    """Return the statement for the latest Timestamp of recorded changes; 0 without any."""
    text = f"SELECT coalesce(max(ts), 0) FROM ({record.changes('max(h.ts) AS ts', 'true')}) AS latest"
    return Statement(text, (), Lane.KEY, lambda result: integer_at(result, 0, 0))
