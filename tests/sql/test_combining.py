"""Writes that go to the database together: each has its own result and error."""

import asyncio

import pytest
from django.conf import settings

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ResourceNotFound, ServerBusy, TableNotFound
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.runtime.threads import in_thread
from storage.sql import combining, entities, pages, relations
from storage.sql.combining import Combiner
from storage.sql.django import execute
from storage.sql.failures import Canceled, UnexpectedFailure
from storage.sql.lanes import COUNTS, Lanes
from storage.sql.statement import Combination, Lane, Statement

NUMBER = 1_000_001
RELATION = relations.relation_name(NUMBER)


@pytest.fixture
def relation(transactional_db):
    execute(relations.create(NUMBER, NUMBER))
    yield RELATION
    execute(relations.soft_delete(NUMBER) + ";" + relations.drop([NUMBER]))


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


async def test_reads_that_wait_find_together_what_they_find_alone(lanes):
    await outcomes(lanes, [Insert(entity(f"{number:02}", number)) for number in range(40)])
    keys = [EntityKey("p", f"{number % 50:02}") for number in range(100)]
    for query in (EntityQuery(), EntityQuery(annotations=False), EntityQuery(select=("A", "é"))):
        points = [pages.point(RELATION, key, query) for key in keys]
        alone = [(await asyncio.gather(lanes.run(point), return_exceptions=True))[0] for point in points]
        together = await asyncio.gather(*map(lanes.run, points), return_exceptions=True)
        assert sum(isinstance(it, ResourceNotFound) for it in alone) == 20
        assert [*map(str, together)] == [*map(str, alone)]


async def test_one_that_is_refused_fails_alone(lanes):
    await in_thread(execute, f"ALTER TABLE {RELATION} ADD CHECK (rk <> '20')")
    changes = [Insert(entity(str(number))) for number in range(30)]

    result = await outcomes(lanes, changes)

    assert [number for number, outcome in enumerate(result) if not isinstance(outcome, int)] == [20]
    assert isinstance(result[20], UnexpectedFailure)


async def test_a_missing_table_is_told_to_all(lanes):
    statements = [entities.change("entity_999999999", Insert(entity(str(number)))) for number in range(20)]
    result = await asyncio.gather(*map(lanes.run, statements), return_exceptions=True)
    assert {type(outcome) for outcome in result} == {TableNotFound}


# a stand-in for states that the database cannot be put in at a certain moment


class Database:
    """Answers when it is told to, and keeps what it was asked."""

    def __init__(self):
        self.asked = []
        self._answers = []

    async def run(self, statement, session=None):
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


async def ask(combiner, *keys, is_write=True):
    """Asks for writes of these keys, in their order."""
    together = Combination(lambda several: Statement("several", tuple(several), Lane.KEY, None), is_write)
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


async def test_waiting_statements_run_together_in_key_order_when_one_returns():
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


async def test_more_go_at_once_to_a_server_that_is_far_away():
    database = Database()
    tasks = await ask(Combiner(database.run, lambda: True), *"abcdefgh")
    assert database.asked == list(pairs(*"abcdef"))
    for task in tasks:
        task.cancel()


async def test_a_group_has_a_limit_and_each_entity_once(monkeypatch):
    monkeypatch.setattr(combining, "GROUP_LIMIT", 3)
    database = Database()
    await ask(Combiner(database.run), "a", "b", "c", "d", "e", "f", "f", "g")
    await database.answer(0, 0)
    await database.answer(2, dict.fromkeys(pairs("c", "d", "e"), 0))
    await database.answer(3, 0)
    assert database.asked[2:] == [pairs("c", "d", "e"), ("p", "f"), pairs("f", "g")]


async def test_equal_reads_share_a_result():
    database = Database()
    _, _, *waiting = await ask(Combiner(database.run), "a", "b", "c", "c", "d", is_write=False)
    await database.answer(0, 0)
    assert database.asked[2:] == [pairs("c", "d")]
    await database.answer(2, {("p", "c"): 3, ("p", "d"): 4})
    assert await asyncio.gather(*waiting) == [3, 3, 4]


async def test_a_statement_missing_from_the_answer_runs_again_alone():
    database = Database()
    _, _, *waiting = await ask(Combiner(database.run), "a", "b", "c", "d")
    await database.answer(0, 0)
    await database.answer(2, {("p", "d"): 4})
    assert database.asked[3:] == [("p", "c")]
    await database.answer(3, ResourceNotFound())
    missing, value = await asyncio.gather(*waiting, return_exceptions=True)
    assert (type(missing), value) == (ResourceNotFound, 4)


@pytest.mark.parametrize("error", [ServerBusy, Canceled], ids=["a lost connection", "the time limit"])
async def test_a_permanent_error_is_raised_for_the_whole_group(error):
    database = Database()
    _, _, *waiting = await ask(Combiner(database.run), "a", "b", "c", "d")
    await database.answer(0, 0)
    await database.answer(2, error())
    assert [type(it) for it in await asyncio.gather(*waiting, return_exceptions=True)] == [error] * 2
    assert len(database.asked) == 3


async def test_statements_that_waited_too_long_are_refused_as_busy(monkeypatch):
    monkeypatch.setattr(combining, "PATIENCE", -1)
    database = Database()
    _, _, *waiting = await ask(Combiner(database.run), "a", "b", "c", "d")
    await database.answer(0, 0)
    assert [type(it) for it in await asyncio.gather(*waiting, return_exceptions=True)] == [ServerBusy] * 2
    assert len(database.asked) == 2


@pytest.mark.parametrize("gone", [0, 1, 2])
@pytest.mark.parametrize("when", ["waiting", "called"])
async def test_a_cancelled_statement_does_not_affect_the_others(gone, when):
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
    async with asyncio.timeout(60):
        assert await asyncio.gather(*waiting) == [1] * len(kept)
    await asyncio.gather(first, second)
    assert combiner._queues == {}
