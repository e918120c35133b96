"""Behind a pooler in transaction mode: what needs a session has one, and everything else needs none."""

import psycopg
import pytest
from django.conf import settings
from django.db import connections, transaction

from storage.accounts import accounts, removal
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.filters.parser import parse
from storage.domain.filters.query import TableQuery
from storage.domain.values.kinds import AccountKind
from storage.jobs import running as job_running
from storage.models import Account
from storage.runtime import periodic
from storage.server import database, migration, options
from storage.server.refusal import Refusal
from storage.sql import notify
from storage.sql.background import try_job_lock
from storage.sql.django import execute, fetch, in_session
from storage.sql.relations import relation_name
from storage.sql.restoring import Images
from storage.tables import tables
from storage.undo import reverting
from tests import pooler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def running(require, scratch, postgres):
    require("pgbouncer", "the pooler")
    with pooler.running(scratch / "pooler", scratch / "unit", "test_tablero") as found:
        yield found


@pytest.fixture(autouse=True)
def pooled(transactional_db, running):
    """Django's connections are those of a server with a pooler."""
    variables = {"DATABASE_URL": running.direct, "TABLERO_POOLER_URL": running.pooled}
    result = connections.configure_settings(database.databases(options.read(variables)))
    own = connections["default"]
    for alias in ("default", "session"):
        result[alias]["OPTIONS"]["pool"] = None  # each test has its own connections
        connections.settings[alias] = result[alias]
        connections[alias] = connections.create_connection(alias)
        connections[alias].alias = "default"  # the only one that Django allows in these tests
    yield
    for alias in ("default", "session"):
        connections[alias].close()
    connections["default"] = own
    connections.settings["default"] = own.settings_dict
    del connections["session"], connections.settings["session"]


@pytest.fixture
def direct(running):
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as found:
        yield found


def session():
    [(found,)] = fetch("SELECT pg_backend_pid()")
    return found


def test_each_transaction_runs_in_another_session():
    assert len({session() for _ in range(pooler.SERVER_CONNECTIONS)}) == pooler.SERVER_CONNECTIONS


def test_a_session_lasts_as_long_as_its_block():
    with in_session():
        execute("CREATE TEMPORARY TABLE lasting (number integer)")
        one = session()
        with in_session(), transaction.atomic():
            assert session() == one
            execute("INSERT INTO lasting VALUES (1)")
        assert fetch("SELECT number FROM lasting") == [(1,)]
        assert session() == one
    assert connections["session"].connection is None  # it is back in its pool
    assert session() != session()


def test_a_transaction_that_has_begun_goes_on_in_its_session():
    with transaction.atomic():
        one = session()
        with in_session():
            assert session() == one


def test_a_job_is_locked_until_it_ends(direct):
    def is_free():
        with try_job_lock("work") as is_locked:
            return is_locked

    with try_job_lock("work") as is_locked:
        assert is_locked
        Account.objects.count()
        held = direct.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s", [0x7461626C]
        )
        assert held.fetchone() == (1,)
    assert all(is_free() for _ in range(pooler.SERVER_CONNECTIONS + 1))
    assert periodic.run_exclusively("work", 60, lambda now: None)


def test_a_job_is_not_taken_over_until_it_ends(direct, monkeypatch):
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", 1)
    account = accounts.add("acme")
    for number in range(3):
        tables.create(account, f"table{number}")
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
    held, save = [], job_running._Runner._save
    monkeypatch.setattr(
        job_running._Runner,
        "_save",
        lambda self, step: (
            save(self, step),
            held.extend(direct.execute(locks, [job_running._LOCKS]).fetchone()),
        ),
    )
    removal.remove("acme", with_tables=True)
    assert held == [1, 1, 1]
    assert direct.execute(locks, [job_running._LOCKS]).fetchone() == (0,)


def test_changes_of_accounts_take_their_turns(direct):
    accounts.add("rotated")
    for which in (1, 2, 1):
        accounts.rotate("rotated", which)
        free = direct.execute("SELECT pg_try_advisory_lock(%s)", [notify._TURN]).fetchone()
        assert free == (True,)
        direct.execute("SELECT pg_advisory_unlock(%s)", [notify._TURN])


def test_images_are_applied_in_several_transactions():
    table = tables.create(accounts.add("acme"), "people")
    number = 2500  # more than a chunk
    images = Images(
        f"SELECT 'p', lpad(n::text, 4, '0'), NULL::bigint, '', '' FROM generate_series(1, {number}) AS n"
    )

    done = reverting.apply_images(table, images, by=Actor(ActorKind.USER, "ada"))

    assert done.inserted == number
    assert fetch(f"SELECT count(*) FROM {relation_name(table.pk)}") == [(number,)]


def test_lists_of_tables_are_read_in_pieces():
    account = accounts.add("acme")
    for n in range(3):
        tables.create(account, f"people{n}")

    table_filter = parse("TableName ne 'others'")
    names, following = tables.query(account, TableQuery(filter=table_filter, top=2, kind=AccountKind.STORAGE))

    assert (names, following) == (["people0", "people1"], "people2")


def test_settings_end_with_their_transaction():
    with transaction.atomic():
        execute("SET LOCAL statement_timeout = '1s'")
    assert {fetch("SHOW statement_timeout")[0][0] for _ in range(2 * pooler.SERVER_CONNECTIONS)} == {"0"}


def test_a_server_refuses_a_pooler_without_sessions(running):
    migration.refuse_transaction_pool(running.direct)
    with pytest.raises(Refusal, match="leads to a pooler in transaction mode"):
        migration.refuse_transaction_pool(running.pooled)
