"""Servers and commands on a database of another version."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.conninfo import make_conninfo

from storage.accounts import accounts
from storage.health import database_version
from storage.relations import table_relations
from storage.server import migration
from storage.server.refusal import Refusal
from storage.sql.django import execute, fetch
from storage.sql.notify import LISTENER
from storage.tables import tables
from tests.live_server import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

OURS = {"storage", "console"}
SQUASHED = "0014_squashed_0035_branch_is_whole"
BEFORE_LAST, LAST = sorted(path.stem for path in (ROOT / "storage" / "migrations").glob("0*.py"))[-2:]
OLDER = "The database is older than this version of Tablero. Start the server, or run: tablero upgrade"


@contextmanager
def applied(name):
    MigrationRecorder(connection).record_applied("storage", name)
    try:
        yield
    finally:
        MigrationRecorder(connection).record_unapplied("storage", name)


@contextmanager
def unapplied_as_owner(name):
    """Forget a migration by another connection than Django's, which has another role."""
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as owner:
        owner.execute("DELETE FROM django_migrations WHERE name = %s", [name])
        owner.execute("GRANT SELECT ON django_migrations TO powerless")
        try:
            yield
        finally:
            owner.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES ('storage', %s, now())", [name]
            )
            owner.execute("REVOKE SELECT ON django_migrations FROM powerless")


@contextmanager
def unapplied(name):
    MigrationRecorder(connection).record_unapplied("storage", name)
    try:
        yield
    finally:
        MigrationRecorder(connection).record_applied("storage", name)


@pytest.mark.parametrize(
    "command", ["account list", "doctor", "user list", "token list", "changes a", "upgrade"]
)
def test_commands_refuse_a_newer_database(command):
    with (
        applied("0099_from_the_future"),
        pytest.raises(Refusal, match="A newer version of Tablero has upgraded"),
    ):
        call_command(*command.split())


def test_the_server_refuses_a_newer_database():
    with applied("0099_from_the_future"), pytest.raises(Refusal, match="restore a backup from before"):
        migration.prepare(settings.OPTIONS, print)


def test_the_server_refuses_another_secret(monkeypatch):
    accounts.add("acme")
    monkeypatch.setattr(settings, "SERVER_SECRET", b"not the secret of the account")
    with pytest.raises(Refusal, match="sealed with another secret"):
        migration.prepare(settings.OPTIONS, print)


@pytest.mark.parametrize("command", ["account list", "doctor", "user list", "token list", "changes a"])
def test_commands_leave_an_older_database_as_it_is(command):
    with unapplied("0002_entity_template"):
        with pytest.raises(Refusal) as refusal:
            call_command(*command.split())
        assert str(refusal.value) == OLDER
        assert database_version.is_older()


def test_commands_refuse_an_empty_database(monkeypatch):
    monkeypatch.setattr(database_version, "applied_migrations", frozenset)
    with pytest.raises(Refusal, match=r"The database is empty\. Start the server"):
        call_command("doctor")


def test_the_start_completes_tables_of_older_servers():
    table = tables.create(accounts.add("owner"), "People")
    execute(f"DROP FUNCTION entity_{table.pk}_change_set")
    migration.upgrade(settings.OPTIONS, print)
    assert table_relations.incomplete() == []


def test_no_upgrade_beside_servers_that_cannot_be_stopped(monkeypatch):
    monkeypatch.setattr(
        database_version, "applied_migrations", lambda: frozenset({("storage", "0001_initial")})
    )
    said = []
    with (
        psycopg.connect(settings.LANES_CONNINFO, application_name=LISTENER),
        pytest.raises(Refusal, match="Stop these servers first"),
    ):
        migration.upgrade(settings.OPTIONS, said.append)
    assert said == []


def test_squashed_migrations_are_recorded_where_those_that_they_replace_were_applied():
    """In a database of 0.4 or of a version between, no migration is applied again."""
    with unapplied(SQUASHED):
        assert database_version.is_older()
        said = []
        migration.upgrade(replace(settings.OPTIONS, database_url="postgresql://elsewhere"), said.append)
        assert "no backup of the database in DATABASE_URL is made" in said[0]
        assert not database_version.is_older()


def test_a_database_that_a_version_between_two_releases_left_halfway_is_refused():
    with unapplied(SQUASHED), unapplied("0030_throughput"), pytest.raises(Refusal, match="never released"):
        migration.upgrade(settings.OPTIONS, print)


def test_each_migration_of_a_former_version_has_one_that_replaces_it():
    """A migration replaced by a squashed one must be gone and must not be replaced twice."""
    loader = MigrationLoader(None)
    replaced = [
        pair for squashed in loader.disk_migrations.values() for pair in squashed.replaces if pair[0] in OURS
    ]
    assert len(replaced) == len(set(replaced))
    assert not set(replaced) & set(loader.disk_migrations)
    assert set(replaced) < database_version.known_migrations()


def test_a_migration_waits_in_pieces_for_a_lock_of_another_server(monkeypatch):
    monkeypatch.setattr(migration, "_LOCK_TIMEOUT", "10ms")
    monkeypatch.setattr(migration, "_LOCK_PAUSE", 0)
    call_command("migrate", "storage", BEFORE_LAST, verbosity=0)
    said = []
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute("SET idle_in_transaction_session_timeout = 0")
        other.execute("LOCK TABLE django_migrations IN SHARE MODE")

        def say(text):
            said.append(text)
            other.commit()

        migration._migrate(say)
    assert said == ["Another server uses what has to be changed. Trying again ..."]
    assert database_version.is_older() is False


def test_a_role_that_does_not_own_the_database():
    role = "powerless"
    execute(f"CREATE ROLE {role}; SET ROLE {role}")
    try:
        with unapplied_as_owner(LAST), pytest.raises(Refusal) as refusal:
            migration._migrate(print)
    finally:
        execute(f"RESET ROLE; DROP ROLE {role}")
    assert str(refusal.value).startswith(
        f"The role {role} may not create tables in the database test_tablero."
    )


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "standard_conforming_strings=off",
            "has standard_conforming_strings off, which changes what texts mean",
        ),
        ("datestyle=SQL,DMY", "has datestyle SQL, DMY, in which times are ambiguous"),
        ("intervalstyle=iso_8601", "has intervalstyle iso_8601, in which durations cannot be read"),
        ("array_nulls=off", "has array_nulls off, in which nulls are texts"),
        ("search_path=nowhere", "has search_path nowhere, in which there is no schema for tables"),
        ("search_path=pg_catalog,public", "has search_path pg_catalog,public, in which"),
    ],
)
def test_refuses_settings_of_the_role_that_it_cannot_work_with(monkeypatch, setting, sentence):
    conninfo = make_conninfo(settings.LANES_CONNINFO, options=f"-c {setting}")
    monkeypatch.setattr(settings, "LANES_CONNINFO", conninfo)
    name = setting.partition("=")[0]
    with pytest.raises(Refusal, match=f"{re.escape(sentence)}.*ALTER ROLE .* SET {name} "):
        migration.prepare(settings.OPTIONS, print)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_refuses_a_new_database_that_cannot_hold_every_text(monkeypatch, encoding):
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as owner:
        owner.execute(
            f"CREATE DATABASE narrow ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        try:
            conninfo = make_conninfo(settings.LANES_CONNINFO, dbname="narrow")
            monkeypatch.setattr(settings, "LANES_CONNINFO", conninfo)
            with pytest.raises(Refusal, match=f"The database narrow has the encoding {encoding}.*UTF8"):
                migration.prepare(settings.OPTIONS, print)
        finally:
            owner.execute("DROP DATABASE narrow WITH (FORCE)")


def test_no_time_limit_of_the_role_ends_an_upgrade(monkeypatch):
    limits = ["statement_timeout", "transaction_timeout"]
    call_command("migrate", "storage", BEFORE_LAST, verbosity=0)
    said = {}

    def migrate(*arguments, **options):
        said.update(fetch("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", limits))
        call_command(*arguments, **options)

    monkeypatch.setattr(migration, "call_command", migrate)
    for name in limits:
        execute(f"SET {name} = '1min'")
    try:
        migration._migrate(print)
    finally:
        for name in limits:
            execute(f"RESET {name}")
    assert said == dict.fromkeys(limits, "0")


def test_no_time_limit_of_the_role_ends_the_turn_of_a_server(monkeypatch):
    given = "-c idle_session_timeout=500 -c lock_timeout=200 -c statement_timeout=200"
    said = []

    def say(text):
        said.append(text)
        threading.Timer(0.4, holder.close).start()

    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [migration.LOCK])
        monkeypatch.setattr(settings, "LANES_CONNINFO", make_conninfo(settings.LANES_CONNINFO, options=given))
        with migration._alone(say):
            time.sleep(0.8)
    assert said == ["Waiting for another server, which prepares the same database ..."]


def test_a_database_that_cannot_be_reached_is_told_in_sentences(monkeypatch):
    monkeypatch.setattr(settings, "OPTIONS", replace(settings.OPTIONS, database_url="postgresql://nowhere"))
    with pytest.raises(Refusal, match=r"Connection refused\. Check that it runs, and DATABASE_URL\.$"):
        migration.refuse_transaction_pool("host=127.0.0.1 port=1")


def test_says_why_a_session_is_read_only(monkeypatch):
    conninfo = make_conninfo(
        settings.LANES_CONNINFO,
        options="-c default_transaction_read_only=on",
        target_session_attrs="read-write",
    )
    with pytest.raises(
        Refusal, match=r"session is read-only\. It is a standby, or default_transaction_read_only"
    ):
        migration.refuse_transaction_pool(conninfo)


def test_names_the_host_and_port_that_cannot_be_reached():
    expected = 'connection to server at "10.0.0.9", port 5432 failed: Connection refused'
    said = f"connection failed: {expected}\n\tIs the server running on that host?"
    assert migration._reason(psycopg.OperationalError(said)) == expected


def test_names_all_hosts_that_cannot_be_reached():
    said = "All failures were:\n- host: 'a', port: '1': timeout expired\n- host: 'b', port: '2': connection is bad"
    expected = (
        "All failures were: host: 'a', port: '1': timeout expired host: 'b', port: '2': connection is bad"
    )
    assert migration._reason(psycopg.OperationalError(said)) == expected
