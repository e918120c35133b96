"""Requests and last writes of tables, as processes count them and lists show them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic
from storage.entities import edits
from storage.metrics import series, table_use
from storage.metrics.series import Series
from storage.metrics.table_use import TableWrites
from storage.models import Table
from storage.sql import background
from storage.tables import tables

NOON = datetime(2026, 11, 21, 12, 20, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def people(db):
    return tables.create(accounts.add("counted"), "people")


def written_at(table):
    return Table.objects.get(pk=table.pk).written_at


def count_requests(process, table, moment, requests):
    """Count requests to a table in a minute and write the number, as one process does."""
    counts = PeriodCounts()
    counts.traffic(SeriesKind("QueryEntities", 200)).add(Traffic(requests))
    counted = Series(process)
    counted.add(moment, {(table.account_id, table.name): counts})
    counted.write()


def test_sums_up_what_processes_count(people):
    other = tables.create(accounts.add("other"), "people")
    count_requests("one", people, NOON, 3)
    count_requests("two", people, NOON + 5 * MINUTE, 4)
    count_requests("two", people, NOON - 23 * HOUR, 1)
    count_requests("two", people, NOON - 24 * HOUR, 100)
    count_requests("two", other, NOON, 1000)
    for _ in range(2):
        [hours] = table_use.last_day([people], NOON + 5 * MINUTE).values()
        assert (len(hours), hours[0], hours[-1], sum(hours)) == (24, 1, 7, 8)
        assert table_use.last_day([people, other], NOON).keys() == {people.pk, other.pk}
        ordered = Table.objects.annotate(number=table_use.requests_of_table(NOON)).order_by("number")
        assert list(ordered.values_list("pk", "number")) == [(people.pk, 8), (other.pk, 1000)]
        series.tidy(NOON + HOUR)


def test_a_request_in_the_future_by_another_clock_counts_for_the_current_hour(people):
    count_requests("one", people, NOON + HOUR, 3)
    [hours] = table_use.last_day([people], NOON).values()
    assert hours[-1] == sum(hours) == 3


def test_an_earlier_write_that_is_recorded_later_changes_nothing(people):
    for moment in (NOON, NOON - HOUR):
        writes = TableWrites()
        writes.add(moment, [people.pk])
        writes.write()
    assert written_at(people) == NOON


@pytest.mark.django_db(transaction=True)
def test_a_write_is_recorded_when_it_commits(db):
    people = tables.create(accounts.add("counted"), "people")
    edits.apply(people, [Insert(Entity(EntityKey("p", "r"), {}))], by=SERVER)
    assert written_at(people) is not None


def test_tries_again_where_a_table_is_locked(people, monkeypatch):
    writes = TableWrites()
    writes.add(NOON, [people.pk])
    with monkeypatch.context() as patch:
        patch.setattr(background, "set_written", lambda _: set())  # as while another process changes it
        writes.write()
    writes.write()
    assert written_at(people) == NOON

    writes.add(NOON, [people.pk + 1])  # deleted since
    writes.write()
    writes.forget(NOON + HOUR)
    assert not connection.needs_rollback
    assert writes._counted == {}
