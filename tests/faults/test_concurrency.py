"""Clients that write the same entities and tables at the same time."""

import random
import threading
import time
from collections import Counter
from functools import partial
from uuid import uuid4

from tests.faults.connection import Change, Connection, Key, Outcome

WRITERS = 16
KEY = ("p", "r")


def test_writers_with_etags_lose_no_update(crowd, table):
    rounds = 5
    with crowd.connect() as connection:
        connection.create_table(table)
        connection.insert(table, {"PartitionKey": "p", "RowKey": "r", "n": 0})

    def increment(connection: Connection) -> set[str]:
        etags: set[str] = set()
        while len(etags) < rounds:
            found = connection.get(table, KEY)
            written = connection.write("PUT", table, KEY, {"n": found.json()["n"] + 1}, if_match=found.etag)
            if written.status == 204:
                etags.add(written.etag)
            else:
                assert written.code == "UpdateConditionNotSatisfied"
        return etags

    etags = crowd.run([increment] * WRITERS)

    with crowd.connect() as connection:
        assert connection.get(table, KEY).json()["n"] == WRITERS * rounds
    assert len(set().union(*etags)) == WRITERS * rounds


def test_merges_of_different_properties_are_all_kept(crowd, table):
    rounds = 12
    with crowd.connect() as connection:
        connection.create_table(table)

    def merge(connection: Connection, name: str) -> list[str]:
        etags = []
        for n in range(rounds):
            condition = "*" if n % 2 else ""
            answer = connection.write("MERGE", table, KEY, {name: n}, if_match=condition)
            assert answer.status == 204, answer
            etags.append(answer.etag)
        return etags

    names = [f"p{number}" for number in range(WRITERS)]
    etags = [etag for list_ in crowd.run([partial(merge, name=name) for name in names]) for etag in list_]

    with crowd.connect() as connection:
        found = connection.get(table, KEY)
    assert {name: found.json()[name] for name in names} == dict.fromkeys(names, rounds - 1)
    assert len(set(etags)) == len(etags)


def test_one_of_racing_inserts_wins(crowd, table):
    rows = 15
    with crowd.connect() as connection:
        connection.create_table(table)

    def insert(connection: Connection, who: int) -> list[int]:
        answers = [
            connection.insert(table, {"PartitionKey": "p", "RowKey": str(row), "who": who})
            for row in range(rows)
        ]
        assert {(answer.status, answer.code) for answer in answers} <= {
            (204, ""),
            (409, "EntityAlreadyExists"),
        }
        return [row for row, answer in enumerate(answers) if answer.status == 204]

    won = crowd.run([partial(insert, who=who) for who in range(WRITERS)])

    winners = {row: who for who, rows_won in enumerate(won) for row in rows_won}
    assert sum(len(rows_won) for rows_won in won) == len(winners) == rows
    with crowd.connect() as connection:
        assert {int(entity["RowKey"]): entity["who"] for entity in connection.entities(table)} == winners


def test_one_of_racing_deletes_succeeds(crowd, table):
    rows = 10
    with crowd.connect() as connection:
        connection.create_table(table)
        for row in range(rows):
            connection.insert(table, {"PartitionKey": "p", "RowKey": str(row)})

    def delete(connection: Connection) -> int:
        answers = [connection.delete(table, ("p", str(row))) for row in range(rows)]
        assert {(answer.status, answer.code) for answer in answers} <= {(204, ""), (404, "ResourceNotFound")}
        return sum(answer.status == 204 for answer in answers)

    assert sum(crowd.run([delete] * WRITERS)) == rows


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
                found = connection.get(table, ("p", str(row)))
                content = {"n": found.json()["n"] + amount}
                changes.append(Change("MERGE", table, ("p", str(row)), content, found.etag))
            outcome = connection.change_set(changes)
            assert outcome.done or outcome.code == "UpdateConditionNotSatisfied", outcome
            done += outcome.done
            assert sum(entity["n"] for entity in connection.entities(table)) == accounts * balance
        return done

    assert sum(crowd.run([partial(transfer, seed=seed) for seed in range(WRITERS)])) > 0


def test_change_sets_over_the_same_entities_stay_whole(crowd, table):
    rows = [str(row) for row in range(6)]
    with crowd.connect() as connection:
        connection.create_table(table)

    def mark(connection: Connection, who: int) -> set[Outcome]:
        """Writes all rows in an order of its own, and looks at all of them."""
        order = random.Random(who).sample(rows, len(rows))
        outcomes = set()
        for turn in range(4):
            method = ("PUT", "MERGE")[turn % 2]
            mark = f"{who}.{turn}"
            changes = [Change(method, table, ("p", row), {"mark": mark}) for row in order]
            outcomes.add(connection.change_set(changes))
            assert len({entity["mark"] for entity in connection.entities(table)}) == 1
        return outcomes

    outcomes = set().union(*crowd.run([partial(mark, who=who) for who in range(WRITERS)]))

    assert all(outcome.done or outcome.code in ("ServerBusy", "OperationTimedOut") for outcome in outcomes), (
        outcomes
    )


def test_one_of_racing_change_sets_of_inserts_wins(crowd, table):
    rows = [str(row) for row in range(10)]
    with crowd.connect() as connection:
        connection.create_table(table)

    def insert(connection: Connection, who: int) -> Outcome:
        order = random.Random(who).sample(rows, len(rows))
        return connection.change_set([Change("POST", table, ("p", row), {"who": who}) for row in order])

    outcomes = crowd.run([partial(insert, who=who) for who in range(WRITERS)])

    winners = [who for who, outcome in enumerate(outcomes) if outcome.done]
    assert len(winners) == 1
    assert {outcome.code for outcome in outcomes} == {"", "EntityAlreadyExists"}
    with crowd.connect() as connection:
        assert [entity["who"] for entity in connection.entities(table)] == winners * len(rows)


MAY_HAPPEN = {(404, "TableNotFound"), (409, "TableBeingDeleted")}


class ComingAndGoing:
    """A table that is dropped and created again and again until `seconds` have passed, and then stays."""

    def __init__(self, table: str, seconds: float) -> None:
        self.table = table
        self.deadline = time.monotonic() + seconds
        self.rivals_gone = threading.Barrier(2)
        self.stays = threading.Event()

    def owner(self, connection: Connection) -> list[Key]:
        self.rival(connection)
        assert connection.create_table(self.table).status in (204, 409)
        self.stays.set()
        return []

    def rival(self, connection: Connection) -> list[Key]:
        while time.monotonic() < self.deadline:
            deleted = connection.delete_table(self.table)
            assert (deleted.status, deleted.code) in {(204, ""), (404, "ResourceNotFound")} | MAY_HAPPEN, (
                deleted
            )
            time.sleep(0.05)
            created = connection.create_table(self.table)
            assert created.code in {"", "TableAlreadyExists", "TableBeingDeleted"}, created
            time.sleep(0.1)
        self.rivals_gone.wait()
        return []

    def insert(self, connection: Connection) -> list[Key]:
        """The keys inserted after the table was there to stay."""
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
    world = ComingAndGoing(table, seconds=2.0)
    clients = [world.owner, world.rival, world.look, world.look, *[world.insert] * 8, *[world.change] * 4]

    kept = {key for keys in crowd.run(clients) for key in keys}

    with crowd.connect() as connection:
        found = [(entity["PartitionKey"], entity["RowKey"]) for entity in connection.entities(table)]
    assert kept <= set(found)
    sets = Counter(partition for partition, _ in found if partition != "single")
    assert set(sets.values()) <= {3}
