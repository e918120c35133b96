"""The metrics tables that servers up to 1.0 have made: an upgrade drops them, and no server makes others."""

from types import SimpleNamespace

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from storage.accounts import accounts
from storage.copies.sides import RemoteSide
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import InvalidResourceName
from storage.domain.values.kinds import AccountKind
from storage.models import OldRows, Table
from storage.sql import batch, relations
from storage.sql.django import execute, fetch, run
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)

HOURS = "$MetricsHourPrimaryTransactionsTable"


def make_metrics_table(account, model=Table):
    """Make a metrics table as a server of 1.0 does, with a row, by the model of a migration."""
    table = model.objects.create(account_id=account.pk, name=HOURS, folded_name=HOURS.lower())
    execute(relations.create(table.pk, account.pk, AccountKind.STORAGE))
    run(batch.apply(relations.relation_name(table.pk), [Insert(Entity(EntityKey("p", "user;All"), {}))]))
    return table


def relations_of(table_id):
    """Return the names of the relations and functions that belong to a table."""
    names = "SELECT relname FROM pg_class UNION SELECT proname FROM pg_proc"
    pattern = f"^(deleted_)?entity_{table_id}(_|$)"
    return fetch(f"SELECT relname FROM ({names}) AS found WHERE relname ~ %s", pattern)


@pytest.mark.long
def test_an_upgrade_drops_them_and_nothing_else():
    account, other = accounts.add("measured"), accounts.add("other")
    people = tables.create(account, "People")
    executor = MigrationExecutor(connection)
    try:
        state = executor.migrate([("storage", "0055_one_text")])
        model = state.apps.get_model("storage", "Table")
        metrics = [make_metrics_table(it, model) for it in (account, other)]
        OldRows.objects.bulk_create([OldRows(table_id=it.pk) for it in (people, metrics[0])])
    finally:
        with transaction.atomic():
            executor = MigrationExecutor(connection)
            executor.migrate(executor.loader.graph.leaf_nodes())

    assert tables.names(account) == ["People"]
    assert tables.deleted(account) == []
    assert [it.table_id for it in OldRows.objects.all()] == [people.pk]
    assert all(
        it.created_at == it.deleted_at for it in Table.objects.filter(pk__in=[it.pk for it in metrics])
    )
    assert tables.drop_expired_tables() == 2
    assert [it.pk for it in Table.objects.all()] == [people.pk]
    assert [relations_of(it.pk) for it in metrics] == [[], []]
    assert len(relations_of(people.pk)) > 1


def test_an_older_server_that_makes_one_finds_that_there_is_none():
    account = accounts.add("measured")
    with pytest.raises(IntegrityError, match="no_metrics_table"), transaction.atomic():
        make_metrics_table(account)
    assert not Table.objects.exists()


def test_metrics_tables_cannot_be_created_or_imported_into():
    account = accounts.add("measured")
    for create in (tables.create, tables.get_or_new):
        with pytest.raises(InvalidResourceName):
            create(account, HOURS)


def test_metrics_tables_of_another_service_are_not_copied():
    class Client:
        endpoint = SimpleNamespace(table="")

        def tables(self):
            return iter(["People", HOURS])

    assert RemoteSide(Client(), AccountKind.STORAGE).tables() == ["People"]
