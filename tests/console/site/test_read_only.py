"""A read-only account in the console: nothing in it changes, by whatever form, and everybody is told why."""

import pytest
from django.urls import reverse

from console.grid.tokens import encode_key
from storage.access import policies
from storage.accounts import account_settings, accounts, service_properties
from storage.activity import activity
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.query import EntityQuery
from storage.entities import edits, entities
from storage.tables import tables
from storage.tables.tables import DELETED_TABLE_RETENTION

KEY = EntityKey("se", "ada")


@pytest.fixture
def table(add_entity, account):
    return tables.get(account, "people")


@pytest.fixture
def locked(account, table):
    """Make a read-only account with a table, a deleted table, and an activity that could be undone."""
    tables.create(account, "gone")
    deleted = tables.delete(account, "gone", keep=DELETED_TABLE_RETENTION)
    done = edits.apply(table, [Insert(Entity(KEY, {}))], by=Actor(ActorKind.USER, "alice")).activity
    account_settings.change(account, read_only=True)
    return account, table, done, deleted


def state(account, table):
    return (
        [table.name for table in tables.deleted(account)],
        tables.counts([account.pk]),
        list(entities.page(table, EntityQuery()).entities),
        policies.stored_by_name(account, "people"),
        service_properties.get(account),
        type(table).objects.values_list("description", "tags").get(pk=table.pk),
    )


FORMS = {
    "tables:new": ([], {"name": "others"}),
    "tables:delete": ([], {"table": "people"}),
    "tables:tag": ([], {"table": "people", "add": "x"}),
    "tables:sample": ([], {}),
    "tables:rename": (["people"], {"name": "visitors"}),
    "tables:copy": (["people"], {"name": "visitors"}),
    "tables:notes": (["people"], {"description": "x", "tags": "x"}),
    "entities:delete": (["people"], {"scope": "rows", "key": encode_key(KEY)}),
}


def test_forms_of_a_read_only_account_are_refused(visit, locked):
    client = visit("alice")
    for name in FORMS:
        account, table, *_ = locked
        before = state(account, table)
        arguments, data = FORMS[name]
        answer = client.post(reverse(name, args=["acme", *arguments]), data)
        assert answer.status_code in {302, 303, 403, 409, 422}, name
        assert state(account, table) == before, name


def test_brings_nothing_back(visit, locked):
    account, table, done, deleted = locked
    before = state(account, table)
    alice = visit("alice")
    for it in (done, deleted):
        answer = alice.post(reverse("activity:undo", args=[it.pk]), {"next": "/ui/a/acme/"})
        assert "the account is read-only" in alice.get(answer["Location"]).content.decode()
    alice.post(reverse("tables:restore", args=["acme"]), {"table": deleted.table_id, "id": deleted.table_id})
    assert state(account, table) == before


def test_its_lock_can_be_undone(visit, locked):
    account, *_ = locked
    done = activity.find(activity.ActivityFilter(account_ids=[account.pk])).order_by("-pk").first()
    visit("alice").post(reverse("activity:undo", args=[done.pk]))
    assert not accounts.find("acme").read_only
    assert policies.replace_by_name(account, "people", [SignedIdentifier("a")])


def test_offers_no_way_back_but_the_key(visit, locked):
    page = visit("alice").get(reverse("activity:index", args=["acme"])).content.decode()
    assert page.count("/ui/undo/") == 1
