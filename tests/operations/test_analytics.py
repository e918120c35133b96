"""The metrics tables of an account: found, written, dropped."""

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.access.grants import Operation
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey, read_members
from storage.domain.errors import (
    ResourceNotFound,
)
from storage.domain.filters.query import EntityQuery
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.requests.observed import Authentication
from storage.domain.service.service_properties import Metrics, ServiceProperties
from storage.models import Account, Table
from storage.operations.accounts import accounts, removal
from storage.operations.counting.metrics import HOUR, MINUTE, Counts
from storage.operations.tables import tables
from storage.operations.tables.analytics import Writer
from storage.sql import batch, pages
from storage.sql.django import execute, run
from storage.sql.relations import relation_name

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
HOURS = "$metricshourprimarytransactionstable"
MINUTES = "$metricsminuteprimarytransactionstable"
EVERYTHING = Metrics(enabled=True, include_apis=True, retention=7)
KEY = EntityKey("p", "r")


@pytest.fixture
def account(db):
    """Its hours are measured, as those of every new account."""
    return accounts.add("measured")


def measure(account, **properties):
    stored = asdict(ServiceProperties(**properties))
    Account.objects.filter(pk=account.pk).update(service_properties=stored)


def happened(account, minute, requests=1, process="one", secondary=False, operation=Operation.QUERY_ENTITY):
    counts = Counts(process)
    kind = RequestKind(account.pk, secondary, operation, Authentication.KEY, 200, "")
    counts.add(minute, {kind: Tally(requests)})
    counts.write()


def rows(account, name=HOURS, column="TotalRequests"):
    """The keys of the entities of a table, with their number of requests."""
    table = Table.objects.filter(account=account, folded_name=name).first()
    if table is None:
        return None
    page = run(pages.page(relation_name(table.pk), EntityQuery()))
    return {read_keys(entity): int(read(entity)[column]) for entity in page.entities}


def read(entity):
    return read_members(entity)


def read_keys(entity):
    keys = json.loads(entity.keys.strip(b"\n,{}").join((b"{", b"}")))
    return keys["PartitionKey"], keys["RowKey"]


# finding


def test_what_was_measured_is_there_as_long_as_there_is_something(account):
    table = tables.get(account, HOURS)
    run(batch.apply(relation_name(table.pk), [Insert(Entity(KEY, {}))]))
    measure(account, hour_metrics=Metrics())

    assert tables.get(account, HOURS) == table
    execute(f"DELETE FROM {relation_name(table.pk)}")
    with pytest.raises(ResourceNotFound):
        tables.get(account, HOURS)


def test_an_account_with_nothing_else_can_be_removed(account):
    happened(account, NOON)
    Writer().write(NOON + MINUTE)
    assert rows(account)

    removal.remove("measured")

    assert not Table.objects.exists()


# hours


def test_writes_the_hour_while_it_lasts(account):
    writer = Writer()
    happened(account, NOON, 3)
    writer.write(NOON + MINUTE)
    assert rows(account) == {
        ("20261121T1200", "user;All"): 3,
        ("20261121T1200", "user;QueryEntity"): 3,
    }

    happened(account, NOON + MINUTE, 4, "two", operation=Operation.CREATE_TABLE)
    writer.write(NOON + 2 * MINUTE)

    assert rows(account) == {
        ("20261121T1200", "user;All"): 7,
        ("20261121T1200", "user;CreateTable"): 4,
        ("20261121T1200", "user;QueryEntity"): 3,
    }


@pytest.mark.parametrize("is_another", [False, True], ids=["the same process", "another process"])
def test_writes_what_comes_just_after_the_hour(account, is_another):
    writer = Writer()
    happened(account, NOON)
    writer.write(NOON + HOUR - SECOND)
    happened(account, NOON + 59 * MINUTE)
    (Writer() if is_another else writer).write(NOON + HOUR + SECOND)

    assert rows(account)["20261121T1200", "user;All"] == 2


def test_writes_what_each_account_wants(account):
    totals, nothing = accounts.add("totals"), accounts.add("nothing")
    measure(totals, hour_metrics=Metrics(enabled=True))
    measure(nothing, hour_metrics=Metrics())
    for number, who in enumerate((account, totals, nothing), start=1):
        happened(who, NOON, number)
    happened(account, NOON, 5, secondary=True)

    Writer().write(NOON + MINUTE)

    every = ("20261121T1200", "user;All")
    assert rows(account) == {every: 1, ("20261121T1200", "user;QueryEntity"): 1}
    assert rows(account, "$metricshoursecondarytransactionstable")[every] == 5
    assert rows(totals) == {every: 2}
    assert not Table.objects.filter(account=nothing).exists()

    Writer().write(NOON + 400 * DAY)

    assert every in rows(totals)
    assert every not in rows(account)


def test_an_hour_without_requests_is_a_row_of_zeros_once_it_is_over(account):
    writer = Writer()
    writer.write(NOON)
    assert rows(account) is None
    assert tables.get(account, HOURS)

    for minutes in (1, 2, 61, 62, 70):
        writer.write(NOON + minutes * MINUTE)

    assert rows(account) == {("20261121T1200", "user;All"): 0}
    assert not rows(account, "$metricshoursecondarytransactionstable")


def test_an_account_that_nobody_uses_has_no_metrics_and_costs_no_statement(
    account, django_assert_max_num_queries
):
    writer = Writer()
    tables.create(account, "people")
    for name in ("second", "third"):
        accounts.add(name)

    with django_assert_max_num_queries(4):
        writer.write(NOON)
    with django_assert_max_num_queries(4):
        writer.write(NOON + 3 * HOUR)

    assert [table.name for table in Table.objects.all()] == ["people"]


def test_a_row_that_a_client_deleted_does_not_come_back(account):
    writer = Writer()
    happened(account, NOON)
    writer.write(NOON + MINUTE)
    execute(f"DELETE FROM {relation_name(tables.get(account, HOURS).pk)}")

    writer.write(NOON + 2 * MINUTE)

    assert rows(account) == {}


# minutes


def test_writes_a_minute_when_it_is_over(account):
    measure(account, minute_metrics=EVERYTHING)
    writer = Writer()
    writer.write(NOON)
    happened(account, NOON, 3)
    writer.write(NOON + MINUTE + 9 * SECOND)
    assert rows(account, MINUTES) is None or ("20261121T1200", "user;All") not in rows(account, MINUTES)

    writer.write(NOON + MINUTE + 10 * SECOND)
    happened(account, NOON + MINUTE, 4)
    writer.write(NOON + 3 * MINUTE + 10 * SECOND)

    written = rows(account, MINUTES)
    assert {key: number for key, number in written.items() if key[0] >= "20261121T1200"} == {
        ("20261121T1200", "user;All"): 3,
        ("20261121T1200", "user;QueryEntity"): 3,
        ("20261121T1201", "user;All"): 4,
        ("20261121T1201", "user;QueryEntity"): 4,
        ("20261121T1202", "user;All"): 0,
    }


def test_minutes_while_no_server_was_there_are_left_out(account):
    measure(account, minute_metrics=Metrics(enabled=True))
    Writer().write(NOON)
    happened(account, NOON, 3)

    Writer().write(NOON + 5 * HOUR)

    written = rows(account, MINUTES)
    assert written["20261121T1200", "user;All"] == 3
    assert len(written) == 61


# capacity and retention


def test_writes_the_capacity_of_the_day(account):
    people = tables.create(account, "people")
    run(batch.apply(relation_name(people.pk), [Insert(Entity(KEY, {}))]))
    execute(f"ANALYZE {relation_name(people.pk)}")
    name = "$metricscapacitytable"
    tables.get(account, name)

    Writer().write(NOON)

    assert rows(account, name, "ObjectCount")["20261121T0000", "data"] == 1
    assert rows(account, name, "ContainerCount")["20261121T0000", "data"] == 1
    assert rows(account, name, "Capacity")["20261121T0000", "data"] >= 8192
    assert ("20261121T0000", "analytics") in rows(account, name, "Capacity")


def test_drops_what_is_older_than_the_account_wants(account):
    writer = Writer()
    happened(account, NOON)
    writer.write(NOON + MINUTE)
    writer.write(NOON + 7 * DAY)
    assert ("20261121T1200", "user;All") in rows(account)

    writer.write(NOON + 7 * DAY + 2 * HOUR)

    assert ("20261121T1200", "user;All") not in rows(account)
    assert not any(key[0] < "20261121T1400" for key in rows(account, "$metricscapacitytable", "Capacity"))
