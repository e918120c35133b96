"""Servers of several versions on one database: who may write, and tables that an older one has created."""

import asyncio

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.migrations.recorder import MigrationRecorder

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ServerBusy, TableNotFound
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.health import database_version
from storage.health.database_version import WRITER, stopping_older_servers
from storage.health.findings import Severity
from storage.models import Account, DatabaseVersion, Table
from storage.relations import table_relations
from storage.runtime import catalog, doctor, periodic
from storage.runtime.threads import in_thread
from storage.sql import connections, notify
from storage.sql.notify import LISTENER, Event, News
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

KEY = EntityKey("p", "r")
LONG = EntityKey("中" * 1000, "中" * 1000)
UPSERT = Upsert(Entity(KEY, {"Number": EdmValue(Edm.INT32, 1)}), merge=False)


@pytest.fixture
def database():
    """Open a connection in addition to the service's."""
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def account(service):
    account = await service.account("owner")
    await service.create_table(account, "People")
    return account


@pytest.fixture
def outdated():
    database_version.note(WRITER + 1)
    yield
    database_version.note(0)


# the least version that may write


async def test_a_server_stops_writing_when_a_newer_one_upgrades_the_database(service, account, monkeypatch):
    await service.change(account, "people", UPSERT)

    with monkeypatch.context() as newer:
        newer.setattr(database_version, "WRITER", WRITER + 1)
        await in_thread(_upgrade)

    # from the next request on, without waiting for anything
    account = await service.account("owner")
    for write in (
        service.change(account, "people", UPSERT),
        service.apply(account, "people", [UPSERT]),
        service.create_table(account, "More"),
        service.delete_table(account, "People"),
        service.replace_policies(account, "people", []),
        service.replace_properties(account, lambda properties: properties),
    ):
        with pytest.raises(ServerBusy):
            await write
    assert (await service.get(account, "people", KEY, EntityQuery())).key == KEY


def _upgrade():
    with stopping_older_servers():
        pass


async def test_a_server_notices_by_the_clock(service, account, database, monkeypatch):
    """The check works without a notification, as when another program writes the number."""
    monkeypatch.setattr(notify, "_CHECK_INTERVAL", 0.01)
    database.execute("INSERT INTO storage_databaseversion (writer, release) VALUES (%s, '9.0')", [WRITER + 1])
    await _eventually(database_version.is_outdated)
    with pytest.raises(ServerBusy):
        await service.change(await service.account("owner"), "people", UPSERT)

    database.execute("DELETE FROM storage_databaseversion")
    await _eventually(lambda: not database_version.is_outdated())
    await service.change(await service.account("owner"), "people", UPSERT)


async def _eventually(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.005)


def test_an_account_in_memory_is_dropped_with_the_number():
    known = catalog.Catalog(settings.LANES_CONNINFO)
    known._accounts["owner"] = None
    known._handle(Event(News.STILL_HELD, 0.0, writer=WRITER))
    assert known._accounts
    known._handle(Event(News.STILL_HELD, 0.0, writer=WRITER + 1))
    assert not known._accounts
    known._handle(Event(News.STILL_HELD, 0.0, writer=WRITER))


async def test_jobs_of_an_outdated_server_do_nothing(outdated):
    ran = []
    await periodic._run_once(periodic._Work("work", lambda: ran.append(1), 1.0, "failed"))
    assert ran == []


def test_a_failed_upgrade_lets_older_servers_write(monkeypatch):
    DatabaseVersion.objects.create(pk=1, writer=WRITER, release="old")
    monkeypatch.setattr(database_version, "WRITER", WRITER + 1)
    seen = []

    def fail():
        with stopping_older_servers():
            seen.append(database_version.read_writer())
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert (seen, database_version.read_writer()) == ([WRITER + 1], WRITER)


def test_servers_without_the_writer_number_are_found(database, monkeypatch):
    while connections.servers():
        pass  # connections of earlier tests, which are about to end
    assert database_version.servers_that_cannot_be_stopped() == []
    monkeypatch.setattr(
        database_version, "applied_migrations", lambda: frozenset({("storage", "0001_initial")})
    )
    with psycopg.connect(settings.LANES_CONNINFO, application_name=LISTENER):
        assert database_version.servers_that_cannot_be_stopped() == ["this machine"]


# migrations


def test_a_database_of_this_version():
    assert (database_version.explain_newer(), database_version.is_older()) == ("", False)


@pytest.mark.parametrize("label", ["storage", "console"])
def test_a_migration_of_a_newer_version(label):
    recorder = MigrationRecorder(connection)
    recorder.record_applied(label, "0099_from_the_future")
    try:
        assert "A newer version of Tablero has upgraded the database" in database_version.explain_newer()
    finally:
        recorder.record_unapplied(label, "0099_from_the_future")


def test_a_number_of_a_newer_version():
    DatabaseVersion.objects.create(pk=1, writer=WRITER + 1, release="9.0")
    assert "A newer version of Tablero (9.0) has upgraded" in database_version.explain_newer()


def test_older_servers_can_write_rows_without_new_columns():
    """Every column that was added to a table has a default in the database, or may be null."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'"
        )
        required = set(cursor.fetchall())
    loader = MigrationLoader(connection)
    since_0_4 = [
        (label, operation)
        for (label, _), migration in loader.disk_migrations.items()
        if label in {"storage", "console"} and migration.name >= "0013"
        for together in migration.operations
        for operation in getattr(together, "operations", [together])
    ]
    apps = loader.project_state().apps
    added = {
        (apps.get_model(label, operation.model_name)._meta.db_table, operation.name)
        for label, operation in since_0_4
        if isinstance(operation, AddField)
    }
    assert len(added) > 10
    assert added & required == set()


# tables and accounts that a server before 1.0 creates after the upgrade


@pytest.fixture
def older(database):
    """Do to a table what distinguishes one that a server of 0.4 has created: it has another function."""

    def older(name):
        table = Table.objects.get(folded_name=name)
        [arguments] = database.execute(
            "SELECT pg_get_function_identity_arguments(%s::regproc)", [f"entity_{table.pk}_change_set"]
        ).fetchone()
        database.execute(f"DROP FUNCTION entity_{table.pk}_change_set({arguments})")
        database.execute(
            f"CREATE FUNCTION entity_{table.pk}_apply(p text, changes jsonb, only_inserts boolean)"
            " RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]'"
        )
        return table

    return older


@pytest.mark.parametrize(
    "change",
    [
        lambda service, account: service.change(account, "people", UPSERT),
        lambda service, account: service.apply(account, "people", [UPSERT]),
        lambda service, account: service.change(account, "people", Insert(Entity(LONG, {}))),
    ],
    ids=["upsert", "batch", "long key"],
)
async def test_a_table_of_an_older_server_is_completed_by_its_first_change(service, account, older, change):
    await in_thread(older, "people")
    await change(service, account)
    assert len((await service.query(account, "people", EntityQuery())).entities) == 1


async def test_completing_a_table_without_its_relation_has_a_limit(service, account, database):
    table = await in_thread(Table.objects.get, folded_name="people")
    database.execute(f"ALTER TABLE entity_{table.pk} RENAME TO entity_of_nothing")
    try:
        with pytest.raises(TableNotFound):
            await service.change(account, "people", UPSERT)
    finally:
        database.execute(f"ALTER TABLE entity_of_nothing RENAME TO entity_{table.pk}")


def test_tables_of_older_servers_are_named_and_completed(older):
    tables.create(accounts.add("owner"), "People")
    table = older("people")

    assert table_relations.incomplete() == [table]
    [finding] = doctor.parts()["tables"]()
    assert (finding.severity, finding.text[:12]) == (Severity.ERROR, "owner/People")

    table_relations.complete_all()

    assert table_relations.incomplete() == []
    assert [finding.severity for finding in doctor.parts()["tables"]()] == [Severity.OK]


def test_a_table_of_an_older_server_can_be_edited_in_the_console(older):
    table = tables.create(accounts.add("owner"), "People")
    older("people")
    edits.apply_one(table, UPSERT, by=SERVER)


def test_a_table_of_an_older_server_can_be_deleted_and_restored(older):
    owner = accounts.add("owner")
    tables.create(owner, "People")
    table = older("people")
    tables.delete(owner, "People", keep=tables.DELETED_TABLE_RETENTION)
    tables.restore(table)
    assert table_relations.incomplete() == []


def test_an_older_server_can_create_accounts(database):
    """It inserts no column that it does not know; storage.history.retention starts the history."""
    accounts.add("newer")
    database.execute(
        "INSERT INTO storage_account (name, primary_key_sealed, secondary_key_sealed, enabled, shared_key_access,"
        " networks, label, description, colour, labels, request_digest, protected, read_only, created_at)"
        " SELECT 'older', primary_key_sealed, secondary_key_sealed, enabled, shared_key_access, networks, label,"
        " description, colour, labels, request_digest, protected, read_only, created_at FROM storage_account"
    )
    assert Account.objects.get(name="older").adaptive_indexes
