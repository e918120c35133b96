"""Stored access policies as they are kept."""

import asyncio

import pytest
from django.conf import settings

from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.errors import (
    InsufficientAccountPermissions,
    InvalidXmlDocument,
    InvalidXmlNodeValue,
    ResourceNotFound,
)
from storage.models import Activity, StoredAccessPolicy
from storage.operations import accounts, activity, policies, tables
from storage.operations.catalog import Catalog
from storage.operations.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)

INSTANT = "2013-11-26T08:49:37.0000000Z"
FIVE = [
    SignedIdentifier("read", AccessPolicy(INSTANT, "2099-01-01T00:00:00.0000000Z", "r")),
    SignedIdentifier("READ", AccessPolicy("", "", "")),
    SignedIdentifier("<é😀>\r\n", AccessPolicy(permission="duar")),
    SignedIdentifier("empty", AccessPolicy()),
    SignedIdentifier("alone"),
]


@pytest.fixture
def account():
    return accounts.add("policiesofmine").pk


@pytest.fixture
def people(account):
    """A table without policies, by its folded name."""
    tables.create(account, "People")
    return "people"


def test_a_new_table_has_none(account, people):
    assert policies.stored(account, people) == []


def test_come_back_as_they_were_set(account, people):
    policies.replace(account, people, FIVE)

    assert policies.stored(account, people) == FIVE
    assert policies.stored(account, people) == FIVE


def test_replace_all_that_were_there(account, people):
    policies.replace(account, people, FIVE)
    policies.replace(account, people, FIVE[::-1])
    assert policies.stored(account, people) == FIVE[::-1]

    policies.replace(account, people, FIVE[:1])
    assert policies.stored(account, people) == FIVE[:1]

    policies.replace(account, people, [])
    assert policies.stored(account, people) == []
    assert not StoredAccessPolicy.objects.exists()


def test_belong_to_one_table(account, people):
    tables.create(account, "others")
    elsewhere = accounts.add("policiesofothers").pk
    tables.create(elsewhere, "people")
    policies.replace(account, people, FIVE)

    assert policies.stored(account, "others") == []
    assert policies.stored(elsewhere, "people") == []


@pytest.mark.parametrize(
    ("identifiers", "error"),
    [
        ([*FIVE, SignedIdentifier("sixth")], InvalidXmlDocument),
        ([FIVE[0], FIVE[0]], InvalidXmlDocument),
        ([SignedIdentifier("")], InvalidXmlDocument),
        ([SignedIdentifier("a", AccessPolicy(permission="x"))], InvalidXmlNodeValue),
    ],
)
def test_refused_ones_leave_the_others_in_place(account, people, identifiers, error):
    policies.replace(account, people, FIVE)

    with pytest.raises(error):
        policies.replace(account, people, identifiers)

    assert policies.stored(account, people) == FIVE


def test_a_missing_table_has_none(account, people):
    tables.create(account, "gone")
    policies.replace(account, "gone", FIVE)
    tables.delete(account, "gone")

    for table in ("gone", "missing"):
        with pytest.raises(ResourceNotFound):
            policies.stored(account, table)
        with pytest.raises(ResourceNotFound):
            policies.replace(account, table, FIVE)


def test_a_table_made_anew_has_none_of_the_old(account, people):
    policies.replace(account, people, FIVE)
    tables.delete(account, people)
    tables.create(account, people)

    assert policies.stored(account, people) == []
    policies.replace(account, people, FIVE)
    assert tables.drop_expired_tables() == 1
    assert policies.stored(account, people) == FIVE


def test_the_metrics_of_the_service_have_none(account):
    with pytest.raises(InsufficientAccountPermissions):
        policies.replace(account, "$metricshourprimarytransactionstable", [])


async def test_count_at_once_for_whoever_keeps_a_snapshot():
    account = await in_thread(accounts.add, "heedful")
    await in_thread(tables.create, account.pk, "people")
    catalog = Catalog(settings.LANES_CONNINFO)
    await catalog.open()
    try:
        known = await catalog.account("heedful")
        for identifiers in (FIVE, FIVE[:2], []):
            await in_thread(policies.replace, account.pk, "people", identifiers)

            expected = {item.identifier: item.policy or AccessPolicy() for item in identifiers}
            assert (await catalog.table(known, "people")).policies == expected
    finally:
        await catalog.close()


async def test_of_many_sets_at_once_one_is_left_whole():
    account = (await in_thread(accounts.add, "atonce")).pk
    await in_thread(tables.create, account, "people")
    sets = [[SignedIdentifier(f"{number}-{place}") for place in range(number % 6)] for number in range(12)]

    await asyncio.gather(
        *(in_thread(policies.replace, account, "people", identifiers) for identifiers in sets)
    )

    assert await in_thread(policies.stored, account, "people") in sets


async def test_a_table_that_goes_meanwhile_is_not_there():
    account = (await in_thread(accounts.add, "coming")).pk
    for _ in range(5):
        await in_thread(tables.create, account, "people")

        results = await asyncio.gather(
            in_thread(policies.replace, account, "people", FIVE),
            in_thread(tables.delete, account, "people"),
            in_thread(policies.replace, account, "people", FIVE[:1]),
            return_exceptions=True,
        )

        assert {type(result) for result in results} <= {Activity, ResourceNotFound}
        with pytest.raises(ResourceNotFound):
            await in_thread(policies.stored, account, "people")


def test_only_take_the_place_of_those_that_were_seen(account, people):
    policies.replace(account, people, FIVE)
    with pytest.raises(activity.ChangedSince):
        policies.replace(account, people, FIVE[:1], seen=FIVE[:4])
    assert policies.stored(account, people) == FIVE

    assert policies.replace(account, people, FIVE[:1], seen=FIVE)
    # whoever wanted what is there by now has it
    assert policies.replace(account, people, FIVE[:1], seen=FIVE) is None
    assert policies.stored(account, people) == FIVE[:1]


def test_absent_and_empty_are_not_the_same_set(account, people):
    policies.replace(account, people, [SignedIdentifier("a", AccessPolicy(start=""))])
    for seen in (SignedIdentifier("a"), SignedIdentifier("a", AccessPolicy())):
        with pytest.raises(activity.ChangedSince):
            policies.replace(account, people, FIVE, seen=[seen])


def test_tables_that_have_some(account, people):
    for name in ("Other", "none"):
        tables.create(account, name)
    policies.replace(account, people, FIVE)
    policies.replace(account, "other", FIVE[:2])
    found = policies.tables_with_policies(account, but=tables.get(account, people).pk)
    assert [(table.name, table.policy_count) for table in found] == [("Other", 2)]
