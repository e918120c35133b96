"""Entities are made equal to images in sets, recorded like any write, and never over newer work."""

import asyncio

import pytest
from django.db import connection, transaction

from storage.accounts import account_settings, accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import InsufficientAccountPermissions, StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.runtime.threads import in_thread
from storage.sql import entities, restoring
from storage.sql.django import execute, fetch, run
from storage.sql.record import segment_name
from storage.sql.relations import relation_name
from storage.sql.restoring import Images
from storage.tables import tables
from storage.undo import reverting
from storage.undo.reverting import apply_images

pytestmark = pytest.mark.django_db

REQUEST = "7f3a19c0-0000-4000-8000-000000000001"
ADA = Actor(ActorKind.USER, "ada", request_id=REQUEST)


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
    result = fetch(f"SELECT pk, rk, {columns} FROM {relation_name(table.pk)} ORDER BY pk, rk")
    return {EntityKey(*row[:2]): row[2:] for row in result}


def recorded(table, columns="op, ts, was, pk, rk, anns, vals"):
    return fetch(f"SELECT {columns} FROM {segment_name(table.account_id, 1)} ORDER BY seq")


def images(*changes):
    """Images given as rows: keys, expected Timestamp, and an entity or None."""
    columns = [[], [], [], []]
    for entity_key, expected, image in changes:
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


def test_refuses_a_read_only_account(table):
    account_settings.change(table.account, read_only=True)
    with pytest.raises(InsufficientAccountPermissions):
        apply_images(table, images((key("a"), None, entity("a"))), by=ADA)


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_it_is_all_or_nothing(table, monkeypatch):
    monkeypatch.setattr(restoring, "_CHUNK_BYTES", restoring._LEAST_BYTES)
    with transaction.atomic():
        operations = images(*((key(str(n)), None, entity(str(n))) for n in range(5)))
        assert apply_images(table, operations, by=ADA).inserted == 5
        transaction.set_rollback(True)
    assert rows(table) == {}
    assert recorded(table) == []


@pytest.mark.django_db(transaction=True)
def test_a_failure_leaves_no_images_behind(table):
    with pytest.raises(Exception, match="22P02"):
        apply_images(table, Images("SELECT 'p', 'r', 'x'::text::bigint, '', ''"), by=ADA)
    assert apply_images(table, images((key("a"), None, entity("a"))), by=ADA).inserted == 1


@pytest.mark.django_db(transaction=True)
async def test_writers_that_race_lose_nothing(monkeypatch):
    """Each change reads the entity as the previous one left it, also of another writer, and Timestamps always grow."""
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
        statement = " UNION ALL ".join(
            f"SELECT 'p', '{name}', (SELECT ts FROM {relation_name(table.pk)} WHERE pk = 'p' AND rk = '{name}'),"
            + ("''::text, NULL" if (index + number) % 3 == 0 else f"'', E'\\n,\"N\":{number * 100 + index}'")
            for index, name in enumerate(names)
        )
        return apply_images(table, Images(statement), by=ADA)

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


@pytest.mark.django_db(transaction=True)
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
