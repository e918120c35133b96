"""The clock that gives entities their Timestamps, and the floor below which no more are given.

A moment is closed by raising the floor to it: every write takes a Timestamp above the floor, wherever the clock is set
afterwards. A write that read the floor before it was raised holds a lock on its relation, which was taken earlier; when
such writes have ended, all changes up to the moment are visible, and what is read as of it never changes. The floor is
a sequence, because each statement sees its present value, whatever its snapshot is.

Statements on distributed relations may call no volatile functions, and cannot be read as of a moment: they use the
clock alone.
"""

from typing import Final

from django.db.models import DateTimeField, Func
from django.db.models.expressions import Combinable

from storage.domain.entities.moments import Moment
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.sql.distribution import capabilities
from storage.sql.failures import IN_DISORDER
from storage.sql.record import Record, is_of
from storage.sql.statement import Lane, Result, Statement, integer_at, text_at


def ticks(time: str) -> str:
    """Return SQL of a time in ticks."""
    # by way of float8, whose 53 bits hold microseconds exactly: numeric takes four times as long
    return f"(date_part('epoch', {time}) * 1000000)::bigint * 10"


# statement_timestamp: a distributed PostgreSQL refuses volatile functions in an UPDATE
CLOCK: Final = ticks("statement_timestamp()")
_PRESENT_CLOCK: Final = ticks("clock_timestamp()")
# reading it with a subquery would take 3 µs instead of 0.3
_FLOOR: Final = "pg_sequence_last_value('moment_floor'::regclass)"
# An insertion may have to wait for a deletion, which took its Timestamp when its statement began. So this one is taken
# as late as possible.
NOW: Final = f"greatest({CLOCK}, {_FLOOR} + 1)"
PRESENT: Final = f"greatest({_PRESENT_CLOCK}, {_FLOOR} + 1)"

_LOCK: Final = 0x74616D66  # the advisory lock of those who raise the floor
_KEPT_EVERY: Final = 2 * TICKS_PER_SECOND
# The floor is not raised farther ahead of the clock. A clock is often wrong by as much as time zones differ: a floor
# that is no farther ahead waits for the clock.
_FARTHEST: Final = 26 * 3600 * TICKS_PER_SECOND
# A clock that is set back by more was wrong before or is wrong now. It was wrong before if it had jumped ahead in this
# time, and comes back to no earlier than where it jumped from: then the floor is lowered, so that it does not stop
# Timestamps for years, and no moment before the jump changes. Otherwise it is wrong now, and the floor stays.
_JUMP_FORGOTTEN: Final = 30 * 24 * 3600 * TICKS_PER_SECOND

# What a row that was inserted returns: its Timestamp, unless a deletion may have got a later one because the insertion
# was held up after it took its own. That is looked up unless it was too quick for another statement to have come
# between; asking the clock takes a tenth of the time.
_IN_ORDER: Final = "CASE WHEN {is_quick} THEN e.ts ELSE {history}_in_order({table}, e.pk, e.rk, e.ts) END"
_IS_QUICK: Final = "clock_timestamp() - statement_timestamp() < interval '100 us'"
# the same for one of several rows
_IS_QUICK_OF_SEVERAL: Final = f"abs({_PRESENT_CLOCK} - e.ts - 500) <= 500"
# If it is ahead of the clock, the floor has to be raised: the entity may be inserted again.
_DELETED: Final = (
    f"CASE WHEN {CLOCK} > greatest({_FLOOR}, e.ts) THEN {CLOCK} ELSE entity_deleted_ahead(e.ts) END"
)

_JUMPED_FROM: Final = "coalesce(pg_sequence_last_value('moment_jump_from'::regclass), 0)"
_JUMPED_TO: Final = "coalesce(pg_sequence_last_value('moment_jump_to'::regclass), 0)"

# what the clock has jumped from and to, for keep_moment_floor
CREATE_JUMPS: Final = """
CREATE SEQUENCE IF NOT EXISTS moment_jump_from AS bigint MINVALUE 0 START 0;
CREATE SEQUENCE IF NOT EXISTS moment_jump_to AS bigint MINVALUE 0 START 0;
"""
CREATE_FUNCTIONS: Final = f"""
CREATE OR REPLACE FUNCTION raise_moment_floor(ticks bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF ticks > coalesce({_FLOOR}, 0) AND ticks < {_PRESENT_CLOCK} + {_FARTHEST} THEN
        -- one at a time: it must not be lowered
        PERFORM pg_advisory_xact_lock({_LOCK});
        IF ticks > coalesce({_FLOOR}, 0) THEN
            PERFORM setval('moment_floor', ticks);
        END IF;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION keep_moment_floor() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    is_remembered boolean := {_FLOOR} < {_JUMPED_TO} + {_JUMP_FORGOTTEN};
BEGIN
    IF {CLOCK} > coalesce({_FLOOR}, 0) + {_KEPT_EVERY} THEN
        IF {_FLOOR} > 0 AND {CLOCK} > {_FLOOR} + {_FARTHEST} THEN
            PERFORM pg_advisory_xact_lock({_LOCK});
            IF NOT is_remembered THEN
                PERFORM setval('moment_jump_from', {_FLOOR});
            END IF;
            PERFORM setval('moment_jump_to', {CLOCK});
        END IF;
        PERFORM raise_moment_floor({CLOCK});
    ELSIF {_FLOOR} > {CLOCK} + {_FARTHEST} AND is_remembered AND {CLOCK} >= {_JUMPED_FROM} THEN
        PERFORM pg_advisory_xact_lock({_LOCK});
        PERFORM setval('moment_floor', {CLOCK});
    END IF;
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
            AND CASE WHEN l.pid IS NOT NULL THEN (
                SELECT coalesce(xact_start <= to_timestamp(moment / 10000000.0), true)
                FROM pg_stat_get_activity(l.pid)
            ) ELSE true END
    );
END
$$;
CREATE OR REPLACE FUNCTION entity_deleted_ahead(was bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ticks bigint := greatest({NOW}, was + 1);
BEGIN
    PERFORM raise_moment_floor(ticks);
    RETURN ticks;
END
$$;
"""
CREATE: Final = f"""
CREATE SEQUENCE moment_floor AS bigint MINVALUE 0 START 0;
{CREATE_JUMPS}
{CREATE_FUNCTIONS}
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
DROP FUNCTION entity_deleted_ahead; DROP FUNCTION close_moment;
DROP FUNCTION keep_moment_floor; DROP FUNCTION raise_moment_floor; DROP SEQUENCE moment_floor;
DROP SEQUENCE moment_jump_from; DROP SEQUENCE moment_jump_to
"""


def now(relation: str) -> str:
    """Return SQL of the Timestamp of a write on a relation, in ticks."""
    return NOW if capabilities(relation).has_floor else CLOCK


def now_of_insertion(relation: str) -> str:
    """Return SQL of the Timestamp of an entity that is inserted."""
    return PRESENT if capabilities(relation).has_floor else CLOCK


def after(ticks: str) -> str:
    """Return SQL of the new Timestamp of a row ``e`` that is changed: it is later than the one that it has."""
    return f"greatest({ticks}, e.ts + 1)"


def in_order(history: str, table: str, *, is_several: bool) -> str:
    """Return SQL of the Timestamp of a row ``e`` that was inserted; the statement is to be repeated if it is too early.

    ``history`` is the view that changes are written to, ``table`` the id that they are recorded with.
    """
    is_quick = _IS_QUICK_OF_SEVERAL if is_several else _IS_QUICK
    return _IN_ORDER.format(is_quick=is_quick, history=history, table=table)


def create_in_order(history: str) -> str:
    """Return SQL of the function that ``in_order`` calls."""
    return _CREATE_IN_ORDER.format(history=history)


def drop_in_order(history: str) -> str:
    return f"DROP FUNCTION IF EXISTS {history}_in_order"


def of_deletion(relation: str) -> str:
    """Return SQL of when a row ``e`` is deleted, in ticks."""
    return _DELETED if capabilities(relation).has_floor else after(CLOCK)


# the same as a time, rounded up
PRESENT_TIME: Final = f"greatest(statement_timestamp(), to_timestamp(({_FLOOR} + 10) / 10000000.0))"


def present_time() -> Combinable:
    """Return the present time of the database for models."""
    return Func(template=PRESENT_TIME, output_field=DateTimeField())


def present() -> Statement[int]:
    """Return the time of the database in ticks."""
    return Statement(f"SELECT {PRESENT}", (), Lane.KEY, lambda result: integer_at(result, 0, 0))


_CLOSE_PRESENT: Final = f"""
SELECT ticks, raise_moment_floor(ticks)
FROM (SELECT keep_moment_floor(), {ticks(PRESENT_TIME)} AS ticks OFFSET 0) AS present
"""


def close_present() -> Statement[int]:
    """Return the statement that closes the past and the present moment; its result is the ``present_time`` in ticks.

    Each later ``present_time`` is later, and the past stays what it was, wherever the clock is set. If the clock had
    jumped ahead by more than a day and is back, the time since is opened first.
    """
    return Statement(_CLOSE_PRESENT, (), Lane.KEY, lambda result: integer_at(result, 0, 0))


def close(moment: Moment, relation: str, latest: int = 0) -> Statement[str | None]:
    """Return the statement that closes a moment for a relation.

    Its result are the transactions that may still write in it, None if it is in the future: of the clock, and of the
    ``latest`` Timestamp that was given.
    """

    def read(result: Result) -> str | None:
        return None if result.get_value(0, 0) is None else text_at(result, 0, 0)

    text = "SELECT array_to_string(close_moment($1::bigint, $2::bigint, $3::text::regclass), ',')"
    return Statement(text, (str(moment.ticks), str(latest), relation), Lane.KEY, read)


def are_running(transactions: str) -> Statement[bool]:
    """Return the statement that asks whether one of the transactions that ``close`` returned has not ended."""
    text = "SELECT count(*) FROM pg_locks WHERE virtualtransaction = ANY (string_to_array($1, ','))"
    return Statement(text, (transactions,), Lane.KEY, lambda result: integer_at(result, 0, 0) > 0)


def ahead() -> Statement[float]:
    """Return the seconds by which the next Timestamp is ahead of a clock that has been set back; 0 or less: none."""
    text = f"SELECT (coalesce({_FLOOR}, 0) - {CLOCK}) / {TICKS_PER_SECOND}::float8"
    return Statement(text, (), Lane.KEY, lambda result: float(text_at(result, 0, 0)))


def latest(record: Record) -> Statement[int]:
    """Return the statement that finds the latest Timestamp of these changes; 0: there is none."""
    text = f"SELECT coalesce(max(ts), 0) FROM ({record.changes('max(h.ts) AS ts', 'true')}) AS latest"
    return Statement(text, (), Lane.KEY, lambda result: integer_at(result, 0, 0))
