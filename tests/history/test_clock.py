"""Past moments: they never change, read or not, wherever the clock of the database is set.

Tests set the database's clock: its functions come before PostgreSQL's in the search path of a connection.
"""

import random

import pytest

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.moments import Moment
from storage.domain.errors import TableNotFound
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.domain.values.ticks import to_ticks
from storage.entities import edits, entities
from storage.history import past
from storage.sql import moments
from storage.sql.django import execute, fetch, run
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

KEY = EntityKey("p", "r")
HOUR, DAY = 3600.0, 86400.0
FUNCTIONS = "".join(
    f"""
    CREATE OR REPLACE FUNCTION clock.{name}() RETURNS timestamptz LANGUAGE sql STABLE AS
    $$ SELECT to_timestamp(current_setting('clock.now')::bigint / 10000000.0) $$;
    """
    for name in ("clock_timestamp", "statement_timestamp")
)


class Clock:
    """Stands still until it is set; servers have it noted once a second while it goes."""

    def __init__(self, now):
        self.now = now
        self.set(0.0)

    def set(self, seconds):
        """Set it forth or back."""
        self.now += round(seconds * TICKS_PER_SECOND / 10) * 10
        execute("SELECT set_config('clock.now', %s, false)", str(self.now))

    def go(self, seconds, noted_every=1.0):
        while seconds > 0:
            self.set(min(seconds, noted_every))
            if seconds >= noted_every:
                run(moments.present())
            seconds -= noted_every


@pytest.fixture
def clock():
    [(now,)] = fetch("SELECT clock_timestamp()")
    execute(f"CREATE SCHEMA clock; {FUNCTIONS}")
    execute("SET search_path = clock, pg_catalog, public")
    clock = Clock(to_ticks(now))
    yield clock
    execute("RESET search_path; DROP SCHEMA clock CASCADE")
    # no transaction takes them back
    execute("SELECT setval('moment_floor', 1), setval('moment_noted', 0)")
    execute("SELECT setval('moment_jump_from', 0), setval('moment_jump_to', 0)")


class History:
    """An entity with known versions, and its state at moments that were over."""

    def __init__(self, clock):
        self.clock = clock
        clock.go(1.0)
        self.table = tables.create(accounts.add("acme"), "people")
        clock.go(1.0)
        self.began = clock.now
        self.versions = []  # Timestamps and numbers, None where the entity was deleted
        self.seen = {}

    def write(self, change=None):
        number = len(self.versions)
        change = change or Upsert(Entity(KEY, {"A": EdmValue(Edm.INT32, number)}), merge=False)
        edits.apply(self.table, [change], by=SERVER)
        [(ticks,)] = fetch(f"SELECT max(ts) FROM history_{self.table.account_id}")
        self.versions.append((ticks, None if isinstance(change, Delete) else number))

    def look(self, back=0.0):
        """Note the state at a moment that is over now, without reading it."""
        moment = self.clock.now - 10 - round(back * TICKS_PER_SECOND)
        if moment > self.began:
            before = [version for version in self.versions if version[0] <= moment]
            self.seen.setdefault(moment, max(before)[1] if before else None)

    def at(self, moment):
        stored = entities.get(self.table, KEY, past.find(self.table, Moment(moment)))
        return None if stored is None else read_stored(stored).properties["A"].value

    def check(self):
        assert {moment: self.at(moment) for moment in self.seen} == self.seen
        assert [ticks for ticks, _ in self.versions] == sorted({ticks for ticks, _ in self.versions})


@pytest.fixture
def history(clock):
    return History(clock)


@pytest.mark.parametrize(
    ("waited", "back"),
    [(0.02, 1.5), (0.02, 3 * HOUR), (0.7, 20.0), (3.0, 120.0), (45.0, 1.5), (45.0, 3 * HOUR)],
)
def test_moments_closed_before_a_jump_stay_unchanged(clock, history, back, waited):
    history.write()
    for _ in range(3):
        clock.go(waited / 3)
        history.look()
    clock.set(-back)
    history.write()
    clock.go(0.01)
    history.write()
    clock.set(back)
    history.write()
    history.check()


def test_closed_moments_survive_a_restart(clock, history):
    """The server ended and the clock went on without it; a write is the first that the new one does."""
    history.write()
    clock.set(20.0)
    history.look()
    clock.set(-21.0)
    history.write()
    clock.set(60.0)
    history.check()


def test_a_small_step_back_is_noticed_where_something_was_written(clock, history):
    """The step is as small as those of daemons that set clocks; the moments of a twentieth of a second may be given
    twice.
    """
    history.write()
    clock.go(0.06)
    history.write()
    clock.go(0.04)
    history.look(back=0.05)
    clock.set(-0.128)
    history.write()
    clock.go(60.0)
    history.check()


def test_timestamps_follow_the_clock_again(clock, history):
    history.write()
    clock.set(-120.0)
    history.write()
    assert history.versions[-1][0] - clock.now == (120 + 30) * TICKS_PER_SECOND
    clock.go(149.0)
    history.write()
    assert history.versions[-1][0] > clock.now
    clock.go(2.0)
    history.write()
    assert history.versions[-1][0] == clock.now
    history.check()


@pytest.mark.parametrize("write", [moments.NOW, moments.PRESENT])
def test_the_clock_gives_timestamps_as_long_as_it_goes_forward(clock, write):
    """The table is written with and without a note of its latest Timestamp."""
    for seconds in (1.0, 0.01, 0.01, 0.04, 0.000001, 0.0499999, 3.0, 0.2):
        clock.set(seconds)
        [(given,)] = fetch(f"SELECT {write}")
        assert given == clock.now


def test_a_table_is_made_and_deleted_after_what_was_over(clock, history):
    account = history.table.account
    clock.go(5.0)
    over = Moment(clock.now - 10)
    clock.set(-60.0)
    tables.create(account, "later")
    tables.delete(account, "people")
    clock.set(90.0)
    with pytest.raises(TableNotFound):
        past.find_by_name(account, "later", over)
    assert past.find_by_name(account, "people", over)[0].pk == history.table.pk


def test_a_moment_that_was_over_can_be_read_before_the_clock_has_caught_up(clock, history):
    history.write()
    clock.go(3.0)
    history.look()
    clock.set(-120.0)
    history.check()


def test_a_deletion_and_an_insertion_after_a_jump_are_in_order(clock, history):
    history.write()
    clock.go(3.0)
    history.look()
    clock.set(-120.0)
    history.write(Delete(KEY, ANY))
    history.write(Insert(Entity(KEY, {"A": EdmValue(Edm.INT32, 2)})))
    history.write(Delete(KEY, ANY))
    clock.set(300.0)
    history.check()


def test_a_corrected_clock_is_followed_at_once(clock, history):
    history.write()
    clock.go(3.0)
    history.look()
    clock.set(400 * DAY)
    run(moments.close_present())
    clock.set(-400 * DAY)
    history.write()
    # from where it can have come before the jump
    assert history.versions[-1][0] - clock.now <= 30 * TICKS_PER_SECOND
    clock.go(60.0)
    history.write()
    assert history.versions[-1][0] == clock.now
    history.check()


def test_a_clock_that_begins_in_1970_waits(clock, history):
    history.write()
    clock.go(3.0)
    history.look()
    clock.set(-50 * 365 * DAY)
    history.write()
    history.write()
    clock.set(50 * 365 * DAY)
    history.check()


@pytest.mark.parametrize("seed", range(6))
def test_any_jumps(clock, history, seed):
    draw = random.Random(seed)
    for _ in range(60):
        match draw.choice(["go", "go", "write", "write", "look", "back", "forth", "read"]):
            case "go":
                clock.go(draw.choice([0.001, 0.03, 0.4, 1.0, 7.0]))
            case "write":
                history.write()
            case "look":
                clock.go(0.001)
                history.look(back=draw.choice([0.0, 0.0, 0.5, 10.0]))
            case "read" if history.seen:
                moment = draw.choice(list(history.seen))
                assert history.at(moment) == history.seen[moment]
            case "back":
                # by more than what went since the clock was noted
                clock.set(-draw.choice([1.001, 2.0, 29.0, 31.0, 600.0, 5 * HOUR]))
            case "forth":
                clock.set(draw.choice([0.5, 15.0, 600.0, 5 * HOUR]))
                run(moments.present())
    history.check()
