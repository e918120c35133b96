"""Entities are made equal to images in sets, recorded like any write, and never over newer work."""

import asyncio

import pytest
from django.db import connection, transaction

from storage.accounts import account_settings, accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import InsufficientAccountPermissions, StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.models import Account
from storage.runtime.threads import in_thread
from storage.sql import entities, restoring
from storage.sql.django import execute, fetch, run
from storage.sql.record import segment_name
from storage.sql.relations import relation_name
from storage.sql.restoring import Images
from storage.tables import tables
from storage.undo import reverting
from storage.undo.reverting import apply_images
from tests.entities.test_edits import HOSTILE

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = "7f3a19c0-0000-4000-8000-000000000001"
ADA = Actor(ActorKind.USER, "ada", request_id=REQUEST)
LONG = EntityKey("p" * 2000, "字" * 500)


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


def key(row_key):
    return EntityKey("p", row_key)


def entity(row_key, number=0, **properties):
    return Entity(key(row_key), {"N": EdmValue(Edm.INT64, number), **properties})


def write(table, change):
    return run(entities.change(relation_name(table.pk), change))


def rows(table, columns="ts, props::text, anns, vals"):
    found = fetch(f"SELECT pk, rk, {columns} FROM {relation_name(table.pk)} ORDER BY pk, rk")
    return {EntityKey(*row[:2]): row[2:] for row in found}


def recorded(table, columns="op, ts, was, pk, rk, anns, vals"):
    return fetch(f"SELECT {columns} FROM {segment_name(table.account_id, 1)} ORDER BY seq")


def images(*wanted):
    """Images given as rows: keys, expected Timestamp, and an entity or None."""
    columns = [[], [], [], []]
    for entity_key, expected, image in wanted:
        content = None if image is None else image.fragments.content
        for column, value in zip(columns, (*entity_key, expected, content), strict=True):
            column.append(value)
    execute("DROP TABLE IF EXISTS wanted_images")
    execute("CREATE TEMPORARY TABLE wanted_images (pk text, rk text, expected bigint, vals text)")
    execute(
        "INSERT INTO wanted_images SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[])",
        *columns,
    )
    return Images("SELECT * FROM wanted_images")


def test_inserts_changes_and_deletes_in_one_go(table):
    whole = Entity(key("c"), HOSTILE)
    changed = write(table, Insert(entity("b", 1)))
    deleted = write(table, Insert(entity("d", 1)))
    same = write(table, Insert(entity("e", 1)))
    before = rows(table)
    wanted = images(
        (key("a"), None, entity("a", 2)),
        (key("b"), changed, Entity(key("b"), HOSTILE)),
        (key("d"), deleted, None),
        (key("e"), same, entity("e", 1)),
        (key("f"), None, None),
    )

    done = apply_images(table, wanted, by=ADA)

    assert (done.inserted, done.changed, done.deleted, done.unchanged, done.skipped) == (1, 1, 1, 2, 0)
    after = rows(table)
    assert set(after) == {key("a"), key("b"), key("e")}
    assert after[key("e")] == before[key("e")]
    # as a write of the service leaves them, with the projection of every type
    write(table, Insert(whole))
    assert rows(table)[key("c")][1:] == after[key("b")][1:]
    assert after[key("b")][0] > changed

    changes = {row[4]: row for row in recorded(table)}
    assert changes["a"][:3] == ("i", after[key("a")][0], None)
    assert changes["b"][:3] == ("u", after[key("b")][0], changed)
    assert (changes["d"][0], changes["d"][2]) == ("d", deleted)
    assert changes["d"][1] > deleted
    assert changes["a"][5:] == (None, None)
    assert changes["b"][5:] == before[key("b")][2:]
    assert changes["d"][5:] == before[key("d")][2:]
    assert len(recorded(table)) == 3
    assert {str(row[0]) for row in recorded(table, "request")} == {REQUEST}


def test_skips_newer_work(table):
    seen = {name: write(table, Insert(entity(name, 1))) for name in ("changed", "gone")}
    write(table, Upsert(entity("changed", 2), merge=False))
    write(table, Delete(key("gone"), ANY))
    write(table, Insert(entity("exists", 2)))
    before = rows(table)
    wanted = images(
        (key("changed"), seen["changed"], entity("changed", 3)),
        (key("exists"), None, entity("exists", 3)),
        (key("gone"), seen["gone"], None),
    )

    done = apply_images(table, wanted, by=ADA)

    assert done.examples == [
        Skipped(key("changed"), Skip.CHANGED),
        Skipped(key("exists"), Skip.EXISTS),
        Skipped(key("gone"), Skip.GONE),
    ]
    assert (done.written, done.skipped) == (0, 3)
    assert rows(table) == before
    assert recorded(table) == []


def test_long_keys(table):
    wanted = images((LONG, None, Entity(LONG, entity("x", 1).properties)), (key("a"), None, entity("a")))
    assert apply_images(table, wanted, by=ADA).inserted == 2
    [(timestamp,)] = fetch(f"SELECT ts FROM {relation_name(table.pk)}_long")
    again = images((LONG, None, Entity(LONG, {})), (EntityKey(*LONG[::-1]), None, Entity(LONG, {})))
    done = apply_images(table, again, by=ADA)
    assert (done.inserted, done.examples) == (1, [Skipped(LONG, Skip.EXISTS)])

    changed = apply_images(table, images((LONG, timestamp, Entity(LONG, entity("x", 2).properties))), by=ADA)
    assert changed.changed == 1
    [timestamp, *_] = rows(table)[LONG]
    assert apply_images(table, images((LONG, timestamp, None)), by=ADA).deleted == 1
    assert LONG not in rows(table)
    assert [row[0] for row in recorded(table)] == list("iiiud")


def test_without_history_nothing_is_recorded(table):
    Account.objects.update(history_days=0)
    table.account.refresh_from_db()
    assert apply_images(table, images((key("a"), None, entity("a"))), by=ADA).inserted == 1
    assert recorded(table) == []


def test_refuses_a_read_only_account(table):
    account_settings.change(table.account, read_only=True)
    with pytest.raises(InsufficientAccountPermissions):
        apply_images(table, images((key("a"), None, entity("a"))), by=ADA)


def test_in_a_transaction_it_is_all_or_nothing(table, monkeypatch):
    monkeypatch.setattr(restoring, "_CHUNK_BYTES", restoring._LEAST_BYTES)
    with transaction.atomic():
        wanted = images(*((key(str(n)), None, entity(str(n))) for n in range(5)))
        assert apply_images(table, wanted, by=ADA).inserted == 5
        transaction.set_rollback(True)
    assert rows(table) == {}
    assert recorded(table) == []


def test_a_failure_leaves_no_images_behind(table):
    with pytest.raises(Exception, match="22P02"):
        apply_images(table, Images("SELECT 'p', 'r', 'x'::text::bigint, '', ''"), by=ADA)
    assert apply_images(table, images((key("a"), None, entity("a"))), by=ADA).inserted == 1


async def test_writers_that_race_lose_nothing(monkeypatch):
    """Every change has the entity as the one before left it, whoever made it, and every Timestamp is greater."""
    monkeypatch.setattr(restoring, "_CHUNK_BYTES", restoring._LEAST_BYTES * 4)
    account = await in_thread(accounts.add, "acme")
    table = await in_thread(tables.create, account, "people")
    names = [f"{n:02}" for n in range(12)]
    stop = asyncio.Event()

    def writing(turn):
        recorder = reverting.history.recorder(table.account, Actor(ActorKind.KEY, f"writer {turn}"))
        for number in range(300):
            name = names[(number * 7 + turn) % len(names)]
            changes = (
                Upsert(entity(name, number), False),
                Delete(key(name), ANY),
                Insert(entity(name, -number)),
            )
            change = changes[(number + turn) % 3]
            try:
                run(entities.change(relation_name(table.pk), change, recorder))
            except StorageError:
                pass  # it is there, or gone

    def reverting_to(number):
        wanted = " UNION ALL ".join(
            f"SELECT 'p', '{name}', (SELECT ts FROM {relation_name(table.pk)} WHERE pk = 'p' AND rk = '{name}'),"
            + ("''::text, NULL" if (index + number) % 3 == 0 else f"'', E'\\n,\"N\":{number * 100 + index}'")
            for index, name in enumerate(names)
        )
        return apply_images(table, Images(wanted), by=ADA)

    async def reverting_until_stopped():
        done, number = [], 0
        while not stop.is_set():
            done.append(await in_thread(reverting_to, number))
            number += 1
        return done

    restorer = asyncio.create_task(reverting_until_stopped())
    await asyncio.gather(*(in_thread(writing, turn) for turn in range(3)))
    stop.set()
    done = await restorer
    present, changes = await in_thread(lambda: (rows(table, "ts, anns, vals"), recorded(table)))

    assert sum(it.written for it in done) > 0
    for name in names:
        mine = [row for row in changes if row[4] == name]
        assert mine, name
        previous = None  # the Timestamp that the entity had after a change, None if it did not exist
        seen = 0
        for op, ts, was, _pk, _rk, _anns, vals in mine:
            assert (op == "i") == (was is None), mine
            assert was == previous, mine
            assert ts > seen or op == "i"
            assert (vals is None) == (op == "i")
            previous, seen = (None if op == "d" else ts), ts
        after = present.get(key(name))
        assert (after[0] if after else None) == previous
        # the image before a change is what the one before wrote: no two changes start from the same version
        starts = [row[2] for row in mine if row[2] is not None]
        assert len(starts) == len(set(starts))


def test_ten_thousand_in_chunks_below_the_limit_of_a_statement(table):
    relation = relation_name(table.pk)
    execute(
        f"INSERT INTO {relation} SELECT 'p' || i % 7, i::text, 1, '{{}}', '', E'\\n,\"A\":' || i"
        " FROM generate_series(1, 10000) AS i"
    )
    zeroes = Images(f"SELECT pk, rk, ts, E'\\n,\"A\":0' FROM {relation}")

    done = apply_images(table, zeroes, by=ADA)

    assert (done.changed, done.skipped) == (10_000, 0)
    assert fetch(f"SELECT DISTINCT vals, props::text FROM {relation}") == [('\n,"A":0', '{"A": 0}')]
    assert len(recorded(table)) == 10_000
    assert not fetch("SELECT FROM pg_class WHERE relname = 'restored_images'")
    assert connection.in_atomic_block is False
