"""A clock that jumps: of the server and of PostgreSQL, by libfaketime, and of the watch that guards deletions."""

import json
import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import pairwise
from uuid import uuid4

import pytest

from storage.domain.values.edm import read_datetime
from storage.runtime.clock import ClockWatch
from tests.faults import connection as requests_of
from tests.faults.connection import Connection, Request, entity_path
from tests.replication.postgres import group
from tests.waiting import wait_for

pytestmark = pytest.mark.long

HOUR, DAY = 3600, 86400


class Clock:
    """The clock of the processes that have its ``environment``, off by so many seconds."""

    def __init__(self, library, file):
        self.file = file
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, offset):
        self.offset = offset
        draft = self.file.with_suffix(".new")
        draft.write_text(f"{offset:+d}")
        draft.chmod(0o644)
        draft.replace(self.file)

    def time(self):
        return time.time() + self.offset


@pytest.fixture
def clock(require, scratch, monkeypatch):
    clock = Clock(require("faketime", "a clock that jumps"), scratch / "clock")
    monkeypatch.setattr(requests_of, "_now", lambda: formatdate(clock.time(), usegmt=True).encode())
    return clock


@pytest.fixture
def node(clock, scratch):
    with group(scratch / f"clocks-{uuid4().hex[:8]}") as nodes:
        yield nodes.primary(environment=clock.environment)


@pytest.fixture
def serve(node, clock, start):
    """Start a server on the database, whose clock is the same."""
    added = {name: clock.environment[name] for name in clock.environment.keys() - os.environ.keys()}
    env = {**added, "DATABASE_URL": node.url(), "TABLERO_SECRET": uuid4().hex}

    @contextmanager
    def serve(constants=None):
        with start(node.folder.parent / "server", env=env, constants=constants) as live:
            live.node = node
            yield live

    return serve


@pytest.fixture
def live(serve):
    with serve({"storage.runtime.periodic": {"_LONGEST": 0.5}}) as live:
        yield live


class Writer:
    """Writes to one table, and notes what it knows of the past."""

    def __init__(self, connection, table):
        self.connection, self.table = connection, table
        self.versions = []  # the value and the Timestamp, in the order of the commits
        self.seen = {}  # state at each moment that was read
        self.unread = {}  # the value at each other that was over
        connection.create_table(table)

    def write(self):
        value = len(self.versions)
        answer = self.connection.write("PUT", self.table, ("p", "counter"), {"n": value})
        assert answer.status == 204, answer
        self.versions.append((value, self.get()["Timestamp"]))
        assert (
            self.connection.insert(self.table, {"PartitionKey": "q", "RowKey": f"{value:05}"}).status == 204
        )

    def get(self, moment=None):
        headers = [(b"Accept", b"application/json;odata=minimalmetadata")]
        if moment is not None:
            headers.append((b"x-tablero-as-of", moment.encode()))
        target = f"/{self.connection.account}/{entity_path(self.table, ('p', 'counter'))}".encode()
        answer = self.connection.send(Request(b"GET", target, headers))
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def read(self, moment):
        self.seen[moment] = self.get(moment)

    def look(self, clock):
        """Note the present state without reading it."""
        moment = datetime.fromtimestamp(clock.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        over = [value for value, at in self.versions if read_datetime(at) <= read_datetime(moment)]
        self.unread[moment] = over[-1]

    def check(self):
        """Timestamps grow with the commits, each shows what was written with it, and no moment has changed."""
        assert all(a < b for a, b in pairwise(read_datetime(it[1]) for it in self.versions)), self.versions
        for value, timestamp in self.versions:
            assert self.get(timestamp)["n"] == value
        for moment, seen in self.seen.items():
            assert self.get(moment) == seen
        for moment, value in self.unread.items():
            assert self.get(moment)["n"] == value


def test_the_past_and_the_order_of_changes_outlive_jumps_of_the_clock(live, clock, table):
    with Connection(live) as connection:
        writer = Writer(connection, table)

        def floor():
            [(ticks,)] = live.node.fetch("SELECT last_value FROM moment_floor")
            return ticks / 1e7 - time.time()

        for offset in (0, -2 * HOUR, -20 * HOUR, 0):
            clock.set(offset)
            for _ in range(3):
                writer.write()
            writer.read(writer.versions[-1][1])
            writer.check()
        assert floor() > -HOUR  # it has waited for the clock

        # far ahead: what would have expired is kept, here a table that was deleted
        connection.create_table(f"{table}b")
        connection.delete_table(f"{table}b")
        before = live.node.fetch("SELECT count(*) FROM storage_table")
        clock.set(400 * DAY)
        wait_for(lambda: floor() > 399 * DAY, "the floor to follow the clock")
        wait_for(lambda: any("The clock has jumped ahead by" in line for line in live.output), "the alarm")
        assert live.node.fetch("SELECT count(*) FROM storage_table") == before
        clock.set(0)
        wait_for(lambda: floor() < HOUR, "the floor to come back")
        for _ in range(3):
            writer.write()
        writer.check()

        # a clock that begins in 1970 is wrong, and the floor waits for it
        clock.set(-20 * 365 * DAY)
        for _ in range(3):
            writer.write()
        live.node.fetch("SELECT keep_moment_floor()")
        assert floor() > -HOUR
        clock.set(0)
        writer.check()


def test_past_moments_stay_the_same_without_being_read(serve, clock, table):
    """The server and the database end as by a crash before the clock is set back once more."""
    with serve() as live, Connection(live) as connection:
        writer = Writer(connection, table)
        writer.write()
        clock.set(5)
        writer.look(clock)
        clock.set(-115)
        writer.write()
        clock.set(60)
        writer.check()
        writer.write()
        clock.set(65)
        writer.look(clock)
        live.kill()
        live.node.stop()
    clock.set(-10)
    live.node.start()
    with serve() as live, Connection(live) as writer.connection:
        writer.write()
        clock.set(300)
        writer.check()


class Watched:
    """A wall clock, and the time that has passed."""

    wall = passed = 1000.0

    def __init__(self):
        self.watch = ClockWatch(lambda: self.wall, lambda: self.passed)

    def after(self, seconds, jump=0.0):
        self.passed += seconds
        self.wall += seconds + jump
        return self.watch.may_delete()


def test_expiry_by_a_clock_jump_waits_for_an_hour():
    watched = Watched()
    assert watched.after(10) and watched.after(30 * DAY)  # sleep is counted as elapsed time
    assert watched.after(10, jump=60) and watched.after(10, jump=-10 * DAY)
    assert not watched.after(10, jump=40 * DAY)
    assert not watched.after(HOUR - 1)
    assert watched.after(2)  # it seems to be right
    assert not watched.after(10, jump=40 * DAY)
    assert watched.after(10, jump=-40 * DAY)  # set back: it was wrong
