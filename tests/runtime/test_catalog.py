"""A process's catalog of accounts and tables, and how it learns of changes."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from time import monotonic

import psycopg
import pytest
from django.conf import settings

from storage.access import policies
from storage.accounts import account_settings, accounts, removal, sealed_keys, service_properties
from storage.accounts.accounts import NewAccount
from storage.core.relation_forms import LOCAL
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.errors import TableNotFound
from storage.domain.requests.consistency import Consistency
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, CorsRule
from storage.domain.values.kinds import AccountKind
from storage.models import Account
from storage.runtime import catalog, job_runner
from storage.runtime.catalog import Catalog, KnownTable
from storage.runtime.stream_access import AccessChanges
from storage.runtime.threads import in_thread
from storage.sql import notify
from storage.sql.notify import LISTENER, Event, News
from storage.tables import indexes, tables

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def database():
    """Open a connection in addition to the catalog's."""
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
    """Wait until the condition, which may be a coroutine function, holds."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.005)


async def break_listener(database):
    """End the only listening connection, once those of earlier tests are gone, and wait until it is gone too."""
    await eventually(lambda: is_listening(database))
    query = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = %s"
    assert database.execute(query, [LISTENER]).fetchall() == [(True,)]


@pytest.fixture
def lasting(monkeypatch):
    """Keep cached data from expiring, however busy the machine is."""
    monkeypatch.setattr(catalog, "LEASE", 600.0)
    monkeypatch.setattr(notify, "_CHECK_TIMEOUT", 600.0)


def keys_of(name):
    return sealed_keys.keys_of(Account.objects.get(name=name))


# accounts


async def test_knows_the_accounts():
    added = await in_thread(accounts.add, "known", NewAccount(b"a" * 64, b"b" * 64))

    async with opened() as known:
        account = await known.account("known")
        assert account[:5] == (added.pk, "known", (b"a" * 64, b"b" * 64), True, True)
        assert account[5:12] == ((), DEFAULT_PROPERTIES, AccountKind.STORAGE, False, frozenset(), (), True)
        assert account[12:] == (Consistency.STRONG, 5.0, False, False, LOCAL, None, False)
        assert await known.account("unknown") is None


async def test_only_requested_accounts_are_looked_up(database):
    for name in ("asked", "other"):
        await in_thread(accounts.add, name)
    # unsealing the keys of this account would fail
    database.execute("UPDATE storage_account SET primary_key_sealed = '' WHERE name = 'other'")

    async with opened() as known:
        assert (await known.account("asked")).name == "asked"
        assert await known.account("nobody") is None


async def test_strangers_do_not_have_accounts_looked_up_all_the_time(lasting, monkeypatch):
    await in_thread(accounts.add, "known")
    async with opened() as known:
        assert await known.account("stranger0") is None
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "_account", None)
            for name in ("stranger0", "stranger1", "known\0", "-", "", "\ud800", "KNOWN", "x" * 60_000):
                assert await known.account(name) is None

        await in_thread(accounts.add, "stranger1")
        assert await known.account("stranger1")
        assert await known.account("known")


# changes that count from the next request on, in every process: no waiting in any of these


@asynccontextmanager
async def several(count=3):
    """Open several catalogs, as in as many processes, each with its snapshot."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened()) for _ in range(count)]


async def test_an_account_comes_and_goes_at_once():
    async with several() as processes:
        for known in processes:
            assert await known.account("short") is None
        added = await in_thread(accounts.add, "short")
        for known in processes:
            assert (await known.account("short")).enabled
        await in_thread(account_settings.change, added, enabled=False)
        for known in processes:
            assert not (await known.account("short")).enabled
        await in_thread(removal.remove, "short")
        for known in processes:
            assert await known.account("short") is None


@pytest.mark.parametrize("which", [1, 2])
async def test_a_rotated_key_is_dead_at_once(which):
    await in_thread(accounts.add, "rotated", NewAccount(b"a" * 64, b"b" * 64))
    async with several() as processes:
        for _ in range(3):
            before = (await processes[0].account("rotated")).keys
            await in_thread(accounts.rotate, "rotated", which)

            for known in processes:
                keys = (await known.account("rotated")).keys
                assert keys[which - 1] != before[which - 1]
                assert keys[2 - which] == before[2 - which]


async def test_a_policy_counts_at_once(account):
    await in_thread(tables.create, account.row, "People")
    async with several() as processes:
        for name in ("first", "second"):
            policy = AccessPolicy(None, "2040-01-01T00:00:00.0000000Z", "r")
            await in_thread(policies.replace_by_name, account.row, "people", [SignedIdentifier(name, policy)])

            for known in processes:
                assert (await known.table(account, "people")).policies == {name: policy}


async def test_service_properties_count_at_once(account):
    rule = CorsRule(("https://example.com",), ("GET",), (), (), 5)
    async with several() as processes:
        await in_thread(service_properties.replace, account.row, lambda old: replace(old, cors=(rule,)))

        for known in processes:
            assert (await known.account("owner")).properties.cors == (rule,)


async def test_no_request_sees_an_old_key_after_the_change(account):
    """Readers that never pause, beside changes that follow each other."""
    async with several() as processes:
        done = 0  # changes whose end has been told

        async def read(known):
            while done < 8:
                told = done
                keys = (await known.account("owner")).keys
                assert keys[0] not in versions[:told]
                await asyncio.sleep(0)

        versions = [(await processes[0].account("owner")).keys[0]]
        readers = [asyncio.create_task(read(known)) for known in processes]
        for _ in range(8):
            changing = asyncio.create_task(in_thread(accounts.rotate, "owner", 1))
            await changing
            versions.append((await in_thread(keys_of, "owner"))[0])
            done += 1
        await asyncio.gather(*readers)


async def test_changes_at_the_same_time_take_turns(account):
    async with several() as processes:
        await asyncio.gather(*(in_thread(accounts.rotate, "owner", 1 + number % 2) for number in range(12)))

        keys = await in_thread(keys_of, "owner")
        for known in processes:
            assert (await known.account("owner")).keys == keys


async def test_a_process_that_hangs_is_disconnected_and_uses_nothing_stale(account, monkeypatch):
    async def hang(_):
        await asyncio.Event().wait()

    monkeypatch.setattr(notify, "_receive", hang)
    monkeypatch.setattr(notify, "_LOCK_TIMEOUT", "400ms")
    monkeypatch.setattr(catalog, "LEASE", 0.2)
    async with opened() as hanging:
        before = (await hanging.account("owner")).keys

        await in_thread(accounts.rotate, "owner", 1)

        assert (await hanging.account("owner")).keys != before


async def test_cached_data_expires_unless_the_database_answers(account, lasting, monkeypatch):
    monkeypatch.setattr(notify, "_CHECK_INTERVAL", 0.05)
    async with opened() as known:
        result = await known.account("owner")
        before = known._expires_at
        await eventually(lambda: has_been_prolonged(known, before))
        assert await known.account("owner") is result

        known._expires_at = 0.0
        assert await known.account("owner") is not result


async def has_been_prolonged(known, before):
    return known._expires_at > before


# tables


@pytest.fixture
def account():
    return catalog.KnownAccount(accounts.add("owner").pk, "owner", (), True, True, (), DEFAULT_PROPERTIES)


async def is_missing(known, account, name):
    try:
        await known.table(account, name)
    except TableNotFound:
        return True
    return False


async def test_a_table_that_is_made_again_is_noticed(account):
    async with opened() as known:
        assert await is_missing(known, account, "people")
        old = await in_thread(tables.create, account.row, "People")
        for _ in range(2):
            assert await known.table(account, "people") == KnownTable(
                old.pk, f"entity_{old.pk}", "People", {}, 0
            )
        assert await is_missing(known, account._replace(id=account.id + 1), "people")

        await in_thread(tables.delete, account.row, "people")
        await eventually(lambda: is_missing(known, account, "people"))
        new = await in_thread(tables.create, account.row, "PEOPLE")

        assert await known.table(account, "people") == KnownTable(new.pk, f"entity_{new.pk}", "PEOPLE", {}, 0)


async def test_other_tables_stay_known_when_one_comes_or_goes(account, database, lasting):
    kept = await in_thread(tables.create, account.row, "Kept")
    await in_thread(tables.create, account.row, "Gone")
    async with opened() as known:
        for name in ("kept", "gone"):
            await known.table(account, name)
        # another lookup does not find it
        database.execute("UPDATE storage_table SET deleted_at = now() WHERE id = %s", [kept.pk])

        await in_thread(tables.create, account.row, "New")
        await in_thread(tables.delete, account.row, "gone")
        await eventually(lambda: is_missing(known, account, "gone"))

        assert (await known.table(account, "kept")).id == kept.pk
        # as servers before 0.6 say it
        database.execute("SELECT pg_notify(%s, 'tables')", [notify.CHANNEL])
        await eventually(lambda: is_missing(known, account, "kept"))


async def test_the_name_of_a_table_may_have_spaces(database):
    await in_thread(accounts.add, "spacious", NewAccount(kind=AccountKind.COSMOS))
    async with opened() as known:
        account = await known.account("spacious")
        await in_thread(tables.create, account.row, "two  words ü")
        await known.table(account, "two  words ü")

        await in_thread(tables.delete, account.row, "two  words ü")

        await eventually(lambda: is_missing(known, account, "two  words ü"))


async def test_hears_of_a_new_index_and_of_a_dropped_one(account):
    table = await in_thread(tables.create, account.row, "People")

    async def is_indexed():
        return (await known.table(account, "people")).indexed == {"Score"}

    async def is_not_indexed():
        return not await is_indexed()

    async with opened() as known:
        assert await is_not_indexed()
        await in_thread(indexes.add, table, "Score")
        await in_thread(job_runner.run_all)
        await eventually(is_indexed)
        await in_thread(indexes.drop, table, "Score")
        await eventually(is_not_indexed)


async def test_a_missing_table_is_looked_up_again(account, database, lasting):
    table = await in_thread(tables.create, account.row, "People")
    async with opened() as known:
        await known.table(account, "people")
        # no notification is sent
        database.execute("UPDATE storage_table SET deleted_at = now() WHERE id = %s", [table.pk])
        assert not await is_missing(known, account, "people")

        known.forget_table(account, "people")

        assert await is_missing(known, account, "people")


# the connection that brings the news


async def test_no_stale_data_is_used_without_notifications(account, database, monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 60)
    await in_thread(accounts.add, "rotated", NewAccount(b"a" * 64))
    await in_thread(tables.create, account.row, "People")
    async with opened() as known:
        assert not await is_missing(known, account, "people")
        await break_listener(database)
        await eventually(lambda: has_noticed(known))

        # no notification of these will ever come
        await in_thread(accounts.rotate, "rotated", 1)
        await in_thread(tables.delete, account.row, "people")

        assert b"a" * 64 not in (await known.account("rotated")).keys
        assert await is_missing(known, account, "people")
        for _ in range(2):
            await in_thread(accounts.rotate, "rotated", 1)
            keys = await in_thread(keys_of, "rotated")
            assert (await known.account("rotated")).keys == keys


async def has_noticed(known):
    return not known._held


async def test_listens_again_and_has_missed_nothing(account, database, monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 0.1)
    await in_thread(accounts.add, "rotated", NewAccount(b"a" * 64))
    async with opened() as known:
        for _ in range(3):
            await break_listener(database)
            await in_thread(accounts.rotate, "rotated", 1)
            await in_thread(tables.create, account.row, "People")
            await eventually(lambda: heard(known, "rotated"))
            await eventually(lambda: is_listening(database))

            assert not await is_missing(known, account, "people")
            await in_thread(accounts.rotate, "rotated", 1)
            await in_thread(tables.delete, account.row, "People")
            await eventually(lambda: heard(known, "rotated"))
            await eventually(lambda: is_missing(known, account, "people"))


async def test_keeps_nothing_when_listening_ends_in_whatever_way(monkeypatch, caplog):
    async def listen(_):
        yield Event(News.HELD, monotonic())
        await asyncio.sleep(0.2)
        raise RuntimeError("unheard of")

    monkeypatch.setattr(catalog, "listen", listen)
    monkeypatch.setattr(catalog, "_PAUSE", 60)
    await in_thread(accounts.add, "rotated", NewAccount(b"a" * 64))
    async with opened() as known:
        await known.account("rotated")
        await asyncio.sleep(0.3)
        await in_thread(accounts.rotate, "rotated", 1)

        assert b"a" * 64 not in (await known.account("rotated")).keys
    assert caplog.messages == ["No notifications from the database"]


async def test_a_database_that_hangs_is_named_as_the_reason_why_listening_ends(database, monkeypatch):
    monkeypatch.setattr(notify, "_CHECK_INTERVAL", 0.05)
    monkeypatch.setattr(notify, "_CHECK_TIMEOUT", 0.2)

    async def listen():
        async with aclosing(notify.listen(settings.LANES_CONNINFO)) as events:
            async for _ in events:
                monkeypatch.setattr(notify, "_VERSIONS", "SELECT pg_sleep(60), true")

    with pytest.raises(OSError, match=r"^the database gave no answer for 0\.2 seconds$"):
        await listen()


async def test_news_that_come_with_a_change_are_not_lost(database):
    """Jobs would begin late otherwise, and tabs that show a table would not learn of others."""
    heard = []
    async with aclosing(notify.listen(settings.LANES_CONNINFO)) as events:
        async for event in events:
            if not heard:
                with database.transaction():
                    database.execute(
                        "SELECT pg_notify('tablero_catalog', 'change'), pg_notify('tablero_jobs', 'jobs')"
                    )
                    database.execute("SELECT pg_notify('tablero_presence', 'presence 7')")
            if event.news is not News.STILL_HELD:
                heard.append((event.news, event.table[0]))
            if heard.count((News.HELD, 0)) == 2:
                break
    assert sorted(heard, key=str) == sorted(
        [(News.HELD, 0), (News.JOBS, 0), (News.PRESENCE, 7), (News.CHANGE, 0), (News.HELD, 0)], key=str
    )


async def heard(known, name):
    """Return whether the catalog has the current keys of the account."""
    return (await known.account(name)).keys == await in_thread(keys_of, name)


async def is_listening(database):
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    return database.execute(query, [LISTENER]).fetchone()[0] == 1


async def test_does_not_open_without_a_database(monkeypatch):
    monkeypatch.setattr(catalog, "_PAUSE", 0.01)
    known = Catalog(settings.LANES_CONNINFO.replace("test_tablero", "no_such_database"))
    opening = asyncio.create_task(known.open())
    await asyncio.sleep(0.1)

    assert not opening.done()

    opening.cancel()
    await asyncio.wait([opening])
    await known.close()


async def test_listening_stops_at_the_end(database):
    async with opened():
        await eventually(lambda: is_listening(database))

    async def gone():
        return not await is_listening(database)

    await eventually(gone)


# access of streams


async def test_passes_on_announcements_also_beside_a_change(database):
    changes = AccessChanges()
    known = Catalog(settings.LANES_CONNINFO, changes)
    await known.open()
    try:
        await in_thread(notify.notify_access)
        await changes.wait_after(0)
        query = "SELECT pg_notify(%(to)s, 'access'), pg_notify(%(to)s, %(change)s)"
        database.execute(query, {"to": notify.CHANNEL, "change": notify.CHANGE})
        await changes.wait_after(1)
    finally:
        await known.close()
