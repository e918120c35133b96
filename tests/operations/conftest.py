"""A table, and entities in it without the activity log."""

from datetime import timedelta

import pytest
from django.conf import settings

from storage.accounts import accounts
from storage.activity import activity
from storage.bulk_edit import bulk_edit_previews
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.entities import entities, estimates, facets, schema
from storage.history import changes, past
from storage.notices import sending
from storage.runtime import job_runner, threads
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import entities as sql
from storage.sql import notify
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import adaptive_indexes, tables

# after which the product gives up; a test of one of them sets it, or is a slow one
LIMITS = (
    (notify, "_LOCK_TIMEOUT", "60s"),
    (job_runner, "_SHUTDOWN_TIMEOUT", 60.0),
    (sending, "TIMEOUT", 60.0),
    *((module, "_PATIENCE", 60.0) for module in (adaptive_indexes, past, threads)),
    *(
        (module, name, timedelta(minutes=1))
        for module, name in (
            (activity, "_PAGE_TIMEOUT"),
            (adaptive_indexes, "_EXAMINATION"),
            (bulk_edit_previews, "COUNT_MOMENT"),
            (entities, "SORT_LIMIT"),
            (estimates, "LIMIT"),
            (facets, "_LIMIT"),
            (schema, "_LIMIT"),
        )
    ),
)


@pytest.fixture(autouse=True)
def _patient(request, patient_lanes, monkeypatch):
    """Nothing is given up because the machine is busy."""
    if request.node.get_closest_marker("slow") is None:
        for module, name, limit in LIMITS:
            monkeypatch.setattr(module, name, limit)
        monkeypatch.setattr(changes.run_limited, "__defaults__", (timedelta(minutes=1),))
        for operation in (bulk_edit_previews.preview, entities.count, entities.total):
            monkeypatch.setitem(operation.__kwdefaults__, "limit", timedelta(minutes=1))


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
