"""Indexes that the server adds because queries scan, and drops when no query uses them."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Sort
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.models import Account, Activity, PropertyIndex, PropertyScans, Table
from storage.runtime import job_runner, observer
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import indexes as statements
from storage.sql.background import estimated_rows
from storage.sql.django import execute
from storage.sql.relations import INDEXING, relation_name
from storage.tables import adaptive_indexes, indexes, tables
from storage.tables import index_rules as policy
from storage.tables.adaptive_indexes import ScanCosts, SlowQuery
from storage.tables.indexes import IndexExists
from storage.tables.subject import TableVerb
from storage.undo.undo import undo

# indexes are made outside of transactions
pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
# far enough from the real one that only what is handed in counts
NOW = datetime.now(UTC) + timedelta(days=400)
DAY = timedelta(days=1)
FILL = """
INSERT INTO {relation} (pk, rk, ts, props, anns, vals)
SELECT 'p', 'r' || lpad(n::text, 6, '0'), 0, jsonb_build_object('Score', n, 'Name', 's' || n), '',
    E'\\n,"Score":' || n || E'\\n,"Name":"' || repeat('x', 200) || '"'
FROM generate_series(1, {rows}) AS n
"""


@pytest.fixture
def account():
    return accounts.add("acme", NewAccount(kind=AccountKind.COSMOS))


@pytest.fixture
def large(account):
    table = fill(tables.create(account, "Large"), 2 * policy.INDEXED_FROM)
    execute(f"ANALYZE {relation_name(table.pk)}")
    return table


def fill(table, rows):
    execute(FILL.format(relation=relation_name(table.pk), rows=rows))
    return table


def scan(table, *names, scans=policy.SCANS_NEEDED, seconds=2.0, at=NOW):
    """Record so many scans, which took so long together."""
    costs = ScanCosts()
    query = EntityQuery(filter=parse("Score gt 9990"))
    costs.add_scans(at.date(), SlowQuery(table.pk, frozenset(names), 1.0, query), scans, seconds)
    costs.write()


def adapt(at=NOW):
    """Decide, and do it; the names of the properties that have an index then."""
    adaptive_indexes.adapt(at)
    job_runner.run_all()
    return set(PropertyIndex.objects.values_list("name", flat=True))


def test_processes_count_and_an_index_is_added_when_it_is_worth_it(account, large):
    scan(large, "Score", scans=policy.SCANS_NEEDED // 2, at=NOW - DAY)
    assert adapt() == set()
    scan(large, "Score", scans=policy.SCANS_NEEDED // 2)
    assert adapt() == {"Score"}

    done = Activity.objects.get(verb=TableVerb.INDEX_ADD)
    assert (done.actor_kind, done.detail) == ("server", {"property": "Score", "origin": "adaptive"})
    assert not PropertyScans.objects.exists()
    reason = PropertyIndex.objects.get().reason
    assert reason == {"filter": "Score gt …", "scans": policy.SCANS_NEEDED, "seconds": 4.0}


def test_unhelpful_indexes_are_not_added(large):
    for change in [{"scans": policy.SCANS_NEEDED - 1}, {"at": NOW - policy.SCAN_PERIOD}]:
        scan(large, "Score", **change)
        assert adapt() == set(), change


def test_only_where_it_is_wanted_and_possible(account, large):
    small = tables.create(account, "Small")
    scan(small, "Score")
    scan(large, "not a name", "a" * 300, "a\0b")
    assert adapt() == set()
    scan(large, "Score")
    for fields in ({"adaptive_indexes": False}, {"adaptive_indexes": True, "read_only": True}):
        account_settings.change(accounts.by_name("acme"), **fields)
        assert adapt() == set()
    account_settings.change(accounts.by_name("acme"), read_only=False)
    assert adapt() == {"Score"}


def test_one_after_the_other_within_the_budget(large, monkeypatch):
    scan(large, "Name", "Score", seconds=3)
    scan(large, "Score")
    assert adapt() == {"Score"}
    PropertyIndex.objects.update(created_at=NOW)
    scan(large, "Name")
    with monkeypatch.context() as patch:
        patch.setattr(policy, "ADAPTIVE_LIMIT", 1)
        assert adapt() == {"Score"}
    with monkeypatch.context() as patch:
        patch.setattr(policy, "EAGER_LIMIT", 1)
        assert adapt() == {"Score"}
    with monkeypatch.context() as patch:
        patch.setattr(policy, "ACCOUNT_LIMIT", 1)
        assert adapt() == {"Score"}
    with monkeypatch.context() as patch:
        patch.setattr(policy, "DISK_SHARE", 0.0)
        assert adapt() == {"Score"}
    assert adapt() == {"Score", "Name"}


def test_one_that_has_become_too_large_is_given_up(large, monkeypatch):
    scan(large, "Score")
    adaptive_indexes.adapt(NOW)
    monkeypatch.setattr(indexes, "DISK_SHARE", 0.0)
    assert adapt() == {"Score"}
    assert PropertyIndex.objects.get().state == "failed"
    assert statements.stored(large.pk, [PropertyIndex.objects.get().pk]) == {}
    scan(large, "Score")
    adapt()
    assert PropertyIndex.objects.get().state == "failed"


def test_requested_indexes_come_first_and_adaptive_ones_singly(account, large):
    scan(large, "Score")
    adaptive_indexes.adapt(NOW)
    small = tables.create(account, "Small")
    indexes.add(small, "Name", by=ADA)
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, 0)", (INDEXING,))
        job_runner.run_all()
        assert dict(PropertyIndex.objects.values_list("name", "state")) == {
            "Score": "building",
            "Name": "ready",
        }
        other.execute("SELECT pg_advisory_unlock(%s, 0)", (INDEXING,))
    job_runner.run_all()
    assert set(PropertyIndex.objects.values_list("state", flat=True)) == {"ready"}


def test_a_table_that_is_deleted_when_its_index_is_decided_on_stops_no_other(account, large):
    scan(large, "Score")
    gone = tables.create(account, "Gone")
    scan(gone, "Score", seconds=10)
    fill(gone, 2 * policy.INDEXED_FROM)
    tables.delete(account, "Gone", keep=tables.DELETED_TABLE_RETENTION)
    assert adapt() == {"Score"}


def test_a_process_that_has_counted_scans_decides_at_once(large, monkeypatch):
    adaptive_indexes.add_for_new_scans(NOW)
    monkeypatch.setattr(entities, "COSTLY_SCAN", 0.0)
    for _ in range(policy.SCANS_NEEDED):
        assert not PropertyIndex.objects.exists()
        entities.page(large, EntityQuery(filter=parse("Score gt 9990")))
        adaptive_indexes.add_for_new_scans(datetime.now(UTC))
    assert PropertyIndex.objects.get().reason["filter"] == "Score gt …"


def test_a_table_gets_one_although_the_statistics_do_not_know_its_rows_yet(account, monkeypatch):
    monkeypatch.setattr(entities, "COSTLY_SCAN", 0.0)
    execute("SET track_counts = off")
    loaded = fill(tables.create(account, "Loaded"), policy.INDEXED_FROM)
    small = fill(tables.create(account, "Small"), policy.INDEXED_FROM - 1)
    execute("RESET track_counts")
    assert estimated_rows(loaded.pk) == 1

    for table in (small, loaded):
        for _ in range(policy.SCANS_NEEDED):
            entities.page(table, EntityQuery(filter=parse("Score gt 1")))
    assert set(PropertyScans.objects.values_list("table", flat=True)) == {loaded.pk}
    scan(small, "Name")
    adapt(datetime.now(UTC))
    assert list(PropertyIndex.objects.values_list("table", "state")) == [(loaded.pk, "ready")]


def test_an_index_that_is_not_used_for_weeks_is_dropped(large):
    scan(large, "Score")
    adapt()
    indexes.add(large, "Name")
    job_runner.run_all()
    PropertyIndex.objects.update(created_at=NOW)
    assert adapt(NOW + policy.UNUSED_PERIOD) == {"Name", "Score"}

    entity_query = EntityQuery(filter=parse("Score gt 9990"), top=5)
    assert len(entities.page(large, entity_query).entities) == 5
    execute("SELECT pg_stat_force_next_flush()")
    adapt(NOW + policy.UNUSED_PERIOD)
    assert PropertyIndex.objects.get(name="Score").last_used_at == NOW + policy.UNUSED_PERIOD
    assert adapt(NOW + 2 * policy.UNUSED_PERIOD) == {"Name", "Score"}
    assert adapt(NOW + 2 * policy.UNUSED_PERIOD + DAY) == {"Name"}
    assert Activity.objects.get(verb=TableVerb.INDEX_DROP).actor_kind == "server"


def test_a_manually_dropped_index_is_not_added_again(large):
    scan(large, "Score")
    adapt()
    dropped = indexes.drop(large, "Score", by=ADA)
    job_runner.run_all()
    scan(large, "Score")
    assert adapt() == set()

    again = undo(dropped, ADA)
    assert adapt() == {"Score"}
    undo(again, ADA)
    assert adapt() == set()
    indexes.add(large, "Score", by=ADA)
    indexes.drop(large, "Score")
    job_runner.run_all()
    assert adapt() == {"Score"}


def test_a_manually_kept_index_is_not_dropped(large):
    scan(large, "Score")
    adapt()
    PropertyIndex.objects.update(created_at=NOW)
    kept = indexes.add(large, "Score", by=ADA)
    assert (kept.verb, PropertyIndex.objects.get().origin) == (TableVerb.INDEX_KEEP, "hand")
    assert adapt(NOW + 2 * policy.UNUSED_PERIOD) == {"Score"}
    with pytest.raises(IndexExists):
        indexes.add(large, "Score", by=ADA)

    PropertyIndex.objects.update(created_at=kept.at)
    released = undo(kept, ADA)
    assert PropertyIndex.objects.get().origin == "adaptive"
    undo(released, ADA)
    assert PropertyIndex.objects.get().origin == "hand"
    undo(Activity.objects.latest("pk"), ADA)
    adapt(NOW + 2 * policy.UNUSED_PERIOD)
    assert not PropertyIndex.objects.exists()


def test_old_scans_are_forgotten(large):
    scan(large, "Score", at=NOW - policy.SCAN_PERIOD)
    scan(large, "Score")
    adaptive_indexes.tidy(NOW)
    assert PropertyScans.objects.get().day == NOW.date()


async def test_a_server_counts_costly_queries_that_an_index_would_spare(account, large, monkeypatch):
    """Queries that are slow only because the machine is busy are counted too, but not as scans."""
    monkeypatch.setattr(observer, "COSTLY_SCAN", 0.0)
    asked = Service(settings.LANES_CONNINFO)
    await asked.open()
    try:
        known = await asked.account("acme")
        for text in (
            "Score gt 9990",
            "Score gt 9990 or Name eq 's5'",
            "Name eq 's5'",
            "PartitionKey eq 'q'",
            "PartitionKey eq 'p' and RowKey lt 'r000100' and Name gt 'a'",
        ):
            await asked.query(known, "Large", EntityQuery(filter=parse(text)))
        with pytest.raises(StorageError):
            await asked.query(known, "nothing", EntityQuery(filter=parse("Score gt 9990")))
        await asked.observer.flush()
        [counted] = await in_thread(lambda: list(PropertyScans.objects.all()))
        assert (counted.table_id, counted.name, counted.scans) == (large.pk, "Score", 2)
    finally:
        await asyncio.gather(asked.close())


def test_the_console_counts_them_too_and_orders_that_read_everything(large, monkeypatch):
    monkeypatch.setattr(entities, "COSTLY_SCAN", 0.0)
    entities.page(large, EntityQuery(filter=parse("Score gt 9990")))
    entities.sorted_preview_page(large, EntityQuery(), Sort("Name"))
    entities.sorted_preview_page(large, EntityQuery(), Sort("RowKey"))

    assert dict(PropertyScans.objects.values_list("name", "scans")) == {"Score": 1, "Name": 1}


@pytest.mark.long
def test_an_upgrade_turns_them_on_where_no_person_had_chosen():
    def migrate(*targets):
        MigrationExecutor(connection).migrate(targets)

    for name in ("never", "chosen"):
        accounts.add(name)
    account_settings.change(accounts.by_name("chosen"), adaptive_indexes=False, by=ADA)
    table = tables.create(accounts.by_name("never"), "People")
    indexes.add(table, "Score")
    indexes.drop(table, "Score", by=ADA)
    try:
        migrate(("storage", "0040_stored_changes"))
        execute("UPDATE storage_account SET adaptive_indexes = false")
    finally:
        migrate(*MigrationExecutor(connection).loader.graph.leaf_nodes())

    chosen = dict(Account.objects.values_list("name", "adaptive_indexes"))
    assert chosen == {"never": True, "chosen": False}
    assert Table.objects.get().declined_indexes == ["Score"]
