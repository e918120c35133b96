"""The operations as the protocol calls them, with catalog and lanes."""

import asyncio
import json
import threading

import psycopg
import pytest
from django.conf import settings
from django.utils import timezone

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import OperationTimedOut, ServerBusy, StorageError, TableNotFound, TooManyRequests
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.kinds import AccountKind
from storage.models import Table
from storage.runtime import pending_entries, throughput
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import lanes, notify, relations
from storage.sql.django import execute, fetch
from storage.sql.statement import Lane
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

KEY = EntityKey("p", "r")
ALL = EntityQuery()


@pytest.fixture
async def service(monkeypatch):
    await in_thread(accounts.add, "owner")
    monkeypatch.setitem(lanes.COUNTS, Lane.KEY, 3)
    monkeypatch.setitem(lanes.COUNTS, Lane.FILTER, 1)
    service = Service(settings.LANES_CONNINFO)
    await service.open()
    yield service
    await service.close()


@pytest.fixture
async def account(service):
    return await service.account("owner")


@pytest.fixture
async def people(service, account):
    """Make a table and return its folded name."""
    await service.create_table(account, "People")
    return "people"


def entity(number=0, key=KEY):
    return Entity(key, {"Number": EdmValue(Edm.INT32, number)})


def content(found):
    return json.loads(found.content.replace(b"\n", b"").replace(b",", b"{", 1) + b"}")


async def test_new_entries_of_the_index_are_moved_to_it_in_the_background(
    service, account, people, monkeypatch
):
    """Else the write that finds the list full does it."""
    monkeypatch.setattr(pending_entries, "CLEANED_FROM", 4)
    table = await in_thread(tables.get, account.row, people)

    def clean():
        [(pages,)] = fetch("SELECT gin_clean_pending_list(%s::regclass)", f"entity_{table.pk}_props_idx")
        return pages

    async def insert(*row_keys):
        changes = [Insert(entity(key=EntityKey("p", row_key))) for row_key in row_keys]
        await service.apply(account, people, changes)
        await asyncio.gather(*service._pending_entries._cleaning.values())

    await insert("1", "2", "3")
    assert await in_thread(clean) == 1  # so few wait for others

    await insert("4", "5")
    assert await in_thread(clean) == 0


# tables that come and go


def operations(service, account, table):
    return [
        service.change(account, table, Upsert(entity(), merge=False)),
        service.apply(account, table, [Upsert(entity(), merge=True)]),
        service.get(account, table, KEY, ALL),
        service.query(account, table, ALL),
        service.query(account, table, EntityQuery(filter=parse("Number eq 1"))),
    ]


async def test_a_table_that_was_deleted_elsewhere_is_gone_at_once(service, account, people):
    await service.change(account, people, Upsert(entity(), merge=False))
    for operation in operations(service, account, people):
        await operation

    await in_thread(tables.delete, account.row, people)

    for operation in operations(service, account, people):
        with pytest.raises(TableNotFound):
            await operation


async def test_a_table_made_elsewhere_without_notice_is_used_at_once(service, account, people):
    """The notification is still on its way: the relation is gone, and the name means another one."""
    await service.change(account, people, Insert(entity(1)))
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        connection.execute("SET session_replication_role = replica")
        old = await in_thread(tables.get, account.row, people)
        new = await in_thread(tables.create, account.row, "anew")
        connection.execute("UPDATE storage_table SET deleted_at = now() WHERE id = %s", [old.pk])
        connection.execute(f"ALTER TABLE entity_{old.pk} RENAME TO deleted_entity_{old.pk}")
        connection.execute("UPDATE storage_table SET folded_name = 'people' WHERE id = %s", [new.pk])

    assert (await service.query(account, people, ALL)).entities == []
    await service.change(account, people, Insert(entity(2)))


async def test_writing_while_the_table_comes_and_goes_gives_only_documented_errors(service, account):
    ended = asyncio.Event()

    async def write(number):
        errors = set()
        while not ended.is_set():
            for operation in operations(service, account, "people"):
                try:
                    await operation
                except StorageError as error:
                    errors.add(error.code)
        return errors

    writers = [asyncio.create_task(write(number)) for number in range(3)]
    for _ in range(8):
        await service.create_table(account, "people")
        await asyncio.sleep(0.02)
        await service.delete_table(account, "people")
    ended.set()
    errors = set().union(*await asyncio.gather(*writers))

    assert "TableNotFound" in errors
    assert errors <= {"TableNotFound", "ResourceNotFound"}


def replace_unnoticed(account, name):
    """Replace a table by an empty one without telling the processes."""
    old = tables.get(account.row, name)
    Table.objects.filter(pk=old.pk).update(deleted_at=timezone.now())
    execute(relations.soft_delete(old.pk))
    new = Table.objects.create(
        account_id=account.id, name=old.name, folded_name=old.folded_name, throughput=old.throughput
    )
    execute(relations.create(new.pk, account.id, account.kind))
    return new


async def test_a_write_that_is_repeated_on_a_new_table_can_time_out(service, account, people):
    await service.change(account, people, Insert(entity()))
    new = await in_thread(replace_unnoticed, account, people)
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        connection.execute(f"LOCK TABLE {relations.relation_of(new)}")
        write = asyncio.create_task(service.change(account, people, Insert(entity())))
        await in_thread(cancel_waiting, relations.relation_of(new))
        with pytest.raises(OperationTimedOut):
            await write


def cancel_waiting(relation):
    """Cancel the first statement that waits for a relation."""
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
    while not fetch(waiting, relation):
        execute("SELECT pg_sleep(0.01)")


@pytest.fixture
def costly(monkeypatch):
    """Let one write take the units of an hour from a table with one per second."""
    monkeypatch.setattr(throughput, "WRITE", 3600.0)


async def test_a_write_that_is_repeated_on_a_new_table_is_charged_there(service, costly):
    await in_thread(lambda: accounts.add("planets", NewAccount(kind=AccountKind.COSMOS)))
    account = await service.account("planets")
    table = await in_thread(tables.create, account.row, "people")
    await service.change(account, "people", Insert(entity()))
    await in_thread(lambda: Table.objects.filter(pk=table.pk).update(throughput=1))
    await in_thread(replace_unnoticed, account, "people")
    await service.change(account, "people", Insert(entity()))
    with pytest.raises(TooManyRequests):
        await service.get(account, "people", KEY, ALL)


@pytest.fixture
def short_filters(monkeypatch):
    """Give filters less time; a test names it before its service."""
    settings = lanes.SETTINGS[Lane.FILTER].replace("'1500ms'", "'200ms'")
    assert settings != lanes.SETTINGS[Lane.FILTER]
    monkeypatch.setitem(lanes.SETTINGS, Lane.FILTER, settings)


@pytest.mark.slow
async def test_a_statement_that_takes_too_long_is_a_timeout(
    short_filters, service, account, people, monkeypatch
):
    await service.change(account, people, Insert(entity(1)))
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        relation = (await in_thread(tables.get, account.row, people)).pk
        connection.execute(f"LOCK TABLE entity_{relation} IN ACCESS EXCLUSIVE MODE")

        # nothing can be read while the lock is held: each attempt runs into the time limit of its lane
        monkeypatch.setattr("storage.entities.entities._FIRST_WINDOW", 100)
        with pytest.raises(OperationTimedOut):
            await service.query(account, people, EntityQuery(filter=parse("Number gt 5")))


# a cluster whose node is back: its first use of a lost connection fails

NODE = """
CREATE SEQUENCE node_uses;
CREATE FUNCTION use_node() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('node_uses') = 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = 'failure on connection marked as essential: worker:5432';
    END IF;
    RETURN true;
END
$$
"""


@pytest.fixture
async def relation(service, account, people):
    """Return the relation of a table with an entity."""
    await service.change(account, people, Insert(entity(1)))
    await in_thread(execute, NODE)
    relation = relations.relation_name((await in_thread(tables.get, account.row, people)).pk)
    yield relation
    await in_thread(
        execute,
        "DROP FUNCTION use_node CASCADE; DROP SEQUENCE node_uses;"
        f"ALTER TABLE IF EXISTS {relation}_on_node RENAME TO {relation}",
    )


@pytest.mark.parametrize(
    "query", [None, ALL, EntityQuery(filter=parse("Number eq 1"))], ids=["get", "page", "filter"]
)
async def test_a_read_is_repeated_when_a_node_is_back(service, account, people, relation, query):
    rows = f"{relation}_on_node"
    await in_thread(
        execute,
        f"ALTER TABLE {relation} RENAME TO {rows};"
        f"CREATE VIEW {relation} AS SELECT * FROM {rows} WHERE use_node()",
    )
    if query is None:
        results = [await service.get(account, people, KEY, ALL)]
    else:
        results = (await service.query(account, people, query)).entities
    assert [content(it)["Number"] for it in results] == [1]


async def test_a_write_is_not_repeated_when_a_node_is_back(service, account, people, relation):
    """It is unknown whether it took effect."""
    await in_thread(execute, f"ALTER TABLE {relation} ADD CONSTRAINT node CHECK (use_node()) NOT VALID")
    with pytest.raises(ServerBusy):
        await service.change(account, people, Upsert(entity(2), merge=False))
    assert content(await service.get(account, people, KEY, ALL))["Number"] == 1
    await service.change(account, people, Upsert(entity(3), merge=False))


@pytest.mark.slow
async def test_policies_that_must_wait_keep_nobody_else_waiting(service, account, people, monkeypatch):
    monkeypatch.setattr(notify, "_LOCK_TIMEOUT", "500ms")
    may_disconnect, disconnect = threading.Event(), notify.fetch
    monkeypatch.setattr(notify, "fetch", lambda *query: may_disconnect.wait(60) and disconnect(*query))
    hanging = await psycopg.AsyncConnection.connect(settings.LANES_CONNINFO, autocommit=True)
    await hanging.execute("SELECT pg_advisory_lock_shared(%s)", [notify._SNAPSHOT])
    changes = [
        asyncio.create_task(service.replace_policies(account, people, [SignedIdentifier(str(number))]))
        for number in range(8)
    ]
    await asyncio.sleep(0.1)

    assert await service.get_table(account, people) == "People"
    assert await service.account("owner") == account
    assert not any(change.done() for change in changes)

    # the first one disconnects it in the end
    may_disconnect.set()
    assert [await change for change in changes] == [None] * 8
    await hanging.close()


async def test_remembers_writes(service, account, people):
    await service.query(account, people, ALL)
    await service.observer.flush()
    assert (await in_thread(tables.get, account.row, people)).written_at is None
    await service.change(account, people, Insert(entity()))
    await service.observer.flush()
    assert (await in_thread(tables.get, account.row, people)).written_at is not None


async def test_a_table_with_a_throughput_limit_refuses_more_until_units_are_back(service, costly):
    await in_thread(lambda: accounts.add("planets", NewAccount(kind=AccountKind.COSMOS)))
    account = await service.account("planets")
    table = await in_thread(tables.create, account.row, "people")
    await in_thread(lambda: tables.change(table, throughput=1))
    await service.change(account, "people", Insert(entity()))
    for operation in operations(service, account, "people"):
        with pytest.raises(TooManyRequests):
            await operation
