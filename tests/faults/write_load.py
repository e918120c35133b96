"""Clients that write without pause and remember what was acknowledged, to be compared with what is there."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from typing import Any

from tests.faults.answers import UNAVAILABLE
from tests.faults.connection import Change, Connection

CHANGES = 10
PATIENCE = 90.0


class WriteLoad:
    """Every client starts over with a new key after a failure, since a failed write may have happened or not."""

    def __init__(self, server: Any, table: str) -> None:
        self.server = server
        self.table = table
        self.failures: list[BaseException] = []
        self.outages: Counter[str] = Counter()
        self.answered: list[float] = []  # when each acknowledged write was
        self._inserts: dict[str, bool] = {}
        self._merges: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # acknowledged, attempted
        self._change_sets: dict[str, bool] = {}
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator["WriteLoad"]:
        with Connection(self.server) as connection:
            connection.create_table(self.table)
        clients = [self._insert, self._insert, self._merge, self._merge, self._change, self._change]
        threads = [
            threading.Thread(target=self._run, args=(client, number)) for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not self.failures, self.failures
        assert not any(thread.is_alive() for thread in threads), "a client hangs"

    def wait_for_answers(self, number: int) -> None:
        """Until so many more writes are acknowledged."""
        wanted = len(self.answered) + number
        deadline = time.monotonic() + PATIENCE
        while len(self.answered) < wanted:
            assert time.monotonic() < deadline, f"no writes for {PATIENCE} s; {dict(self.outages)}"
            assert not self.failures, self.failures
            time.sleep(0.005)

    @property
    def longest_pause(self) -> float:
        """Seconds in which no write was acknowledged."""
        answered = sorted(self.answered)
        return max(later - earlier for earlier, later in pairwise(answered))

    def check(self, connection: Connection) -> None:
        """Acknowledged writes are there, the others whole or not at all."""
        rows: dict[str, dict[str, Any]] = defaultdict(dict)
        for entity in connection.entities(self.table):
            rows[entity["PartitionKey"]][entity["RowKey"]] = entity
        found = rows.pop("insert", {})
        assert {row for row, sure in self._inserts.items() if sure} <= set(found) <= set(self._inserts)
        merged = rows.pop("merge", {})
        for row, (acknowledged, attempted) in self._merges.items():
            entity = merged.get(row, {"a": 0, "b": 0})
            assert acknowledged <= entity["a"] <= attempted and entity["a"] == entity["b"], (row, entity)
        assert set(rows) <= set(self._change_sets)
        for partition, sure in self._change_sets.items():
            written = rows.get(partition, {})
            assert len(written) == CHANGES or (not sure and not written), (partition, sure, written)

    # clients

    def _run(self, client: Callable[[Connection, str], bool], number: int) -> None:
        try:
            with Connection(self.server) as connection:
                for turn in count():
                    if self._stop.is_set():
                        return
                    self._attempt(client, connection, f"{number}.{turn}")
        except BaseException as error:
            self.failures.append(error)

    def _attempt(self, client: Callable[[Connection, str], bool], connection: Connection, key: str) -> None:
        try:
            done = client(connection, key)
        except ConnectionError as error:
            self.outages[type(error).__name__] += 1
            connection.close()
            time.sleep(0.02)
            return
        if done:
            self.answered.append(time.monotonic())
        else:
            time.sleep(0.02)

    def _is_done(self, status: int, code: str) -> bool:
        if status < 300:
            return True
        assert (status, code) in UNAVAILABLE, (status, code)
        self.outages[code] += 1
        return False

    def _insert(self, connection: Connection, key: str) -> bool:
        self._inserts[key] = False
        answer = connection.insert(self.table, {"PartitionKey": "insert", "RowKey": key, "text": "x" * 500})
        self._inserts[key] = self._is_done(answer.status, answer.code)
        return self._inserts[key]

    def _merge(self, connection: Connection, key: str) -> bool:
        row = key.partition(".")[0]
        self._merges[row][1] += 1
        n = self._merges[row][1]
        answer = connection.write("MERGE", self.table, ("merge", row), {"a": n, "b": n})
        done = self._is_done(answer.status, answer.code)
        if done:
            self._merges[row][0] = n
        return done

    def _change(self, connection: Connection, key: str) -> bool:
        self._change_sets[key] = False
        changes = [Change("POST", self.table, (key, str(row)), {"n": row}) for row in range(CHANGES)]
        outcome = connection.change_set(changes)
        status = outcome.statuses[0] if outcome.status == 202 else outcome.status
        self._change_sets[key] = self._is_done(status, outcome.code)
        return self._change_sets[key]
