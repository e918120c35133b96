"""Requests and last writes of tables, as processes count them and lists show them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.entities import edits
from storage.metrics import table_use
from storage.metrics.table_use import TableUses
from storage.models import Table, TableRequests
from storage.sql import background
from storage.tables import tables

NOON = datetime(2026, 11, 21, 12, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def people(db):
    return tables.create(accounts.add("counted"), "people")


def written_at(table):
    return Table.objects.get(pk=table.pk).written_at


def test_sums_up_what_processes_count(people):
    one, two = TableUses(), TableUses()
    one.add(NOON, {people.pk: 3}, [people.pk])
    one.write()
    one.write()
    two.add(NOON + timedelta(minutes=5), {people.pk: 4}, [])
    two.add(NOON - 23 * HOUR, {people.pk: 1}, [])
    two.add(NOON - 24 * HOUR, {people.pk: 100}, [])
    two.write()

    [hours] = table_use.last_day([people], NOON + timedelta(minutes=5)).values()

    assert (len(hours), hours[0], hours[-1], sum(hours)) == (24, 1, 7, 8)
    assert written_at(people) == NOON
    table_use.tidy(NOON + HOUR)
    assert TableRequests.objects.count() == 2


def test_an_earlier_write_that_is_recorded_later_changes_nothing(people):
    for moment in (NOON, NOON - HOUR):
        uses = TableUses()
        uses.add(moment, {}, [people.pk])
        uses.write()
    assert written_at(people) == NOON


@pytest.mark.django_db(transaction=True)
def test_a_write_is_recorded_when_it_commits(db):
    people = tables.create(accounts.add("counted"), "people")
    edits.apply(people, [Insert(Entity(EntityKey("p", "r"), {}))], by=SERVER)
    assert written_at(people) is not None


def test_tries_again_where_a_table_is_locked(people, monkeypatch):
    uses = TableUses()
    uses.add(NOON, {}, [people.pk])
    with monkeypatch.context() as patch:
        patch.setattr(background, "set_written", lambda _: set())  # as while somebody else changes it
        uses.write()
    uses.write()
    assert written_at(people) == NOON

    uses.add(NOON, {}, [people.pk + 1])  # deleted since
    uses.write()
    uses.forget(NOON + HOUR)
    assert not connection.needs_rollback
    assert uses._written == {}
