"""Tables that clients create: rows whose relations are made when they are first used."""

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest
from django.conf import settings

from storage.accounts import accounts, removal
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ServerBusy, TableAlreadyExists, TableNotFound
from storage.domain.filters.query import EntityQuery, TableQuery
from storage.domain.values.etag import ANY
from storage.models import Account, Activity, Table
from storage.relations import table_relations
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import background, lanes, notify, relations
from storage.sql.django import fetch
from storage.sql.statement import Lane
from storage.tables import tables
from storage.tables.subject import TableVerb

pytestmark = pytest.mark.django_db(transaction=True)

ALL = EntityQuery()


@asynccontextmanager
async def serving():
    service = Service(settings.LANES_CONNINFO)
    await service.open()
    try:
        yield service
    finally:
        await service.close()


@pytest.fixture
async def service(monkeypatch):
    await in_thread(accounts.add, "owner")
    monkeypatch.setitem(lanes.COUNTS, Lane.KEY, 3)
    monkeypatch.setitem(lanes.COUNTS, Lane.FILTER, 1)
    # by the test itself
    monkeypatch.setattr(table_relations, "make_pending", lambda: None)
    async with serving() as service:
        yield service


@pytest.fixture
async def account(service):
    return await service.account("owner")


def insertion(number=0):
    return Insert(Entity(EntityKey("p", f"{number}"), {}))


def read_pending():
    pending = Table.objects.existing().filter(relation_pending=True)
    return list(pending.order_by("pk").values_list("name", flat=True))


def count_relations():
    [(number,)] = fetch("SELECT count(*) FROM pg_class WHERE relname ~ '^(deleted_)?entity_[0-9]+$'")
    return number


async def test_a_table_gets_its_relation_when_it_is_first_used(service, account):
    before = await in_thread(count_relations)
    for name in ("written", "listed", "unused", "batched"):
        await service.create_table(account, name)
    assert await in_thread(count_relations) == before

    await service.change(account, "written", insertion())
    await service.apply(account, "batched", [insertion(1), insertion(2)])
    assert (await service.query(account, "listed", ALL)).entities == []

    assert await in_thread(count_relations) == before + 3
    assert await in_thread(read_pending) == ["unused"]
    assert (await service.query_tables(account, TableQuery()))[0] == sorted(
        ["written", "listed", "unused", "batched"]
    )


async def test_a_table_that_was_never_used_leaves_nothing(service, account):
    before = await in_thread(count_relations)
    await service.create_table(account, "people")
    await service.delete_table(account, "people")

    with pytest.raises(TableNotFound):
        await service.change(account, "people", insertion())
    assert await in_thread(count_relations) == before
    assert await in_thread(tables.drop_expired_tables) == 1
    assert not await in_thread(Table.objects.exists)
    log = Activity.objects.order_by("pk").values_list("verb", "table_name", "before")
    entries = await in_thread(lambda: list(log))
    about = {"description": "", "tags": []}
    assert entries[-2:] == [(TableVerb.CREATE, "people", None), (TableVerb.DELETE, "people", about)]


async def test_where_new_tables_are_used_they_get_their_relations_at_once(service, account):
    async def settle():
        if service._making:
            await asyncio.wait(service._making.values())
        return await in_thread(read_pending)

    for name in ("first", "second"):
        await service.create_table(account, name)
    assert await settle() == ["first", "second"]
    await service.change(account, "first", insertion())
    await service.create_table(account, "third")
    assert await settle() == ["second"]
    await service.change(account, "third", insertion())
    assert service._making == {}

    await service.create_table(account, "fourth")
    await service.delete_table(account, "fourth")
    await service.create_table(account, "fifth")

    assert await settle() == ["second", "fifth"]
    with pytest.raises(TableNotFound):
        await service.change(account, "fourth", insertion())


async def test_loading_a_table_makes_its_relation(service, account):
    for number in range(3):
        await service.create_table(account, f"people{number}")

    def see():
        loaded = tables.listed(account.row)
        return [background.has_rows(table) for table in loaded], table_relations.incomplete(), read_pending()

    assert await in_thread(see) == ([False] * 3, [], [])


async def test_relations_are_made_some_time_later(service, account, monkeypatch):
    await service.create_table(account, "people")
    monkeypatch.undo()  # the real function
    await in_thread(table_relations.make_pending)
    assert await in_thread(read_pending) == ["people"]  # tables of tests are often deleted by then

    await in_thread(
        lambda: fetch("UPDATE storage_table SET created_at = now() - interval '10 s' RETURNING id")
    )
    await in_thread(table_relations.make_pending)

    assert await in_thread(read_pending) == []


async def test_unused_tables_count_for_their_account(service, account):
    await service.create_table(account, "people")

    [contents] = (await in_thread(background.totals, [account.id])).values()

    assert (contents.tables, contents.entities, contents.is_empty) == (1, 0, True)


async def test_of_two_creators_of_one_name_one_gets_it(service, account):
    async with serving() as other:
        results = await asyncio.gather(
            *(it.create_table(account, "people") for it in (service, other) * 4), return_exceptions=True
        )

    refused = [it for it in results if isinstance(it, TableAlreadyExists)]
    assert len(refused) == 7
    assert await in_thread(Table.objects.count) == 1


async def test_a_table_of_a_deleted_account_is_not_created(service, account):
    await in_thread(removal.remove, "owner")

    with pytest.raises(ServerBusy):
        await service._create_local_table(account, "people", SERVER)


async def test_old_catalogs_write_to_no_other_table_than_clients_see(service, account):
    """Two servers create, delete and write to tables of one name; what is acknowledged is in the table or deleted."""
    async with serving() as other:
        for creator, deleter in ((service, other), (other, service), (service, service)) * 4:
            await creator.create_table(account, "people")
            if deleter is other:
                await creator.change(account, "people", insertion(1))
                await deleter.change(account, "people", insertion(2))
            await deleter.delete_table(account, "people")
            await deleter.create_table(account, "people")
            # with the catalog of the first table
            await creator.change(account, "people", insertion(3))
            keys = [it.key.row_key for it in (await deleter.query(account, "people", ALL)).entities]
            assert keys == ["3"]
            await creator.delete_table(account, "people")
            with pytest.raises(TableNotFound):
                await deleter.change(account, "people", insertion(4))


async def test_writes_during_deletions_fail_or_go_with_the_table(service, account):
    async with serving() as other:
        for number in range(20):
            await service.create_table(account, "people")
            write = asyncio.create_task(other.change(account, "people", insertion(number)))
            await service.delete_table(account, "people")
            [result] = await asyncio.gather(write, return_exceptions=True)
            assert isinstance(result, int | TableNotFound)
    assert await in_thread(lambda: Table.objects.existing().count()) == 0


async def test_a_relation_is_not_made_of_a_table_that_is_being_deleted(service, account):
    await service.create_table(account, "people")
    with psycopg.connect(settings.LANES_CONNINFO) as deleting:
        [(table_id,)] = await in_thread(lambda: fetch("SELECT id FROM storage_table"))
        deleting.execute("SELECT remove_table(%s, NULL, 200)", [table_id])
        write = asyncio.create_task(service.change(account, "people", insertion()))
        await asyncio.sleep(0.1)
        assert not write.done()
        deleting.commit()

        with pytest.raises(TableNotFound):
            await write
    assert await in_thread(lambda: fetch("SELECT to_regclass(%s)", f"entity_{table_id}")) == [(None,)]


async def test_a_used_table_is_kept_with_the_history(service, account):
    before = await in_thread(count_relations)
    for name in ("kept", "emptied", "unused"):
        await service.create_table(account, name)
        if name != "unused":
            await service.change(account, name, insertion())
        if name == "emptied":
            await service.change(account, name, Delete(EntityKey("p", "0"), ANY))
        await service.delete_table(account, name)

    assert await in_thread(lambda: [it.name for it in tables.deleted(account.row)]) == ["kept"]
    entry = await in_thread(lambda: Activity.objects.get(table_name="kept", verb=TableVerb.DELETE))
    assert entry.detail == {"kept_days": 7}
    await in_thread(lambda: tables.restore(tables.deleted(account.row)[0]))
    assert len((await service.query(account, "kept", ALL)).entities) == 1
    assert await in_thread(tables.drop_expired_tables) == 2
    assert await in_thread(count_relations) == before + 1


async def test_only_the_latest_deleted_tables_are_kept(service, account, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_KEPT", 2)
    for name in ("one", "two", "three"):
        await service.create_table(account, name)
        await service.change(account, name, insertion())
        await service.delete_table(account, name)

    assert await in_thread(lambda: [it.name for it in tables.deleted(account.row)]) == ["three", "two"]


async def test_an_unused_table_can_be_restored(service, account):
    await service.create_table(account, "people")
    await service.delete_table(account, "people")

    def restore():
        tables.restore(Table.objects.get(), even_expired=True)
        return background.has_rows(Table.objects.get())

    assert await in_thread(restore) is False
    await service.change(account, "people", insertion())


async def test_a_dropped_table_leaves_no_function(service, account):
    await service.create_table(account, "people")
    await service.change(account, "people", insertion())
    table = await service.table(account, "people")
    await service.delete_table(account, "people")
    await in_thread(lambda: Table.objects.update(kept_until=None))

    assert await in_thread(tables.drop_expired_tables) == 1

    name = f"{relations.relation_name(table.id)}_change_set"
    assert await in_thread(lambda: fetch("SELECT to_regproc(%s)", name)) == [(None,)]


async def test_beside_an_older_server_tables_have_relations_at_once(service, account):
    name = notify._OLDER_LISTENER
    with psycopg.connect(settings.LANES_CONNINFO, application_name=name):
        async with asyncio.timeout(30):
            while not service._catalog.has_older:  # noqa: ASYNC110 - it looks every second
                await asyncio.sleep(0.05)
        await service.create_table(account, "people")

    assert await in_thread(read_pending) == []


async def test_an_account_with_unused_tables_is_deleted(service, account):
    before = await in_thread(count_relations)
    for number in range(3):
        await service.create_table(account, f"people{number}")

    await in_thread(lambda: removal.remove("owner", with_tables=True))

    assert not await in_thread(Account.objects.exists)
    assert await in_thread(count_relations) == before
