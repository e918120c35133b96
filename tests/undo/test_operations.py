"""Undo of operations, and redo."""

import asyncio

import pytest
from django.utils import timezone

from storage.access import policies
from storage.accounts import account_settings, accounts, removal, service_properties
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.activity.subject import ActivityVerb
from storage.activity.undoing import CannotUndo, Reason
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, Metrics, ServiceProperties
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits, entities
from storage.entities.subject import EntityVerb
from storage.history import retention
from storage.models import Activity, Table
from storage.relations.history import recorder
from storage.runtime.threads import in_thread
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.tables.subject import TableVerb
from storage.tables.tables import DELETED_TABLE_RETENTION
from storage.undo.undo import superseded, undo, undo_all

# as a server does it: some of it in transactions that cannot be part of another
pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
READERS = [SignedIdentifier("readers", AccessPolicy(None, None, "r"))]


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def people(account):
    return tables.create(account, "People")


def entity(key="a", /, partition="p", **properties):
    return Entity(EntityKey(partition, key), {n: EdmValue(Edm.INT64, v) for n, v in properties.items()})


def apply(table, *changes):
    return edits.apply(table, changes, by=ADA).activity


def content(table):
    page = entities.page(table, EntityQuery())
    return {
        stored.key.row_key: {n: v.value for n, v in read_stored(stored).properties.items()}
        for stored in page.entities
    }


def reason(done):
    with pytest.raises(CannotUndo) as caught:
        undo(done, ADA)
    assert caught.value.done == done
    return caught.value.reason


# entities


def test_back_and_forth(people):
    apply(people, Insert(entity("a", A=1)), Insert(entity("b", B=2**63 - 1)))
    before = content(people)
    done = apply(
        people,
        Delete(EntityKey("p", "a"), ANY),
        Update(entity("b", C=3), ANY, merge=True),
        Insert(entity("c")),
    )
    after = content(people)
    assert after == {"b": {"B": 2**63 - 1, "C": 3}, "c": {}}

    for _ in range(2):
        done = undo(done, ADA)
        assert (done.verb, done.effective_verb) == (ActivityVerb.UNDO, EntityVerb.CHANGE)
        assert content(people) == before
        done = undo(done, ADA)
        assert content(people) == after


def test_several_partitions(people):
    done = apply(people, *(Insert(entity("a", partition=partition)) for partition in "cab"))
    undone = undo(done, ADA)
    assert (content(people), undone.effective_verb, undone.undoes) == ({}, EntityVerb.DELETE, done)
    assert reason(done) == Reason.ALREADY_UNDONE


def test_only_once_even_if_all_is_again_as_it_was(people):
    done = tables.change(people, description="New")
    undo(done, ADA)
    tables.change(people, description="New")
    assert reason(done) == Reason.ALREADY_UNDONE


def test_another_key(people):
    apply(people, Insert(entity("a", A=1)))
    done = edits.change_key(people, EntityKey("p", "a"), EntityKey("q", "b"), ANY, by=ADA).activity
    undone = undo(done, ADA)
    assert content(people) == {"a": {"A": 1}}
    assert (undone.effective_verb, activity.keys_of(undone)[0]) == (EntityVerb.REKEY, EntityKey("p", "a"))
    undo(undone, ADA)
    assert content(people) == {"b": {"A": 1}}


@pytest.mark.parametrize(
    ("do", "since", "expected"),
    [
        (Insert(entity("b")), Update(entity("b", X=1), ANY, merge=False), Reason.CHANGED_SINCE),
        (Insert(entity("b")), Delete(EntityKey("p", "b"), ANY), Reason.GONE),
        (Update(entity("a", X=1), ANY, merge=True), Update(entity("a", X=2), ANY, merge=True), Reason.CHANGED_SINCE),
        (Update(entity("a", X=1), ANY, merge=True), Delete(EntityKey("p", "a"), ANY), Reason.GONE),
        (Delete(EntityKey("p", "a"), ANY), Insert(entity("a", X=9)), Reason.CHANGED_SINCE),
    ],
)  # fmt: skip
def test_later_changes_prevent_an_undo(people, do, since, expected):
    apply(people, Insert(entity("a", A=1)))
    done = apply(people, do, Insert(entity("z")))
    apply(people, since)
    left = content(people)

    with pytest.raises(CannotUndo) as caught:
        undo(done, ADA)
    assert (caught.value.reason, caught.value.key) == (expected, do.key)
    assert content(people) == left


def test_changes_without_history_cannot_be_undone(account, people):
    done = apply(people, Insert(entity("a")))
    account_settings.change(account, history_days=0)
    retention.tidy(timezone.now())
    assert reason(done) == Reason.NO_HISTORY
    account_settings.change(account, history_days=7)
    assert reason(done) == Reason.NOT_KEPT
    assert superseded(activity.page(ActivityFilter(verbs=[EntityVerb.INSERT])).activities) == {done.pk}


def test_changes_overwritten_by_a_client_are_superseded(people):
    done = [apply(people, Insert(entity(name)), Insert(entity(f"{name}2"))) for name in "ab"]
    run(
        sql.change(relation_name(people.pk), Delete(EntityKey("p", "a2"), ANY), recorder(people.account, ADA))
    )
    assert superseded(activity.page(ActivityFilter(verbs=[EntityVerb.INSERT])).activities) == {done[0].pk}


async def test_only_once_by_two_at_the_same_time():
    account = await in_thread(accounts.add, "acme")
    table = await in_thread(tables.create, account, "People")
    done = [
        await in_thread(lambda: apply(table, Insert(entity("a")))),
        await in_thread(lambda: tables.change(table, by=ADA, description="New")),
    ]
    for it in done:
        results = await asyncio.gather(*(in_thread(undo, it, ADA) for _ in range(4)), return_exceptions=True)
        refused = [result.reason for result in results if isinstance(result, CannotUndo)]
        assert len(refused) == 3
        assert set(refused) <= {Reason.ALREADY_UNDONE, Reason.GONE, Reason.CHANGED_SINCE}
        assert await in_thread(Activity.objects.filter(undoes=it).count) == 1


def test_changes_of_a_deleted_table_are_undone_after_its_restore(account, people):
    done = apply(people, Insert(entity("a")))
    tables.delete(account, "people", keep=DELETED_TABLE_RETENTION)
    assert reason(done) == Reason.GONE
    tables.restore(people)
    undo(done, ADA)
    assert content(people) == {}


def test_changes_in_a_read_only_account_are_not_undone(account, people, settings_done):
    done = [apply(people, Insert(entity("a"))), *settings_done[1:]]
    done.append(tables.delete(account, "people", keep=DELETED_TABLE_RETENTION))
    account_settings.change(account, read_only=True)
    assert reason(done[-1]) == reason(done[-2]) == Reason.READ_ONLY
    account_settings.change(account, read_only=False)
    undo(done.pop(), ADA)
    account_settings.change(account, read_only=True)
    assert {reason(it) for it in done} == {Reason.READ_ONLY}


def test_a_key_rotation_cannot_be_undone(account):
    accounts.rotate("acme", 1)
    assert reason(Activity.objects.order_by("pk").last()) == Reason.NEVER


# tables


def test_a_deleted_table_comes_back_with_all_it_had(account, people):
    apply(people, Insert(entity("a", A=1)))
    tables.change(people, description="Of people", tags=["one"])
    policies.replace_by_name(account, "people", READERS)
    done = tables.delete(account, "people", by=ADA, keep=DELETED_TABLE_RETENTION)

    undone = undo(done, ADA)
    assert undone.effective_verb is TableVerb.RESTORE
    back = tables.get(account, "PEOPLE")
    assert (back.pk, back.name, back.description, back.tags) == (people.pk, "People", "Of people", ["one"])
    assert policies.stored_by_name(account, "people") == READERS
    assert content(back) == {"a": {"A": 1}}
    apply(back, Insert(entity("b")))

    gone = undo(undone, ADA)
    assert tables.find(account, "people") is None
    undo(gone, ADA)
    assert set(content(people)) == {"a", "b"}


def test_not_when_the_name_is_taken(account, people):
    done = tables.delete(account, "people", keep=DELETED_TABLE_RETENTION)
    other = tables.create(account, "pEOPLE")
    assert reason(done) == Reason.NAME_TAKEN
    tables.delete(account, "people")
    tables.drop_expired_tables()
    assert undo(done, ADA).table_id != other.pk


def test_not_when_it_is_not_kept(account, people):
    assert reason(tables.delete(account, "people")) == Reason.TOO_OLD
    again = tables.create(account, "people")
    assert tables.drop_expired_tables() == 1
    done = tables.delete(account, "people", keep=DELETED_TABLE_RETENTION)
    assert tables.deleted(account) == [again]
    assert tables.drop_expired_tables() == 0
    Table.objects.filter(pk=done.table_id).update(kept_until=timezone.now())
    assert reason(done) == Reason.TOO_OLD
    assert tables.deleted(account) == []
    assert tables.drop_expired_tables() == 1


def test_a_new_table_goes_while_it_is_empty(account, people):
    done = activity.latest(people, TableVerb.CREATE)
    apply(people, Insert(entity("a")))
    assert reason(done) == Reason.CHANGED_SINCE
    apply(people, Delete(EntityKey("p", "a"), ANY))
    undo(undo(done, ADA), ADA)
    assert tables.find(account, "people") == people


def test_several_at_once_or_none(account, people):
    other = tables.create(account, "others")
    for table in (people, other):
        policies.replace_by_name(account, table.folded_name, READERS)
    done = [tables.delete(account, name, keep=DELETED_TABLE_RETENTION) for name in ("people", "others")]

    back = undo_all(done, ADA)
    assert [it.table_name for it in back] == ["others", "People"]
    gone = undo_all(back, ADA)
    assert tables.find(account, "people") is None

    tables.create(account, "people")
    with pytest.raises(CannotUndo) as caught:
        undo_all(gone, ADA)
    assert caught.value.reason == Reason.NAME_TAKEN
    assert tables.find(account, "others") is None


# settings


METRICS = ServiceProperties(minute_metrics=Metrics(enabled=True))


@pytest.fixture
def settings_done(account, people):
    """Change settings of an account and a table, and return the activities."""
    tables.change(people, description="First", tags=["a"])
    return [
        account_settings.change(account, by=ADA, read_only=False, label="New", networks=["10.0.0.0/8"]),
        tables.change(people, description="Second", by=ADA),
        policies.replace_by_name(account, "people", READERS),
        service_properties.replace(account, lambda _: METRICS),
    ]


def settings_of(account, people):
    account.refresh_from_db()
    people.refresh_from_db()
    return [
        (account.label, account.networks),
        people.description,
        policies.stored_by_name(account, "people"),
        service_properties.get(account),
    ]


def test_settings_go_back_and_forth(account, people, settings_done):
    tables.change(people, tags=["b"])
    redo = [undo(Activity.objects.get(pk=done.pk), ADA) for done in settings_done]
    assert settings_of(account, people) == [("", []), "First", [], DEFAULT_PROPERTIES]
    for done in redo:
        undo(Activity.objects.get(pk=done.pk), ADA)
    assert settings_of(account, people) == [("New", ["10.0.0.0/8"]), "Second", READERS, METRICS]
    assert people.tags == ["b"]


def test_settings_that_were_changed_since_stay(account, people, settings_done):
    account_settings.change(account, label="b")
    tables.change(people, description="b")
    policies.replace_by_name(account, "people", [])
    service_properties.replace(account, lambda _: DEFAULT_PROPERTIES)
    assert [reason(done) for done in settings_done] == [Reason.CHANGED_SINCE] * 4
    removal.remove("acme", with_tables=True)
    assert [reason(done) for done in settings_done[:3]] == [Reason.GONE] * 3
