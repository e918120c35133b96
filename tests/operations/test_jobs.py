"""What a server does beside answering."""

import asyncio
import logging

import psycopg
import pytest
from django.conf import settings

from storage.models import Table
from storage.operations import accounts, jobs, tables
from storage.operations.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def deleted():
    """A table that was deleted and still takes space."""
    account = accounts.add("ownerofjobs").pk
    table = tables.create(account, "people")
    tables.delete(account, "people")
    return table


@pytest.fixture
async def running(monkeypatch):
    monkeypatch.setattr(jobs, "_INTERVAL", 0.02)
    task = asyncio.create_task(jobs.run())
    yield task
    task.cancel()
    await asyncio.wait([task])


async def until_reaped():
    async with asyncio.timeout(5):
        while await in_thread(Table.objects.exclude(deleted_at=None).exists):  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.01)


async def test_drops_what_was_deleted(deleted, running):
    await until_reaped()

    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        found = connection.execute("SELECT to_regclass(%s)", [f"deleted_entity_{deleted.pk}"]).fetchone()
    assert found == (None,)


async def test_goes_on_after_a_failure(deleted, running, monkeypatch, caplog):
    reap = tables.reap

    def fail():
        monkeypatch.setattr(tables, "reap", reap)
        raise RuntimeError("this once")

    monkeypatch.setattr(tables, "reap", fail)
    with caplog.at_level(logging.ERROR):
        await until_reaped()

    assert "this once" in caplog.text


def test_leaves_alone_what_another_server_is_dropping(deleted):
    with psycopg.connect(settings.LANES_CONNINFO) as other:
        other.execute("SELECT FROM storage_table WHERE id = %s FOR UPDATE", [deleted.pk])
        assert tables.reap() == 0

    assert tables.reap() == 1
