"""Every write records what it changed, with the entity as it was, in whatever way it comes."""

import asyncio
import uuid

import pytest
from django.conf import settings
from django.db import transaction

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, Precondition
from storage.runtime.threads import in_thread
from storage.sql import batch, entities, history, relations
from storage.sql.django import execute, fetch, run, run_in_lane
from storage.sql.history import Recorder
from storage.sql.lanes import Lanes
from tests.sql.conftest import ACCOUNT_ID, TABLE_ID

REQUEST = "7f3a19c0-0000-4000-8000-000000000001"
KEY = EntityKey("p", "r")
START = f"{history.create(ACCOUNT_ID, 1)};{history.write_to(ACCOUNT_ID, 1)}"
LONG = EntityKey("p" * 2000, "字" * 500)


@pytest.fixture(params=["one", "several", "change set"])
def write(relation, request):
    """Apply a change in one of the ways in which it can be recorded; return its Timestamp."""
    execute(START)
    recorder = Recorder(history.writers_name(ACCOUNT_ID), 7, REQUEST)

    def write(change):
        with transaction.atomic():
            if request.param == "change set":
                return run(batch.apply(relation, [change], recorder))[0]
            statement = entities.change(relation, change, recorder)
            if request.param == "several" and statement.combination is not None:
                together = run_in_lane(statement.combination.statement([statement.parameters]))
                if together:
                    return together[change.key]
            return run_in_lane(statement)

    return write


def recorded():
    columns = "op, ts, was, pk, rk, anns, vals, tbl, actor, request::text"
    return fetch(f"SELECT {columns} FROM {history.segment_name(ACCOUNT_ID, 1)} ORDER BY seq")


def entity(number, key=KEY):
    return Entity(key, {"A": EdmValue(Edm.INT64, number), "B": EdmValue(Edm.STRING, "b")})


def row(number):
    return "", entity(number).fragments.content  # no annotations apart, as in rows of older versions


@pytest.mark.parametrize("key", [KEY, LONG], ids=["ordinary keys", "long keys"])
def test_the_life_of_an_entity(write, key):
    inserted = write(Insert(entity(1, key)))
    replaced = write(Update(entity(2, key), ANY, merge=False))
    merged = write(Update(Entity(key, {"A": EdmValue(Edm.INT64, 3)}), Precondition(replaced), merge=True))
    upserted = write(Upsert(entity(4, key), merge=False))
    upsert_merged = write(Upsert(entity(5, key), merge=True))
    conditional = write(Update(entity(6, key), Precondition(upsert_merged), merge=False))
    assert write(Delete(key, Precondition(conditional))) == conditional
    again = write(Upsert(entity(7, key), merge=True))
    assert write(Delete(key, ANY)) == again
    once_more = write(Upsert(entity(8, key), merge=False))

    rows = recorded()
    assert [row[0] for row in rows] == list("iuuuuudidi")
    times = [inserted, replaced, merged, upserted, upsert_merged, conditional]
    assert [row[1] for row in rows[:6]] == times
    assert [row[2] for row in rows[:7]] == [None, *times]
    assert rows[6][1] > conditional and rows[8][1] > again
    assert [row[1] for row in (rows[7], rows[9])] == [again, once_more]
    assert [row[2] for row in rows[7:]] == [None, again, None]
    assert {row[3:5] for row in rows} == {tuple(key)}
    images = [row[5:7] for row in rows]
    merged_image = row(3)
    nothing = (None, None)
    assert images[:4] == [nothing, row(1), row(2), merged_image]
    assert images[6:] == [row(6), nothing, row(7), nothing]
    assert {row[7:] for row in rows} == {(TABLE_ID, 7, REQUEST)}


def test_what_fails_leaves_no_history(write):
    write(Insert(entity(1)))
    for change in (
        Insert(entity(2)),
        Update(entity(2), Precondition(1), merge=False),
        Update(entity(2), Precondition(1), merge=True),
        Update(Entity(EntityKey("p", "none"), {}), ANY, merge=False),
        Delete(KEY, Precondition(1)),
        Delete(EntityKey("p", "none"), ANY),
    ):
        with pytest.raises((StorageError, ChangeSetError)):
            write(change)

    assert [row[0] for row in recorded()] == ["i"]


def test_a_change_set_is_recorded_whole(write, relation):
    recorder = Recorder(history.writers_name(ACCOUNT_ID), 7, REQUEST)
    keys = [EntityKey("p", str(number)) for number in range(3)]
    run(batch.apply(relation, [Insert(entity(1, key)) for key in keys], recorder))
    assert [row[0] for row in recorded()] == ["i", "i", "i"]

    changes = [
        Delete(keys[0], ANY),
        Update(entity(2, keys[1]), ANY, merge=True),
        Upsert(entity(3, keys[2]), merge=False),
    ]
    run(batch.apply(relation, changes, recorder))
    assert [(row[0], row[4], row[6]) for row in recorded()[3:]] == [
        ("d", "0", row(1)[1]),
        ("u", "1", row(1)[1]),
        ("u", "2", row(1)[1]),
    ]


MAKE = {
    "insert": Insert,
    "upsert": lambda entity: Upsert(entity, merge=False),
    "upsert merge": lambda entity: Upsert(entity, merge=True),
    "replace": lambda entity: Update(entity, ANY, merge=False),
    "merge": lambda entity: Update(entity, ANY, merge=True),
    "delete": lambda entity: Delete(entity.key, ANY),
}
# one is the beginning of another; not in the order of the keys
NAMES = {"b": ("A", "É"), "é": ("AB", "A1"), "B": ("A", "AB", "A1", "É"), "字": (), "a": ("AB",)}


@pytest.mark.parametrize("kind", MAKE)
def test_changes_of_one_kind_together_are_what_they_are_alone(relation, kind):
    """Also if some insert and others change, and if they set different properties."""
    execute(START)
    recorder = Recorder(history.writers_name(ACCOUNT_ID), 7, REQUEST)
    existing = () if kind == "insert" else "bB" if kind.startswith("upsert") else tuple(NAMES)

    def changes(partition):
        for row_key, names in NAMES.items():
            values = {name: EdmValue(Edm.INT64, number) for number, name in enumerate(names)}
            yield MAKE[kind](Entity(EntityKey(partition, row_key), values))

    def outcome(partition):
        rows = fetch(
            f"SELECT rk, props::text, anns, vals FROM {relation} WHERE pk = %s ORDER BY rk", partition
        )
        return rows, sorted((it[:1] + it[4:7]) for it in recorded() if it[3] == partition)

    for partition in ("together", "alone"):
        for row_key in existing:
            old = {name: EdmValue(Edm.GUID, uuid.UUID(int=1)) for name in ("AB", "A", "B")}
            run_in_lane(
                entities.change(relation, Insert(Entity(EntityKey(partition, row_key), old)), recorder)
            )
    ticks = run(batch.apply(relation, list(changes("together")), recorder))
    for change in changes("alone"):
        run_in_lane(entities.change(relation, change, recorder))

    assert outcome("together") == outcome("alone")
    times = {key: ts for _, ts, _, partition, key, *_ in recorded() if partition == "together"}
    if kind == "delete":
        assert len(set(times.values())) == 1 and max(ticks) < min(times.values())
    else:
        assert set(ticks) == set(times.values()) and len(set(ticks)) == 1
    assert [it[2] is None for it in recorded()] == [it[0] == "i" for it in recorded()]


def test_an_actor_has_one_number(db):
    ada = Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "one")
    number = run(history.intern(ada))
    assert number is not None
    assert run(history.intern(Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "two"))) == number
    assert run(history.intern(Actor(ActorKind.USER, "ada", "10.0.0.2", "Firefox"))) not in (number, None)


async def test_writes_that_go_together_are_recorded_each_for_its_caller(transactional_db):
    """Enough of each kind at once that they are combined, in two partitions."""
    await in_thread(execute, f"{relations.create(TABLE_ID, ACCOUNT_ID)};{START}")
    lanes = Lanes(settings.LANES_CONNINFO)
    await lanes.open()
    relation, keys = relations.relation_name(TABLE_ID), [EntityKey(f"p{n % 2}", f"{n:03}") for n in range(90)]

    async def at_once(change):
        recorders = [
            Recorder(history.writers_name(ACCOUNT_ID), n, str(uuid.UUID(int=n))) for n in range(len(keys))
        ]
        return await asyncio.gather(
            *(
                lanes.run(entities.change(relation, change(key), by))
                for key, by in zip(keys, recorders, strict=True)
            )
        )

    inserted = await at_once(lambda key: Insert(entity(1, key)))
    merged = await at_once(lambda key: Update(entity(2, key), ANY, merge=True))
    upserted = await at_once(lambda key: Upsert(entity(3, key), merge=True))
    replaced = await at_once(lambda key: Upsert(entity(4, key), merge=False))
    deleted = await at_once(lambda key: Delete(key, ANY))
    lanes.close()

    assert deleted == replaced
    rows = await in_thread(recorded)
    for number, key in enumerate(keys):
        of_key = [row for row in rows if row[3:5] == tuple(key)]
        assert [row[0] for row in of_key] == list("iuuud")
        assert [row[2] for row in of_key] == [
            None, inserted[number], merged[number], upserted[number], replaced[number]
        ]  # fmt: skip
        assert {row[8:] for row in of_key} == {(number, str(uuid.UUID(int=number)))}
    drop = relations.soft_delete(TABLE_ID) + ";" + relations.drop(TABLE_ID)
    await in_thread(
        execute, f"{drop};{history.drop_view(ACCOUNT_ID)};{history.drop(ACCOUNT_ID, 1, packed=False)}"
    )
