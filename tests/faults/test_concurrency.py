"""Clients that write the same tables at the same time; histories of entities are checked in tests/tools/checker."""

import random
import threading
from collections import Counter
from functools import partial
from uuid import uuid4

import pytest

from tests.faults.connection import Change, Connection, Key
from tests.waiting import wait_for

pytestmark = pytest.mark.long

WRITERS = 16


def test_transfers_keep_the_sum(crowd, table):
    accounts, balance = 8, 100
    with crowd.connect() as connection:
        connection.create_table(table)
        for row in range(accounts):
            connection.insert(table, {"PartitionKey": "p", "RowKey": str(row), "n": balance})

    def transfer(connection: Connection, seed: int) -> int:
        dice = random.Random(seed)
        done = 0
        for _ in range(12):
            changes = []
            for row, amount in zip(dice.sample(range(accounts), 2), (-7, 7), strict=True):
                result = connection.get(table, ("p", str(row)))
                content = {"n": result.json()["n"] + amount}
                changes.append(Change("MERGE", table, ("p", str(row)), content, result.etag))
            outcome = connection.change_set(changes)
            assert outcome.done or outcome.code == "UpdateConditionNotSatisfied", outcome
            done += outcome.done
            assert sum(entity["n"] for entity in connection.entities(table)) == accounts * balance
        return done

    assert sum(crowd.run([partial(transfer, seed=seed) for seed in range(WRITERS)])) > 0


MAY_HAPPEN = {(404, "TableNotFound"), (409, "TableBeingDeleted")}


class ComingAndGoing:
    """A table that is dropped and created again and again a number of times, and then stays.

    On a busy machine a creation may wait longer for the lock of the table than it may: ServerBusy.
    """

    def __init__(self, table: str, times: int) -> None:
        self.table = table
        self.times = times
        self.rivals_gone = threading.Barrier(2)
        self.stays = threading.Event()

    def owner(self, connection: Connection) -> list[Key]:
        try:
            self.rival(connection)
            wait_for(lambda: connection.create_table(self.table).code in ("", "TableAlreadyExists"))
        finally:
            self.stays.set()  # so that the others end
        return []

    def rival(self, connection: Connection) -> list[Key]:
        try:
            for _ in range(self.times):
                deleted = connection.delete_table(self.table)
                assert (deleted.status, deleted.code) in {
                    (204, ""),
                    (404, "ResourceNotFound"),
                } | MAY_HAPPEN, deleted
                created = connection.create_table(self.table)
                assert created.code in {"", "TableAlreadyExists", "TableBeingDeleted", "ServerBusy"}, created
        except BaseException:
            self.rivals_gone.abort()
            raise
        self.rivals_gone.wait()
        return []

    def insert(self, connection: Connection) -> list[Key]:
        """Insert keys, and return those inserted after the table was permanent."""
        kept: list[Key] = []
        while len(kept) < 5:
            stays = self.stays.is_set()
            key = ("single", uuid4().hex)
            answer = connection.insert(self.table, {"PartitionKey": key[0], "RowKey": key[1]})
            assert answer.status == 204 or (not stays and (answer.status, answer.code) in MAY_HAPPEN), answer
            if stays:
                kept.append(key)
        return kept

    def change(self, connection: Connection) -> list[Key]:
        kept: list[Key] = []
        while len(kept) < 15:
            stays = self.stays.is_set()
            partition = f"set{uuid4().hex}"
            keys = [(partition, row) for row in "abc"]
            outcome = connection.change_set([Change("POST", self.table, key, {}) for key in keys])
            codes = {code for _, code in MAY_HAPPEN}
            assert outcome.done or (not stays and outcome.code in codes), outcome
            if stays:
                kept += keys
        return kept

    def look(self, connection: Connection) -> list[Key]:
        while not self.stays.is_set():
            answer = connection.request("GET", f"{self.table}()", query="$top=5")
            assert answer.status == 200 or (answer.status, answer.code) in MAY_HAPPEN, answer
        return []


def test_writes_while_the_table_comes_and_goes(crowd, table):
    world = ComingAndGoing(table, times=6)
    clients = [world.owner, world.rival, world.look, world.look, *[world.insert] * 8, *[world.change] * 4]

    kept = {key for keys in crowd.run(clients) for key in keys}

    with crowd.connect() as connection:
        results = [(entity["PartitionKey"], entity["RowKey"]) for entity in connection.entities(table)]
    assert kept <= set(results)
    sets = Counter(partition for partition, _ in results if partition != "single")
    assert set(sets.values()) <= {3}
