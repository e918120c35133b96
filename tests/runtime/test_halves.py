"""Change sets in two halves: the second is read while PostgreSQL writes the first, and both are atomic."""

import asyncio
from contextlib import suppress

import psycopg
import pytest
from django.conf import settings

from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ChangeSetError, InvalidInput, ServerBusy
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.runtime.threads import in_thread
from storage.sql import batch
from storage.sql.django import execute, fetch
from storage.sql.relations import create_function
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)


def insert(row_key, value=1):
    return Insert(Entity(EntityKey("p", row_key), {"N": EdmValue(Edm.INT32, value)}))


@pytest.fixture
async def people(service):
    account = await service.account("owner")
    await service.create_table(account, "people")
    return account


@pytest.fixture
def stored(service, people):
    """`await stored()`: RowKeys and Timestamps of all entities."""

    async def stored():
        page = await service.query(people, "people", EntityQuery())
        return {it.key.row_key: it.timestamp for it in page.entities}

    return stored


@pytest.fixture
def in_halves(monkeypatch):
    """Record the change sets that ran as two statements to their end."""
    ended = []
    run = batch.Halves.second

    def second(self, changes):
        made = run(self, changes)
        ended.append(self)
        return made

    monkeypatch.setattr(batch.Halves, "second", second)
    return ended


async def test_both_halves_have_one_timestamp_and_one_transaction(service, people, stored, in_halves):
    first, second = [insert("a"), insert("b")], [insert("c"), insert("d")]
    timestamps = await service.apply(people, "people", first, lambda: second)

    assert len(in_halves) == 1
    assert await stored() == dict(zip("abcd", timestamps, strict=True))
    assert len(set(timestamps)) == 1
    table = await in_thread(lambda: tables.get(people.row, "people"))
    recorded = await in_thread(
        lambda: fetch(
            f"SELECT rk, ts, xid::text FROM history_{people.id} WHERE tbl = {table.pk} ORDER BY seq"
        )
    )
    assert [(rk, ts) for rk, ts, _ in recorded] == list(zip("abcd", timestamps, strict=True))
    assert len({xid for _, _, xid in recorded}) == 1


async def test_the_next_change_set_of_the_connection_takes_a_timestamp_of_its_own(service, people):
    first = await service.apply(people, "people", [insert("a")], lambda: [insert("b")])
    second = await service.apply(people, "people", [insert("c"), insert("d")])
    third = await service.apply(people, "people", [insert("e")], lambda: [insert("f")])
    assert first[0] < second[0] < third[0]


async def test_nothing_is_made_if_the_second_half_cannot_be_read(service, people, stored):
    def refuse():
        raise ChangeSetError(1, InvalidInput())

    for _ in range(3):  # the connection stays usable
        with pytest.raises(ChangeSetError) as refused:
            await service.apply(people, "people", [insert("a")], refuse)
        assert refused.value.index == 1
        assert await stored() == {}
    await service.apply(people, "people", [insert("a")], lambda: [insert("b")])
    assert list(await stored()) == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([insert("b")], [insert("a")]),  # rows are locked in the order of their keys
        ([insert("b"), insert("a")], [insert("c")]),
        ([insert("a")], [Upsert(insert("b").entity, merge=True)]),
        ([Upsert(insert("a").entity, merge=False)], [insert("b")]),
        ([insert("a")], [insert("一" * 1000)]),
    ],
)
async def test_change_sets_that_cannot_be_split_are_written_at_once(
    service, people, stored, in_halves, first, second
):
    timestamps = await service.apply(people, "people", first, lambda: second)
    assert in_halves == []
    keys = [change.key.row_key for change in (*first, *second)]
    assert await stored() == dict(zip(keys, timestamps, strict=True))


async def test_a_function_of_an_older_version_gets_all_changes_at_once(service, people, stored):
    table = await in_thread(lambda: tables.get(people.row, "people"))
    function = create_function(table.pk, people.id, people.kind)
    older = function.replace("nullif(current_setting('tablero.moment', true), '')", "NULL")
    assert older != function
    await in_thread(execute, older)
    timestamps = await service.apply(people, "people", [insert("a")], lambda: [insert("b")])
    assert await stored() == dict(zip("ab", timestamps, strict=True))
    assert len(set(timestamps)) == 1


async def test_nothing_is_made_if_the_connection_is_lost_between_the_halves(service, people, stored):
    def lose():
        with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as admin:
            terminate = (
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'SELECT set_config(''tablero.moment''%'"
                " AND pid <> pg_backend_pid()"
            )
            while not (ended := admin.execute(terminate).fetchall()):
                pass  # the first half has not begun yet
        assert ended == [(True,)]
        return [insert("b")]

    with pytest.raises(ServerBusy):
        await service.apply(people, "people", [insert("a")], lose)
    assert await stored() == {}


async def test_change_sets_of_the_same_entities_end_with_one_of_them(service, people, stored):
    async def write(value):
        with suppress(ChangeSetError):
            await service.apply(
                people, "people", [insert("a", value), insert("b", value)], lambda: [insert("c", value)]
            )
            return value

    made = [it for it in await asyncio.gather(*map(write, range(8))) if it is not None]
    assert len(made) == 1
    assert len(set((await stored()).values())) == 1
