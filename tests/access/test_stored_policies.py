"""Stored access policies as they are kept."""

import asyncio

import pytest

from storage.access import policies
from storage.accounts import accounts
from storage.activity import activity
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.errors import ResourceNotFound
from storage.models import Activity
from storage.runtime.threads import in_thread
from storage.tables import tables

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
    return accounts.add("policiesofmine")


@pytest.fixture
def people(account):
    """Make a table without policies and return its folded name."""
    tables.create(account, "People")
    return "people"


def test_come_back_as_they_were_set_in_one_table(account, people):
    for name in ("Other", "none"):
        tables.create(account, name)
    elsewhere = accounts.add("policiesofothers")
    tables.create(elsewhere, "people")
    policies.replace_by_name(account, people, FIVE)
    policies.replace_by_name(account, "other", FIVE[:2])

    assert policies.stored_by_name(account, people) == FIVE
    assert policies.stored_by_name(account, "other") == FIVE[:2]
    assert policies.stored_by_name(elsewhere, "people") == []
    result = policies.tables_with_policies(account, except_table=tables.get(account, people))
    assert [(table.name, table.policy_count) for table in result] == [("Other", 2)]


async def test_concurrent_replacements_leave_one_whole_set():
    account = await in_thread(accounts.add, "atonce")
    await in_thread(tables.create, account, "people")
    sets = [[SignedIdentifier(f"{number}-{place}") for place in range(number % 6)] for number in range(12)]

    await asyncio.gather(
        *(in_thread(policies.replace_by_name, account, "people", identifiers) for identifiers in sets)
    )

    assert await in_thread(policies.stored_by_name, account, "people") in sets


async def test_a_table_that_goes_meanwhile_is_not_there():
    account = await in_thread(accounts.add, "coming")
    for _ in range(5):
        await in_thread(tables.create, account, "people")

        results = await asyncio.gather(
            in_thread(policies.replace_by_name, account, "people", FIVE),
            in_thread(tables.delete, account, "people"),
            in_thread(policies.replace_by_name, account, "people", FIVE[:1]),
            return_exceptions=True,
        )

        assert {type(result) for result in results} <= {Activity, ResourceNotFound}
        with pytest.raises(ResourceNotFound):
            await in_thread(policies.stored_by_name, account, "people")


def test_only_take_the_place_of_those_that_were_seen(account, people):
    policies.replace_by_name(account, people, [*FIVE[:4], SignedIdentifier("alone", AccessPolicy(start=""))])
    # absent and empty are not the same
    for seen in (FIVE, FIVE[:4]):
        with pytest.raises(activity.ChangedSince):
            policies.replace(tables.get(account, people), FIVE[:1], seen=seen)
    policies.replace_by_name(account, people, FIVE)

    assert policies.replace(tables.get(account, people), FIVE[:1], seen=FIVE)
    # a save that asks for the state that is stored already is not a conflict
    assert policies.replace(tables.get(account, people), FIVE[:1], seen=FIVE) is None
    assert policies.stored_by_name(account, people) == FIVE[:1]
