"""A table, and entities in it without the activity log."""

import pytest
from django.conf import settings

from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.operations.accounts import accounts
from storage.operations.tables import tables
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
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


@pytest.fixture
async def service():
    """The service of the protocol, with an account "owner"."""
    await in_thread(accounts.add, "owner")
    service = Service(settings.LANES_CONNINFO)
    await service.open()
    yield service
    await service.close()
