"""What a process knows of accounts and tables, and how it learns that somebody changed them."""

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest
from django.conf import settings

from storage.domain.errors import TableNotFound
from storage.models import Account
from storage.operations import accounts, catalog, tables
from storage.operations.catalog import Catalog
from storage.operations.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def database():
    """A connection beside the catalog's."""
    with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def opened():
    known = Catalog(settings.LANES_CONNINFO)
    await known.open()
    try:
        yield known
    finally:
        await known.close()


async def eventually(condition):
    """Waits until the condition, which may be a coroutine function, holds."""
    async with asyncio.timeout(5):
        while not await condition():  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.005)


def break_listener(database):
    """Ends the connections that listen; how many there were."""
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
    return database.execute(query).fetchone()[0]


def keys_of(name):
    return accounts.keys_of(Account.objects.get(name=name))


# accounts


async def test_knows_the_accounts():
    added = await in_thread(accounts.add, "known", b"a" * 64, b"b" * 64)

    async with opened() as known:
        account = await known.account("known")
        assert account == (added.pk, "known", (b"a" * 64, b"b" * 64), True)
        assert await known.account("unknown") is None


async def test_hears_of_an_account_that_is_added():
    async with opened() as known:
        assert await known.account("late") is None

        await in_thread(accounts.add, "late")

        await eventually(lambda: known.account("late"))


async def test_hears_of_an_account_that_is_removed():
    await in_thread(accounts.add, "short")
    async with opened() as known:
        await in_thread(accounts.remove, "short")

        async def gone():
            return await known.account("short") is None

        await eventually(gone)


@pytest.mark.parametrize("which", [1, 2])
async def test_hears_of_a_key_that_is_rotated(which):
    await in_thread(accounts.add, "rotated", b"a" * 64, b"b" * 64)
    async with opened() as known:
        await in_thread(accounts.rotate, "rotated", which)

        async def changed():
            return b"ab"[which - 1 : which] * 64 not in (await known.account("rotated")).keys

        await eventually(changed)
        keys = (await known.account("rotated")).keys
        assert keys == await in_thread(keys_of, "rotated")
        assert b"ba"[which - 1 : which] * 64 in keys


# tables


@pytest.fixture
def account():
    return catalog.KnownAccount(accounts.add("owner").pk, "owner", (), True)


async def test_knows_the_tables(account):
    table = await in_thread(tables.create, account.id, "People")

    async with opened() as known:
        for _ in range(2):
            assert await known.table(account, "people") == (f"entity_{table.pk}", "People")
        with pytest.raises(TableNotFound):
            await known.table(account, "places")


async def test_finds_a_table_at_once_that_was_made_elsewhere(account):
    async with opened() as known:
        with pytest.raises(TableNotFound):
            await known.table(account, "people")

        table = await in_thread(tables.create, account.id, "People")

        assert (await known.table(account, "people")).relation == f"entity_{table.pk}"


async def test_hears_of_a_table_that_was_deleted_elsewhere(account):
    await in_thread(tables.create, account.id, "People")
    async with opened() as known:
        await known.table(account, "people")

        await in_thread(tables.delete, account.id, "people")

        await eventually(lambda: is_missing(known, account, "people"))


async def is_missing(known, account, name):
    try:
        await known.table(account, name)
    except TableNotFound:
        return True
    return False


async def test_hears_of_a_table_that_was_made_anew(account):
    old = await in_thread(tables.create, account.id, "People")
    async with opened() as known:
        assert (await known.table(account, "people")).relation == f"entity_{old.pk}"

        await in_thread(tables.delete, account.id, "people")
        new = await in_thread(tables.create, account.id, "PEOPLE")

        async def is_new():
            return await known.table(account, "people") == (f"entity_{new.pk}", "PEOPLE")

        await eventually(is_new)


async def test_looks_a_forgotten_table_up_anew(account, database):
    table = await in_thread(tables.create, account.id, "People")
    async with opened() as known:
        await known.table(account, "people")
        # nobody is told of this
        database.execute("UPDATE storage_table SET deleted_at = now() WHERE id = %s", [table.pk])
        assert not await is_missing(known, account, "people")

        known.forget_table(account, "people")

        assert await is_missing(known, account, "people")


async def test_accounts_do_not_share_tables(account):
    await in_thread(tables.create, account.id, "People")
    async with opened() as known:
        await known.table(account, "people")

        assert await is_missing(known, account._replace(id=account.id + 1), "people")


# the connection that brings the news


async def test_uses_nothing_stale_while_nobody_brings_the_news(account, database, monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 60)
    await in_thread(accounts.add, "rotated", b"a" * 64)
    await in_thread(tables.create, account.id, "People")
    async with opened() as known:
        assert not await is_missing(known, account, "people")
        assert break_listener(database) == 1
        await asyncio.sleep(0.2)

        # no notification of these will ever come
        await in_thread(accounts.rotate, "rotated", 1)
        await in_thread(tables.delete, account.id, "people")

        assert b"a" * 64 not in (await known.account("rotated")).keys
        assert await is_missing(known, account, "people")
        for _ in range(2):
            await in_thread(accounts.rotate, "rotated", 1)
            keys = await in_thread(keys_of, "rotated")
            assert (await known.account("rotated")).keys == keys


async def test_listens_again_and_has_missed_nothing(account, database, monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 0.1)
    await in_thread(accounts.add, "rotated", b"a" * 64)
    async with opened() as known:
        for _ in range(3):
            assert break_listener(database) == 1
            await in_thread(accounts.rotate, "rotated", 1)
            await in_thread(tables.create, account.id, "People")
            await eventually(lambda: heard(known, "rotated"))
            await eventually(lambda: is_listening(database))

            assert not await is_missing(known, account, "people")
            await in_thread(accounts.rotate, "rotated", 1)
            await in_thread(tables.delete, account.id, "People")
            await eventually(lambda: heard(known, "rotated"))
            await eventually(lambda: is_missing(known, account, "people"))


async def heard(known, name):
    """Whether the catalog has the keys that are the account's now."""
    return (await known.account(name)).keys == await in_thread(keys_of, name)


async def is_listening(database):
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
    return database.execute(query).fetchone()[0] == 1


async def test_does_not_open_without_a_database(monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 0.05)
    known = Catalog(settings.LANES_CONNINFO.replace("test_tablero", "no_such_database"))
    opening = asyncio.create_task(known.open())
    await asyncio.sleep(0.3)

    assert not opening.done()

    opening.cancel()
    await asyncio.wait([opening])
    await known.close()


async def test_nobody_listens_after_the_end(database):
    async with opened():
        await eventually(lambda: is_listening(database))

    async def gone():
        return not await is_listening(database)

    await eventually(gone)
