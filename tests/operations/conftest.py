"""A table, and entities in it without the activity log."""

import pytest

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.operations.accounts import accounts
from storage.operations.tables import tables
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name


@pytest.fixture
def table(db):
    return tables.create(accounts.add("acme"), "people")


@pytest.fixture
def insert(table):
    def insert(row_key, **values):
        run(sql.change(relation_name(table.pk), Insert(Entity(EntityKey("p", row_key), values))))

    return insert
