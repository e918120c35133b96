"""Retention of changes: segments that end and are dropped, and accounts that record nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.conf import settings
from django.db import transaction

from storage.accounts import account_settings, accounts, refusals, removal
from storage.core.account_settings import LEAST_HISTORY
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.history import retention
from storage.models import HistorySegment
from storage.relations import history
from storage.runtime import catalog
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql.django import execute, fetch
from storage.tables import tables

ADA = Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "7f3a19c0-0000-4000-8000-000000000001")
KEY = EntityKey("p", "r")


@pytest.fixture
def account(transactional_db, monkeypatch):
    monkeypatch.setattr(
        retention, "_PATIENCE", "60s"
    )  # autovacuum may be looking at rows that the test wrote
    account = accounts.add("acme")
    yield account
    if type(account).objects.filter(pk=account.pk).exists():
        removal.remove("acme", with_tables=True)


@pytest.fixture
def people(account):
    return tables.create(account, "People")


def write(table, number=1):
    entity = Entity(KEY, {"A": EdmValue(Edm.INT32, number)})
    return edits.apply(table, [Upsert(entity, merge=False)], by=ADA)


def segments(account):
    """Return the numbers of existing relations, after checking them against the catalog."""
    names = fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE %s", f"history_{account.pk}\\_%"
    )
    there = sorted(int(name.rpartition("_")[2]) for (name,) in names)
    known = HistorySegment.objects.filter(account=account, dropped_at=None).order_by("number")
    assert there == [segment.number for segment in known]
    return there


def recorded(account, number):
    return fetch(f"SELECT op::text, vals FROM history_{account.pk}_{number} ORDER BY seq")


def later(days):
    return datetime.now(UTC) + timedelta(days=days)


def test_edits_are_recorded_as_whose_they_are(account, people):
    write(people)
    write(people, 2)
    edits.apply(people, [Delete(KEY, ANY)], by=ADA)

    assert recorded(account, 1) == [("i", None), ("u", '\n,"A":1'), ("d", '\n,"A":2')]
    who = "SELECT DISTINCT a.kind, a.name, a.address, a.agent, h.request::text"
    assert fetch(
        f"{who} FROM history_{account.pk}_1 AS h JOIN storage_historyactor AS a ON a.id = h.actor"
    ) == [("user", "ada", "10.0.0.1", "Firefox", ADA.request_id)]


def test_a_segment_ends_after_an_eighth_of_the_time_and_goes_after_all_of_it(account, people):
    assert segments(account) == [1, 2]
    retention.tidy(later(2))  # an empty one goes on
    assert segments(account) == [1, 2]

    write(people)
    retention.tidy(later(0.5))
    assert segments(account) == [1, 2]
    retention.tidy(later(0.9))
    assert segments(account) == [1, 2, 3]
    write(people, 2)
    assert [len(recorded(account, number)) for number in (1, 2, 3)] == [1, 1, 0]

    retention.tidy(later(6.9))
    assert segments(account) == [1, 2, 3, 4]
    retention.tidy(later(7.1))
    assert segments(account) == [3, 4]
    dropped = HistorySegment.objects.get(account=account, number=2)
    assert dropped.dropped_at is not None
    [(xid,)] = fetch("SELECT pg_current_xact_id()::text::bigint")
    assert 0 < dropped.last_xid < xid
    write(people, 3)
    assert recorded(account, 3) == [("u", '\n,"A":2')]


def test_share_of_the_disk_before_the_data_folder_exists(settings, tmp_path):
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path)
    share = retention.share_of_disk()
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path / "not" / "yet")
    assert retention.share_of_disk() == share > 0


def test_too_much_goes_before_its_time(account, people, monkeypatch):
    monkeypatch.setattr(retention, "_part", lambda _: 1)
    for number in range(4):
        write(people, number)
        retention.tidy(later(0))
    retention.tidy(later(0))
    assert segments(account) == [5, 6]
    monkeypatch.undo()

    assert retention.limit(account) >= LEAST_HISTORY
    account_settings.change(account, history_bytes=64 << 20)
    assert retention.limit(account) == 64 << 20


def test_ended_segments_are_packed_and_read_the_same(account, people, monkeypatch):
    monkeypatch.setattr(retention, "_WORTH_PACKING", 0)
    for version in range(3):
        changes = [
            Upsert(Entity(EntityKey("p", str(number)), {"A": EdmValue(Edm.INT64, version)}), merge=False)
            for number in range(50)
        ]
        edits.apply(people, changes, by=ADA)
    edits.apply(people, [Delete(EntityKey("p", "7"), ANY)], by=ADA)
    everything = f"SELECT *, op::text, xid::text FROM history_{account.pk}_1 ORDER BY seq"
    before = fetch(everything)
    assert len(before) == 151

    retention.tidy(later(0.9))
    retention.tidy(later(0.9))
    assert HistorySegment.objects.get(account=account, number=1).packed
    assert fetch(everything) == before
    gone = "WHERE tbl = %s AND pk = 'p' AND op = 'd' AND octet_length(pk) + octet_length(rk) <= 2600"
    with transaction.atomic():
        execute("SET LOCAL enable_seqscan = off")
        plan = fetch(f"EXPLAIN SELECT vals FROM history_{account.pk}_1 {gone}", people.pk)
    assert any("_1_gone" in line for (line,) in plan)

    size = retention.kept(account).size
    retention.tidy(later(8))
    assert retention.kept(account).size < size
    assert fetch("SELECT relname FROM pg_class WHERE relname LIKE %s", f"history_{account.pk}\\_1%") == []


def test_turned_off_and_on_again_history_starts_over(account, people):
    write(people)
    account_settings.change(account, history_days=0)
    assert not catalog._account("acme").records
    assert retention.kept(account) == retention.Kept(None, 0)
    write(people, 2)
    retention.tidy(later(0))
    assert segments(account) == []

    account_settings.change(account, history_days=3)
    assert catalog._account("acme").records
    write(people, 3)
    assert segments(account) == [3, 4]
    assert recorded(account, 3) == [("u", '\n,"A":2')]
    assert retention.kept(account).size > 0


def test_invalid_retention_periods_are_refused(account):
    for fields in ({"history_days": 367}, {"history_days": -1}, {"history_bytes": 1}):
        with pytest.raises(refusals.AccountError):
            account_settings.change(account, **fields)


def test_nothing_remains_of_the_history_of_a_removed_account(account, people):
    write(people)
    removal.remove("acme", with_tables=True)
    assert fetch("SELECT relname FROM pg_class WHERE relname LIKE %s", f"history_{account.pk}%") == []


def test_an_account_of_an_older_server_gets_its_history(account, people):
    history.remove(account)
    HistorySegment.objects.filter(account=account).delete()
    assert history.recorder(account, ADA) is None
    write(people)

    retention.tidy(later(0))
    write(people, 2)
    assert recorded(account, 1) == [("u", '\n,"A":1')]


def test_it_does_not_wait_for_a_long_write_and_goes_on_later(account, people, monkeypatch):
    write(people)
    with psycopg.connect(settings.LANES_CONNINFO) as writing, monkeypatch.context() as patch:
        patch.setattr(retention, "_PATIENCE", "40ms")
        writing.execute(f"LOCK TABLE history_{account.pk} IN ROW EXCLUSIVE MODE")
        retention.tidy(later(0.9))
        assert segments(account) == [1, 2]
        writing.rollback()
    retention.tidy(later(0.9))
    assert segments(account) == [1, 2, 3]


async def test_requests_are_recorded_also_across_segments(account, people):
    service = Service(settings.LANES_CONNINFO)
    await service.open()
    try:
        known = await service.account("acme")
        by = Actor(ActorKind.KEY, "key1", "10.0.0.2", "azsdk", "7f3a19c0-0000-4000-8000-000000000002")
        await service.change(known, "people", Insert(Entity(KEY, {"A": EdmValue(Edm.INT32, 1)})), by=by)
        await in_thread(retention.tidy, later(0.9))
        await service.apply(known, "people", [Delete(KEY, ANY)], by=by)
    finally:
        await service.close()
    assert await in_thread(recorded, account, 1) == [("i", None)]
    assert await in_thread(recorded, account, 2) == [("d", '\n,"A":1')]
