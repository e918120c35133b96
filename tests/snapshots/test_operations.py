"""Snapshots: taken, kept beyond the history, and restored whole or in part."""

import threading
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.utils import timezone

from storage.access import policies
from storage.accounts import account_settings, accounts, removal, service_properties
from storage.branches import snapshot_restores
from storage.branches.snapshot_restores import RestoreRequest
from storage.domain.access.actor import SERVER
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.restoring import TableAction
from storage.domain.filters.query import EntityQuery
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, Metrics, ServiceProperties
from storage.domain.values.etag import ANY
from storage.history import retention
from storage.jobs import jobs, running
from storage.models import HistorySegment, SnapshotSchedule, Table
from storage.relations import snapshot_copies, table_relations
from storage.runtime import job_runner
from storage.snapshots import snapshots
from storage.snapshots.schedule import Schedule, SnapshotReason
from storage.snapshots.snapshots import SnapshotError, SnapshotExists, SnapshotLimitReached
from storage.sql import django as sql
from storage.sql import pages, restoring
from storage.sql.past import as_of
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.undo import undo
from storage.undo.outcome_jobs import outcome_of
from tests.branches.test_operations import LONG, ROWS, content, fill, text, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop():
    return accounts.add("shop")


def as_taken(snapshot, name):
    """Return the content of a table as of a snapshot."""
    result = snapshot.tables.select_related("snapshot").get(folded_name=name)
    statement = pages.page(relation_name(result.table_id), EntityQuery())
    page = sql.run(as_of(statement, snapshot_copies.past_of(result)))
    return {tuple(it.key): dict(read_stored(it).properties) for it in page.entities}


def counts(table):
    return table.inserted, table.changed, table.deleted


def break_data(table):
    write(
        table,
        Delete(EntityKey("se", "1"), ANY),
        Update(Entity(EntityKey("us", "2"), {"Name": text("Robert")}), ANY, merge=True),
        Upsert(Entity(EntityKey(*LONG), {}), merge=False),
        Insert(Entity(EntityKey("x", "new"), {})),
    )


def test_the_entities_of_a_few_tables_are_counted(shop, monkeypatch):
    monkeypatch.setattr(snapshots, "COUNTED_TABLES", 1)
    for name in ("a1a", "b1b"):
        relation = relation_name(fill(shop, name, ROWS).pk)
        # otherwise PostgreSQL adds unreported statistics to the result of ANALYZE
        sql.execute("SELECT pg_stat_force_next_flush()")
        sql.execute(f"ANALYZE {relation}")
    sql.execute(f"DELETE FROM {relation_name(fill(shop, 'a0a', ROWS).pk)}")

    taken = snapshots.take(shop, "many")

    assert dict(taken.tables.values_list("name", "entities")) == {
        "a0a": 0,
        "a1a": len(ROWS),
        "b1b": len(ROWS),
    }


def test_only_a_restore_of_a_whole_account_deletes_newer_tables(shop):
    fill(shop, "customers", ROWS)
    some, whole = snapshots.take(shop, "some", tables=["customers"]), snapshots.take(shop, "whole")
    tables.create(shop, "later")
    for snapshot, names in ((some, None), (whole, ["customers"])):
        request = RestoreRequest(tables=names, deletes_new=True)
        for run in (snapshot_restores.preview, snapshot_restores.restore):
            with pytest.raises(SnapshotError, match="newer"):
                run(snapshot, request)
    assert [it.name for it in snapshots.listed(shop)] == ["whole", "some"]
    running.complete(snapshot_restores.request_reset_to(some), by=SERVER)
    assert tables.find(shop, "later") is not None
    running.complete(snapshot_restores.request_reset_to(whole), by=SERVER)
    assert tables.find(shop, "later") is None


@pytest.mark.parametrize("copied", [False, True], ids=["in the history", "copied"])
def test_restores_what_has_changed(shop, copied):
    table = fill(shop, "Customers", ROWS)
    fill(shop, "quiet", {("a", "b"): {}})
    snapshot = snapshots.take(shop, "before")
    if copied:
        snapshot_copies.copy_outstanding(shop)
    break_data(table)
    broken = content(shop, "customers")

    request = RestoreRequest()
    plan = snapshot_restores.preview(snapshot, request)
    assert {it.name: counts(it) for it in plan.tables} == {"Customers": (1, 2, 1), "quiet": (0, 0, 0)}
    assert as_taken(snapshot, "customers") == ROWS
    restored = snapshot_restores.restore(snapshot, request)

    assert content(shop, "customers") == ROWS
    assert (restored.written, restored.skipped) == (4, 0)
    assert not snapshot_restores.preview(snapshot, request).changed_tables
    assert restored.before.name == "before-restore-before"
    undo.undo(restored.activity, by=accounts.SERVER)
    assert content(shop, "customers") == broken


def test_restores_some_entities_of_some_tables(shop):
    table, other = fill(shop, "customers", ROWS), fill(shop, "orders", ROWS)
    snapshot = snapshots.take(shop, "before")
    break_data(table)
    break_data(other)
    broken = content(shop, "orders")

    request = RestoreRequest(tables=["Customers"], keys=[EntityKey("se", "1"), EntityKey("no", "such")])
    assert snapshot_restores.preview(snapshot, request).written == 1
    snapshot_restores.restore(snapshot, request)
    assert content(shop, "customers") == {**broken, ("se", "1"): ROWS["se", "1"]}
    snapshot_restores.restore(snapshot, RestoreRequest(tables=["customers"]))
    assert (content(shop, "customers"), content(shop, "orders")) == (ROWS, broken)
    for wrong in (RestoreRequest(tables=["nowhere"]), RestoreRequest(keys=[EntityKey("a", "b")])):
        with pytest.raises(SnapshotError):
            snapshot_restores.preview(snapshot, wrong)


@pytest.mark.parametrize("fate", ["deleted", "dropped", "recreated"])
def test_restores_tables_that_are_gone(shop, fate):
    fill(shop, "customers", ROWS)
    reader = SignedIdentifier("reader", AccessPolicy("", "", "r"))
    policies.replace_by_name(shop, "customers", [reader])
    snapshot = snapshots.take(shop, "before")
    tables.delete(shop, "customers")
    tables.drop_expired_tables()
    if fate == "dropped":
        snapshot_copies.copy_outstanding(shop)
        Table.objects.update(kept_until=None)
        assert tables.drop_expired_tables() == 1
    if fate == "recreated":
        fill(shop, "customers", {("se", "1"): ROWS["se", "1"], ("other", "1"): {}})
    fill(shop, "later", ROWS)

    request = RestoreRequest(with_policies=True)
    plan = snapshot_restores.preview(snapshot, request)
    actions = {"deleted": TableAction.RESTORE, "dropped": TableAction.CREATE, "recreated": TableAction.KEEP}
    written = {"recreated": (2, 0, 1)}
    assert [(it.action, counts(it)) for it in plan.tables] == [(actions[fate], written.get(fate, (3, 0, 0)))]
    restored = snapshot_restores.restore(snapshot, request)

    assert content(shop, "customers") == ROWS
    assert policies.stored_by_name(shop, "customers") == [reader]
    assert content(shop, "later") == ROWS
    undo.undo(restored.activity, by=accounts.SERVER)
    assert (tables.find(shop, "customers") is None) == (fate != "recreated")


def test_restores_policies_and_settings_on_request(shop):
    fill(shop, "customers", ROWS)
    writer = SignedIdentifier("writer", AccessPolicy("", "", "raud"))
    policies.replace_by_name(shop, "customers", [writer])
    snapshot = snapshots.take(shop, "before")
    reader = SignedIdentifier("writer", AccessPolicy("", "", "r"))
    policies.replace_by_name(shop, "customers", [reader])
    changed = ServiceProperties(hour_metrics=Metrics(enabled=False))
    service_properties.replace(shop, lambda _: changed)

    plan = snapshot_restores.preview(snapshot, RestoreRequest())
    assert not (plan.changed_tables or plan.service_properties)
    everything = RestoreRequest(with_policies=True, with_settings=True)
    plan = snapshot_restores.preview(snapshot, everything)
    assert (plan.tables[0].policies, plan.service_properties) == (True, True)
    restored = snapshot_restores.restore(snapshot, everything)
    assert policies.stored_by_name(shop, "customers") == [writer]
    assert service_properties.get(shop) == DEFAULT_PROPERTIES
    undo.undo(restored.activity, by=accounts.SERVER)
    assert policies.stored_by_name(shop, "customers") == [reader]
    assert service_properties.get(shop) == changed


def test_copied_snapshots_survive_the_history(shop):
    table = fill(shop, "customers", ROWS)
    snapshot = snapshots.take(shop, "before")
    assert not snapshot.tables.get().is_copied
    account_settings.change(shop, history_days=0)
    assert snapshot.tables.get().is_copied
    # without history, a snapshot is copied when it is taken
    again = snapshots.take(shop, "again")
    write(table, Delete(EntityKey("se", "1"), ANY))

    for one in (snapshot, again):
        assert as_taken(one, "customers") == ROWS
        assert snapshots.listed(shop)[0].rows == 3
    snapshot_restores.restore(snapshot, RestoreRequest())
    assert content(shop, "customers") == ROWS
    ids = snapshot.pk, again.pk
    snapshots.delete(snapshot)
    removal.remove("shop", with_tables=True)
    kept = sql.fetch("SELECT relname FROM pg_class WHERE relkind = 'r'")
    assert not {f"snapshot_{pk}_{table.pk}" for pk in ids} & {name for (name,) in kept}


def test_names_and_expiry(shop):
    fill(shop, "customers", ROWS)
    snapshot = snapshots.take(shop, "one", tables=["CUSTOMERS"])
    for name, error in (("one", SnapshotExists), ("no spaces", SnapshotError), ("", SnapshotError)):
        with pytest.raises(error):
            snapshots.take(shop, name)
    with pytest.raises(SnapshotError, match="no table nowhere"):
        snapshots.take(shop, "two", tables=["nowhere"])
    assert all(snapshots.find(shop, name) is None for name in ("\0", "one\0", "no such", ""))
    other = snapshots.take(shop, "two")
    snapshots.rename(snapshot, "baseline")
    with pytest.raises(SnapshotExists):
        snapshots.rename(snapshot, "two")
    assert [(it.name, it.table_count) for it in snapshots.listed(shop)] == [("two", 1), ("baseline", 1)]

    now = timezone.now()
    snapshots.keep_until(snapshot, now + timedelta(days=1))
    snapshots.tidy(now + timedelta(days=2))
    assert snapshots.listed(shop) == [other]


def test_a_schedule_takes_and_drops_snapshots(shop):
    fill(shop, "customers", ROWS)
    snapshots.schedule(shop, Schedule(hour=3, keep=2))
    for _ in range(3):
        due = SnapshotSchedule.objects.get().next_at
        snapshots.tidy(due - timedelta(seconds=1))
        snapshots.tidy(due)
    assert SnapshotSchedule.objects.get().next_at == due + timedelta(days=1)
    kept = snapshots.listed(shop)
    assert len(kept) == 2 and {it.reason for it in kept} == {SnapshotReason.SCHEDULE}
    weekly = Schedule(hour=3, weekday=0)
    monday = weekly.next_after(due)
    assert (monday.weekday(), monday.hour, weekly.next_after(monday) - monday) == (0, 3, timedelta(days=7))
    snapshots.schedule(shop, None)
    assert not SnapshotSchedule.objects.exists()


def test_a_restore_leaves_newer_work_alone(shop, monkeypatch):
    """An entity that changes between the search for differences and their writing is skipped."""
    table = fill(shop, "customers", ROWS)
    snapshot = snapshots.take(shop, "before")
    break_data(table)
    newer = Upsert(Entity(EntityKey("us", "2"), {"Name": text("newer")}), merge=False)
    spans = restoring.spans

    def spans_while_others_write():
        write(table, newer)
        return spans()

    monkeypatch.setattr(restoring, "spans", spans_while_others_write)
    restored = snapshot_restores.restore(snapshot, RestoreRequest())

    assert (restored.written, restored.skipped) == (3, 1)
    assert content(shop, "customers") == {**ROWS, ("us", "2"): {"Name": text("newer")}}
    assert restored.activity.detail["skipped"] == [["customers", "us", "2"]]


def test_a_snapshot_is_copied_before_its_history_is_dropped(shop):
    table = fill(shop, "customers", ROWS)
    snapshot = snapshots.take(shop, "before")
    break_data(table)
    now = timezone.now()
    for days in (2, 20):
        retention.tidy(now + timedelta(days=days))

    assert not HistorySegment.objects.filter(account=shop, dropped_at=None, ended_at__lt=now).exists()
    assert snapshot.tables.get().is_copied
    snapshot_restores.restore(snapshot, RestoreRequest())
    assert content(shop, "customers") == ROWS


# limits


def test_as_many_as_an_account_may_have(shop, settings):
    settings.QUOTAS = {**settings.QUOTAS, "snapshot": 2}
    for name in ("one", "two"):
        snapshots.take(shop, name)
    with pytest.raises(
        SnapshotLimitReached, match=r"shop has 2 snapshots, and may have 2\. Delete one first"
    ):
        snapshots.take(shop, "three")
    snapshots.take_automatic(shop, "daily", SnapshotReason.SCHEDULE)
    snapshots.delete(snapshots.get(shop, "one"))
    snapshots.take(shop, "three")


def test_as_much_as_copied_snapshots_may_take(shop, settings):
    fill(shop, "customers", ROWS)
    settings.SNAPSHOT_BYTES = 1
    snapshots.take(shop, "in-the-history")
    account_settings.change(shop, history_days=0)
    with pytest.raises(SnapshotLimitReached, match="may take 0 MiB"):
        snapshots.take(shop, "copied")
    settings.SNAPSHOT_BYTES = None
    snapshots.take(shop, "copied")


def test_automatic_snapshots_make_room_for_later_ones(shop, monkeypatch):
    monkeypatch.setattr(snapshots, "AUTOMATIC_LIMIT", 2)
    snapshots.take(shop, "mine")
    for number in range(3):
        snapshots.take_automatic(shop, f"before-{number}", SnapshotReason.RESTORE)
    assert [it.name for it in snapshots.listed(shop)] == ["before-2", "before-1", "mine"]


def test_snapshots_at_once_do_not_pass_the_limit(shop, settings, in_threads):
    settings.QUOTAS = {**settings.QUOTAS, "snapshot": 1}

    def take(name):
        with suppress(SnapshotLimitReached):
            snapshots.take(shop, name)

    with transaction.atomic():
        sql.execute("LOCK TABLE storage_snapshot IN EXCLUSIVE MODE")
        taking = in_threads(take, "one", "two")  # both have found room
    for thread in taking:
        thread.join()
    assert len(snapshots.listed(shop)) == 1


@pytest.mark.parametrize("days", [0, 7])
def test_a_table_that_is_deleted_meanwhile_is_left_out(shop, in_threads, days):
    fill(shop, "customers", ROWS)
    orders = fill(shop, "orders", ROWS)
    account_settings.change(shop, history_days=days)
    with transaction.atomic():
        table_relations.soft_delete(orders)
        Table.objects.filter(pk=orders.pk).update(deleted_at=timezone.now())
        [taking] = in_threads(lambda name: snapshots.take(shop, name), "one")
    taking.join()
    assert [it.name for it in snapshots.get(shop, "one").tables.all()] == ["customers"]


@pytest.fixture
def in_threads():
    """Return `in_threads(operation, *arguments)`, which starts a thread for each argument and waits until all wait
    for a lock.
    """

    def start(operation, *arguments):
        def run(argument):
            try:
                operation(argument)
            finally:
                connection.close()

        threads = [threading.Thread(target=run, args=[argument]) for argument in arguments]
        for thread in threads:
            thread.start()
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        with psycopg.connect(django_settings.LANES_CONNINFO, autocommit=True) as watcher:
            while watcher.execute(query).fetchone()[0] < len(threads):
                assert all(thread.is_alive() for thread in threads)
        return threads

    return start


def test_another_process_goes_on_with_a_restore(shop):
    table = fill(shop, "customers", ROWS)
    sql.execute(
        f"INSERT INTO {relation_name(table.pk)}"
        " SELECT 'm', i::text, 1, '{}', '', '' FROM generate_series(1, 1500) AS i"
    )
    snapshot = snapshots.take(shop, "before")
    snapshot_copies.copy_outstanding(shop)
    sql.execute(f"DELETE FROM {relation_name(table.pk)}")
    job = jobs.start_requested(snapshot_restores.request(snapshot, RestoreRequest()), by=accounts.SERVER)
    chunks = iter([False, True])  # after the first transaction, and after the first chunk
    assert running.run(job.pk, job_runner.KINDS, lambda _: next(chunks))
    write(table, Insert(Entity(EntityKey("us", "2"), {"Name": text("Zoe")})))

    restored = outcome_of(job_runner.finish(job))

    assert (restored.written, restored.skipped) == (1500 + len(ROWS) - 1, 1)
    [(values,)] = sql.fetch(f"SELECT vals FROM {relation_name(table.pk)} WHERE pk = 'us'")
    assert "Zoe" in values
    assert snapshots.find(shop, "before-restore-before-2") is None
    assert jobs.get(job.pk).counts == {"inserted": restored.written, "skipped": 1}
