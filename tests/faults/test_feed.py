"""The change feed under kills: no gaps, no duplicates, no disorder, and chains of images without a break.

`FEED_KILLS=100 python3 manage.py test tests/faults/test_feed.py` kills more often than the suite has time for.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import cycle, islice

import psycopg
import pytest
import requests

from storage.server.data_folder import DataFolder
from tests.faults.connection import Change, Connection
from tests.faults.test_durability import kill_everything, kill_the_postmaster, kill_the_server
from tests.live_server import ROOT

KILLS = int(os.environ.get("FEED_KILLS", "4"))
TABLE = "load"
KEYS = 8
WRITES = 250  # acknowledged ones between kills
PATIENCE = 90.0


class Writers:
    """Clients that write to the same few keys, whatever happens to the server; each write has a number of its own."""

    def __init__(self, server):
        self.server = server
        self.acknowledged = 0
        self.failures = []
        self._numbers = iter(range(1, 10**9))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(6)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not self.failures, self.failures

    def wait(self, number):
        wanted, deadline = self.acknowledged + number, time.monotonic() + PATIENCE
        while self.acknowledged < wanted:
            assert time.monotonic() < deadline, "no writes"
            assert not self.failures, self.failures
            time.sleep(0.01)

    def _run(self, seed):
        random_ = random.Random(seed)
        while not self._stop.is_set():
            server = self.server
            try:
                with Connection(server) as connection:
                    while not self._stop.is_set() and self.server is server:
                        self._write(connection, random_)
            except OSError:
                time.sleep(0.02)
            except BaseException as error:
                self.failures.append(error)
                return

    def _next(self):
        with self._lock:
            return next(self._numbers)

    def _write(self, connection, random_):
        row = f"k{random_.randrange(KEYS)}"
        kind = random_.random()
        if kind < 0.2:
            is_done = connection.delete(TABLE, ("p", row)).status < 300
        elif kind < 0.4:
            rows = random_.sample(range(KEYS), 4)
            changes = [Change("PUT", TABLE, ("p", f"k{it}"), {"n": self._next()}) for it in rows]
            is_done = connection.change_set(changes).done
        else:
            method = random_.choice(["PUT", "MERGE"])
            written = {"n": self._next(), random_.choice("abc"): self._next()}
            is_done = connection.write(method, TABLE, ("p", row), written).status < 300
        if is_done:
            with self._lock:
                self.acknowledged += 1
        else:
            time.sleep(0.005)


class Reader:
    """A consumer that keeps each token with what it has read up to there, and goes on with it after a failure."""

    def __init__(self, server, secret):
        self.server = server
        self.changes = []
        self.token = None
        self.failures = []
        self._secret = secret
        self._stop = threading.Event()
        self._is_idle = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self.failures, self.failures

    def catch_up(self):
        """Read until two reads after each other have found nothing."""
        for _ in range(2):
            self._is_idle.clear()
            assert self._is_idle.wait(PATIENCE), "the feed does not answer"

    def _run(self):
        while not self._stop.is_set():
            try:
                self._read()
            except (requests.ConnectionError, requests.Timeout):
                time.sleep(0.02)
            except BaseException as error:
                self.failures.append(error)
                return

    def _read(self):
        start = {"after": self.token} if self.token else {"from": "oldest"}
        answer = requests.get(
            f"{self.server.url}/ui/api/v1/accounts/{self.server.account}/changes",
            params={**start, "table": TABLE, "top": random.choice([1, 7, 1000])},
            headers={"Authorization": f"Bearer {self._secret}"},
            timeout=30,
        )
        if answer.status_code in (429, 500, 503):
            time.sleep(0.2 if answer.status_code != 429 else 2)
            return
        assert answer.status_code == 200, answer.text
        page = answer.json()
        self.changes += page["items"]
        self.token = page["token"]
        if not page["items"] and not page["has_more"]:
            self._is_idle.set()
        time.sleep(0.15)


def manage(data, *arguments):
    line = [sys.executable, str(ROOT / "manage.py"), *arguments[:1], "--data", str(data), *arguments[1:]]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


def recorded(data):
    """The numbers of all changes that the database has recorded of the table."""
    folder = DataFolder(data).socket_folder
    with psycopg.connect(f"host={folder} user=tablero dbname=tablero") as connection:
        [[table]] = connection.execute("SELECT id FROM storage_table WHERE name = %s", [TABLE]).fetchall()
        query = """
            SELECT s.account_id, s.number FROM storage_historysegment AS s JOIN storage_table AS t USING (account_id)
            WHERE t.id = %s ORDER BY number
        """
        segments = connection.execute(query, [table]).fetchall()
        return [
            row[0]
            for account, number in segments
            for row in connection.execute(
                f"SELECT seq FROM history_{account}_{number} WHERE tbl = {table}"
            ).fetchall()
        ]


def image(entity):
    return None if entity is None else {name: it for name, it in entity.items() if "@" not in name}


def faults_of(changes, everything, entities):
    """Count what must not be: by its name, how often."""
    faults = dict.fromkeys(("gaps", "duplicates", "disorder", "broken chains", "other than the table"), 0)
    numbers = [it["sequence"] for it in changes]
    faults["gaps"] = len(set(everything) - set(numbers))
    faults["duplicates"] = len(numbers) - len(set(numbers)) + len(set(numbers) - set(everything))
    by_key = defaultdict(list)
    for it in changes:
        by_key[it["row_key"]].append(it)
    for row, own in by_key.items():
        previous = None
        for earlier, later in zip([None, *own], own, strict=False):
            if earlier is not None and later["sequence"] <= earlier["sequence"]:
                faults["disorder"] += 1
            if image(later["before"]) != previous:
                faults["broken chains"] += 1
            previous = image(later["after"])
        faults["other than the table"] += previous != entities.get(row)
    return faults


@pytest.mark.parametrize(
    ("durability", "kills"),
    [
        ("on", [kill_the_postmaster, kill_everything]),
        ("relaxed", [kill_everything, kill_the_postmaster, kill_the_server, kill_the_postmaster]),
    ],
)
def test_the_feed_has_no_faults_whatever_is_killed(durability, kills, start, scratch):
    data = scratch / f"feed-{durability}"
    with ExitStack() as servers:

        def start_again():
            return servers.enter_context(start(data, "--durability", durability))

        live = start_again()
        manage(data, "user", "add", "robot", "--admin")
        secret = manage(data, "token", "add", "robot", "feed", "--scope", "read")
        with Connection(live) as connection:
            assert connection.create_table(TABLE).status == 204
        writers, reader = Writers(live), Reader(live, secret)
        with reader:
            with writers:
                for kill in islice(cycle(kills), KILLS // 2):
                    writers.wait(WRITES)
                    kill(live)
                    if live.process.poll() is not None:
                        live = writers.server = reader.server = start_again()
                writers.wait(WRITES)
            reader.catch_up()
        with Connection(live) as connection:
            entities = {it["RowKey"]: image(it) for it in connection.entities(TABLE)}
        everything = recorded(data)
        found = faults_of(reader.changes, everything, entities)
    print(f"{durability}: {KILLS // 2} kills, {len(everything)} changes, {found}")
    assert not any(found.values()), found
