"""Presence: users who have a table open, in rows of several processes that expire by the database's clock, by
visibility.
"""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role
from storage.models import Membership, Presence
from storage.people import members
from storage.presence import presence
from storage.presence.presence import LIFETIME, Tab
from storage.tables import tables

pytestmark = pytest.mark.django_db
BY = Actor(ActorKind.COMMAND, "test")


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def table(account):
    return tables.create(account, "people", by=BY)


@pytest.fixture
def tab(account, table):
    def tab(name, *, entity="", of=table):
        user, is_new = User.objects.get_or_create(username=name)
        if is_new:
            Membership.objects.create(user=user, account=account, role=Role.VIEWER)
        return Tab(uuid.uuid4(), user.pk, of.pk, entity)

    return tab


def seen(process, *tabs):
    return [(it.username, it.entity) for it in presence.beat(process, tabs)]


def age(seconds=LIFETIME + 1, **which):
    Presence.objects.filter(**which).update(seen_at=F("seen_at") - timedelta(seconds=seconds))


def test_processes_see_the_tabs_of_each_other_in_the_same_tables(account, tab, django_assert_num_queries):
    ada, bob = tab("ada", entity="key"), tab("bob")
    other = tab("carl", of=tables.create(account, "other", by=BY))
    assert seen("one", ada) == [("ada", "key")]
    assert seen("two", other) == [("carl", "")]
    with django_assert_num_queries(1):
        assert seen("two", bob, other) == [("ada", "key"), ("bob", ""), ("carl", "")]
    assert seen("one", ada) == [("ada", "key"), ("bob", "")]
    presence.leave("two", [bob])
    assert seen("one", ada) == [("ada", "key")]
    assert seen("one") == []


def test_rows_of_dead_processes_expire_by_the_clock_of_the_database(tab):
    ada, bob = tab("ada"), tab("bob")
    seen("killed", bob)
    age(LIFETIME - 5, process="killed")
    assert seen("one", ada) == [("ada", ""), ("bob", "")]
    age(10, process="killed")
    assert seen("one", ada) == [("ada", "")]
    assert not Presence.objects.filter(process="killed").exists()
    # a process that only hung writes its own again
    age()
    assert seen("one", ada) == [("ada", "")]
    assert Presence.objects.count() == 1


def test_a_tab_moving_between_processes_is_listed_once(tab):
    ada, bob = tab("ada"), tab("bob")
    seen("one", ada)
    assert seen("two", ada, bob) == [("ada", ""), ("bob", "")]
    presence.leave("one", [ada])
    assert seen("two", ada, bob) == [("ada", ""), ("bob", "")]


def test_a_tab_moves_to_another_entity_and_keeps_it(tab, table):
    ada = tab("ada", entity="first")
    user = User.objects.get(username="ada")
    assert not presence.move(user, ada.tab, table.pk, "early")
    seen("one", ada)
    assert presence.move(user, ada.tab, table.pk, "second")
    assert seen("one", ada) == [("ada", "second")]
    stranger = User.objects.create(username="sam")
    assert not presence.move(stranger, ada.tab, table.pk, "third")


def test_users_without_access_and_hidden_users_are_not_listed(account, tab):
    ada, bob, carl = tab("ada"), tab("bob"), tab("carl")
    User.objects.filter(username="carl").update(hides_presence=True)
    assert seen("one", ada, bob, carl) == [("ada", ""), ("bob", "")]
    members.remove(account, User.objects.get(username="bob"), by=BY)
    assert seen("one", ada, bob, carl) == [("ada", "")]
    User.objects.filter(username="bob").update(is_admin=True)
    User.objects.filter(username="ada").update(is_active=False)
    assert seen("one", ada, bob, carl) == [("bob", "")]


def test_rows_are_not_logged_and_go_with_their_users_and_tables(account, tab, table):
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'storage_presence'")
        assert cursor.fetchone() == ("u",)
    seen("one", tab("ada"), tab("bob"))
    User.objects.get(username="ada").delete()
    assert Presence.objects.count() == 1
    account.delete()
    assert not Presence.objects.exists()
