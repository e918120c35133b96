"""Writes that go to the database together: each has its own result and error."""

import asyncio

import pytest
from django.conf import settings

from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import EntityAlreadyExists, KeyValueTooLarge, ServerBusy, TableNotFound
from storage.domain.values.edm import Edm, EdmValue
from storage.operations.threads import in_thread
from storage.sql import combining, entities, relations
from storage.sql.combining import Combiner
from storage.sql.django import execute, fetch
from storage.sql.lanes import COUNTS, Lanes
from storage.sql.statement import Combination, Lane, Statement

NUMBER = 1_000_001
RELATION = relations.relation_name(NUMBER)


@pytest.fixture
def relation(transactional_db):
    execute(relations.create(NUMBER))
    yield RELATION
    execute(relations.soft_delete(NUMBER) + ";" + relations.drop(NUMBER))


@pytest.fixture
async def lanes(relation, monkeypatch):
    monkeypatch.setitem(COUNTS, Lane.KEY, 3)
    monkeypatch.setitem(COUNTS, Lane.FILTER, 1)
    lanes = Lanes(settings.LANES_CONNINFO)
    await lanes.open()
    yield lanes
    lanes.close()


def entity(key, number=0):
    return Entity(EntityKey("p", key), {"A": EdmValue(Edm.INT32, number)})


async def outcomes(lanes, changes):
    """Timestamps and errors of changes that are all asked for at once."""
    statements = [entities.change(RELATION, change) for change in changes]
    return await asyncio.gather(*map(lanes.run, statements), return_exceptions=True)


def stored():
    rows = fetch(f"SELECT rk, ts, props->>'A', xmin::text FROM {RELATION} ORDER BY rk")
    return [(row[0], row[1], int(row[2]), row[3]) for row in rows]


@pytest.mark.parametrize(
    "make", [Insert, lambda entity: Upsert(entity, merge=False)], ids=["insert", "upsert"]
)
async def test_writes_that_wait_go_together(lanes, make):
    found = await outcomes(lanes, [make(entity(f"{number:03}", number)) for number in range(100)])

    rows = await in_thread(stored)
    assert [(key, ts, number) for key, ts, number, _ in rows] == [
        (f"{number:03}", found[number], number) for number in range(100)
    ]
    assert len({transaction for *_, transaction in rows}) < 20


async def test_of_equal_inserts_one_succeeds(lanes):
    found = await outcomes(lanes, [Insert(entity(str(number % 5), number)) for number in range(50)])

    assert sum(isinstance(outcome, int) for outcome in found) == 5
    assert sum(isinstance(outcome, EntityAlreadyExists) for outcome in found) == 45
    winners = {str(number % 5): number for number, outcome in enumerate(found) if isinstance(outcome, int)}
    assert {key: number for key, _, number, _ in await in_thread(stored)} == winners


async def test_upserts_of_one_entity_follow_each_other(lanes):
    found = await outcomes(lanes, [Upsert(entity("r", number), merge=False) for number in range(50)])

    assert sorted(set(found)) == sorted(found)
    ((_, ts, number, _),) = await in_thread(stored)
    assert ts == max(found)
    assert found[number] == ts


async def test_one_that_is_refused_fails_alone(lanes):
    noise = "".join(
        chr(0x4E00 + number * 7919 % 20_000) for number in range(1024)
    )  # does not fit into the index
    changes = [Insert(entity(str(number))) for number in range(30)]
    changes[20] = Insert(Entity(EntityKey(noise, noise), {}))

    found = await outcomes(lanes, changes)

    assert [number for number, outcome in enumerate(found) if not isinstance(outcome, int)] == [20]
    assert isinstance(found[20], KeyValueTooLarge)


async def test_a_missing_table_is_told_to_all(lanes):
    statements = [entities.change("entity_404", Insert(entity(str(number)))) for number in range(20)]
    found = await asyncio.gather(*map(lanes.run, statements), return_exceptions=True)
    assert {type(outcome) for outcome in found} == {TableNotFound}


# what the database cannot be made to do at a certain moment


class Database:
    """Answers when it is told to, and keeps what it was asked."""

    def __init__(self):
        self.asked = []
        self._answers = []

    async def run(self, statement):
        self.asked.append(statement.parameters)
        self._answers.append(asyncio.get_running_loop().create_future())
        return await self._answers[-1]

    async def answer(self, index, outcome):
        """Answer the statement of this number; what waits for it then goes on."""
        if isinstance(outcome, Exception):
            self._answers[index].set_exception(outcome)
        else:
            self._answers[index].set_result(outcome)
        for _ in range(5):
            await asyncio.sleep(0)


async def ask(combiner, *keys):
    """Asks for writes of these keys, in their order."""
    together = Combination(
        lambda several: Statement("several", tuple(several), Lane.KEY, None), lambda found: found
    )
    tasks = []
    for key in keys:
        statement = Statement("one", ("p", key), Lane.KEY, None, together)
        tasks.append(asyncio.ensure_future(combiner.run(statement)))
        await asyncio.sleep(0)
    return tasks


def pairs(*keys):
    return tuple(("p", key) for key in keys)


async def test_a_lone_write_goes_at_once_and_as_it_is():
    database = Database()
    (write,) = await ask(Combiner(database.run), "a")
    assert database.asked == [("p", "a")]
    await database.answer(0, 7)
    assert await write == 7


async def test_those_that_wait_go_in_the_order_of_their_keys_when_one_returns():
    database = Database()
    first, second, *waiting = await ask(Combiner(database.run), "a", "b", "e", "d", "c")
    assert database.asked == [("p", "a"), ("p", "b")]

    await database.answer(1, 1)

    assert await second == 1
    assert database.asked[2:] == [pairs("c", "d", "e")]
    await database.answer(2, {("p", "c"): 3, ("p", "d"): 4, ("p", "e"): 5})
    assert await asyncio.gather(*waiting) == [5, 4, 3]
    await database.answer(0, 0)
    assert await first == 0


async def test_a_group_has_a_limit_and_each_entity_once(monkeypatch):
    monkeypatch.setattr(combining, "GROUP_LIMIT", 3)
    database = Database()
    await ask(Combiner(database.run), "a", "b", "c", "d", "e", "f", "f", "g")
    await database.answer(0, 0)
    await database.answer(2, {})
    await database.answer(3, {})
    assert database.asked[2:] == [pairs("c", "d", "e"), ("p", "f"), pairs("f", "g")]


async def test_a_lost_connection_is_told_to_the_whole_group():
    database = Database()
    _, _, *waiting = await ask(Combiner(database.run), "a", "b", "c", "d")
    await database.answer(0, 0)
    await database.answer(2, ServerBusy())
    assert [type(it) for it in await asyncio.gather(*waiting, return_exceptions=True)] == [ServerBusy] * 2
    assert len(database.asked) == 3


@pytest.mark.parametrize("gone", [0, 1, 2])
@pytest.mark.parametrize("when", ["waiting", "called"])
async def test_who_goes_away_takes_nobody_along(gone, when):
    database = Database()
    combiner = Combiner(database.run)
    first, second, *waiting = await ask(combiner, "a", "b", "c", "d", "e")
    if when == "waiting":
        waiting[gone].cancel()
        await asyncio.sleep(0)
        await database.answer(0, 0)
    else:  # as its turn comes
        database._answers[0].set_result(0)
        await asyncio.sleep(0)
        waiting[gone].cancel()
        await database.answer(1, 0)
    kept = [key for number, key in enumerate("cde") if number != gone]
    for index in range(1, 5):
        if index < len(database._answers) and not database._answers[index].done():
            asked = database.asked[index]
            is_one = isinstance(asked[0], str)
            await database.answer(index, 1 if is_one else dict.fromkeys(asked, 1))
    del waiting[gone]
    async with asyncio.timeout(5):
        assert await asyncio.gather(*waiting) == [1] * len(kept)
    await asyncio.gather(first, second)
    assert combiner._queues == {}
