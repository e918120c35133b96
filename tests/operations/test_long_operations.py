"""Operations of several transactions. tests/faults/test_kills.py kills their processes."""

import asyncio

import pytest

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.service.activity import Verb
from storage.models import Activity, LongOperation
from storage.operations.accounts import account_settings, accounts, removal
from storage.operations.accounts.accounts import NewAccount
from storage.operations.accounts.refusals import AccountIsBusy
from storage.operations.activity import long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.snapshots import account_building
from storage.operations.tables import tables
from storage.runtime import periodic, recovery
from storage.runtime.threads import in_thread
from storage.sql.background import try_lock

pytestmark = pytest.mark.django_db(transaction=True)
ADA = Actor(ActorKind.USER, "ada")


async def test_a_job_ends_what_was_abandoned(monkeypatch):
    monkeypatch.setattr(periodic, "_SOON", 0.02)

    def abandon():
        account = accounts.add("half", NewAccount(enabled=False))
        tables.create(account, "people")
        long_operations.Operation.begin(Verb.ACCOUNT_CREATE, account, 1, by=ADA)
        acme = accounts.add("acme")
        long_operations.Operation.begin(Verb.ENTITY_REVERT, acme, 2, by=ADA).save({"rows": 7})
        long_operations.Operation.begin(Verb.ENTITY_REVERT, acme, 3, by=ADA)

    await in_thread(abandon)
    task = asyncio.create_task(periodic.run())
    async with asyncio.timeout(60):
        while await in_thread(LongOperation.objects.exists):  # noqa: ASYNC110 - the event is PostgreSQL's
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    assert await in_thread(accounts.names) == {"acme"}
    done = await in_thread(lambda: list(Activity.objects.filter(verb=Verb.ENTITY_REVERT)))
    assert [(it.actor, it.account_name, it.detail) for it in done] == [
        ("ada", "acme", {"rows": 7, "interrupted": True})
    ]


def test_what_is_going_on_is_left_alone():
    account = accounts.add("acme")
    long_operations.Operation.begin(Verb.ACCOUNT_CREATE, account, 1, by=ADA)
    ended = []

    def end_in_another_session():
        long_operations.end_abandoned(ended.append)

    with try_lock(long_operations.LOCKS, 1):
        asyncio.run(in_thread(end_in_another_session))
    assert not ended


@pytest.mark.parametrize("saved", [{}, {"rows": 3}])
def test_a_failure_is_recorded_if_anything_was_done(saved):
    account = accounts.add("acme")

    def fail():
        with long_operations.running(Verb.ENTITY_REVERT, account, by=ADA) as operation:
            operation.save(saved)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not LongOperation.objects.exists()
    found = Activity.objects.filter(verb=Verb.ENTITY_REVERT).values_list("detail", flat=True)
    assert list(found) == ([{"rows": 3, "interrupted": True}] if saved else [])


def test_an_account_that_is_not_completed_is_removed():
    def fail():
        with account_building.building(Verb.ACCOUNT_CREATE, "twig", NewAccount(), by=ADA) as operation:
            assert not operation.account.enabled
            with pytest.raises(AccountIsBusy):
                account_settings.change(accounts.by_name("twig"), enabled=True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert accounts.find("twig") is None


def test_an_account_that_took_the_name_stays():
    def fail():
        with account_building.building(Verb.ACCOUNT_CREATE, "twig", NewAccount(), by=ADA):
            removal.remove("twig")
            accounts.add("twig")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert accounts.find("twig") is not None
    assert not LongOperation.objects.exists()


def test_a_deletion_that_was_begun_is_completed(monkeypatch):
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", 2)
    account = accounts.add("crowded")
    for number in range(5):
        tables.create(account, f"table{number}")
    with long_operations.holding_account("crowded") as lock, invalidating_catalogs():
        removal._drop_some_tables(account, lock, ADA)
    with pytest.raises(AccountIsBusy):
        account_settings.change(accounts.by_name("crowded"), protected=True)

    recovery.run()

    assert accounts.find("crowded") is None
    done = Activity.objects.get(verb=Verb.ACCOUNT_DELETE)
    assert (done.actor, done.detail["tables"]) == ("ada", [f"table{number}" for number in range(5)])
