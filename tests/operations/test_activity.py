"""The record of what was done: with every operation, found again, and never changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from storage.domain.access.actor import COMMAND, SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.errors import OperationTimedOut
from storage.domain.service.activity import Verb
from storage.domain.service.recorded import ChangedEntity
from storage.domain.service.service_properties import DEFAULT_PROPERTIES, Metrics, ServiceProperties
from storage.models import Activity, EntityChange
from storage.operations.access import policies
from storage.operations.accounts import account_settings, accounts, removal, sealed_keys, service_properties
from storage.operations.accounts.accounts import NewAccount
from storage.operations.activity import activity
from storage.operations.activity.activity import ActivityFilter
from storage.operations.tables import tables
from storage.sql.background import allowing_deletion
from storage.sql.django import limited

pytestmark = pytest.mark.django_db

ADA = Actor(ActorKind.USER, "ada", "192.0.2.1", "Firefox", "request-1")
KEY = EntityKey("p", "r")


@pytest.fixture
def account():
    return accounts.add("acme", NewAccount(label="Acme"), by=ADA)


@pytest.fixture
def people(account):
    return tables.create(account.pk, "People", by=ADA)


def verbs(**conditions):
    return [Verb(found.verb) for found in activity.page(ActivityFilter(**conditions)).activities]


def image(ticks, content=b'\n,"A":1', key=KEY):
    return StoredEntity(encode_entity_key(key), b"%d" % ticks, content)


def changed(people, *changes, by=ADA, verb=Verb.ENTITY_CHANGE, account=None):
    kept = activity.record(verb, by, account=people.account, table=people)
    activity.record_changes(kept, people, changes)
    return kept


def test_says_who_did_what_and_from_where(account):
    (kept,) = Activity.objects.all()
    assert (kept.verb, kept.account_name, kept.table_name) == ("account.create", "acme", "")
    assert (kept.actor_kind, kept.actor, kept.address, kept.agent, kept.request_id) == (
        "user", "ada", "192.0.2.1", "Firefox", "request-1",
    )  # fmt: skip
    assert kept.after["label"] == "Acme"


def test_a_client_may_call_itself_anything():
    actor = Actor(ActorKind.BEARER, "\0" + "n" * 300, "a" * 99, "\ud800" + "x" * 300, "i" * 99)
    kept = activity.record(Verb.TABLE_CREATE, actor)
    kept.refresh_from_db()
    assert kept.actor == "n" * 255
    assert kept.agent.startswith("?x")
    assert [len(text) for text in (kept.address, kept.agent, kept.request_id)] == [64, 256, 64]


def test_every_control_operation_leaves_one_record(account, people):
    kept = account_settings.change(account, by=ADA, label="New", colour="")
    assert (kept.before, kept.after) == ({"label": "Acme"}, {"label": "New"})
    kept = tables.change(people, by=ADA, tags=["a", "b"])
    assert (kept.before, kept.after) == ({"tags": []}, {"tags": ["a", "b"]})
    assert account_settings.change(account, by=ADA, label="New") is None
    assert tables.change(people, by=ADA, description="", tags=["a", "b"]) is None
    with pytest.raises(Exception, match="already exists"), transaction.atomic():
        tables.create(account.pk, "people", by=ADA)
    tables.delete(account.pk, "people", by=ADA, keep=timedelta(days=7))
    tables.restore(people.pk, by=ADA)
    removal.remove("acme", with_tables=True, by=COMMAND)

    found = activity.page(ActivityFilter()).activities
    assert [it.verb for it in found] == [
        Verb.ACCOUNT_DELETE, Verb.TABLE_RESTORE, Verb.TABLE_DELETE, Verb.TABLE_CHANGE, Verb.ACCOUNT_CHANGE,
        Verb.TABLE_CREATE, Verb.ACCOUNT_CREATE,
    ]  # fmt: skip
    assert {(it.account_name, it.table_name) for it in found} == {("acme", ""), ("acme", "People")}
    assert found[0].detail == {"tables": ["People"]}


def test_no_key_is_ever_in_it(account):
    accounts.rotate("acme", 2, by=ADA)
    keys = [sealed_keys.encode_key(key) for key in sealed_keys.keys_of(accounts.find("acme"))]
    kept = Activity.objects.order_by("pk").last()
    assert (kept.verb, kept.detail) == (Verb.KEY_ROTATE, {"key": "key2"})
    for row in Activity.objects.values():
        assert not [key for key in keys if key in str(row)]


@pytest.mark.django_db(transaction=True)
def test_policies_and_service_properties(account, people):
    one = [SignedIdentifier("readers", AccessPolicy(None, "", "r")), SignedIdentifier("bare")]
    kept = policies.replace(account.pk, "people", one, by=ADA)
    assert kept.before == []
    assert policies.read(Activity.objects.get(pk=kept.pk).after) == one
    assert policies.replace(account.pk, "people", one, by=ADA) is None

    wanted = ServiceProperties(
        DEFAULT_PROPERTIES.logging,
        DEFAULT_PROPERTIES.hour_metrics,
        Metrics(enabled=True),
        DEFAULT_PROPERTIES.cors,
    )
    kept = service_properties.replace(account.pk, lambda _: wanted, by=ADA)
    kept = Activity.objects.get(pk=kept.pk)
    assert service_properties.read(kept.before) == DEFAULT_PROPERTIES
    assert service_properties.read(kept.after) == wanted


# nobody changes it


@pytest.mark.parametrize(
    "change",
    [
        lambda: Activity.objects.update(actor="somebody else"),
        lambda: Activity.objects.all().delete(),
        lambda: EntityChange.objects.update(before=None),
        lambda: EntityChange.objects.all()._raw_delete("default"),
    ],
)
def test_refuses_to_be_changed(people, change):
    changed(people, ChangedEntity(KEY, None, image(1)))
    with transaction.atomic():
        with allowing_deletion():
            pass
        with pytest.raises(DatabaseError, match="only added to"), transaction.atomic():
            change()


def test_not_even_who_tidies_changes_it(account):
    with pytest.raises(DatabaseError, match="only added to"), transaction.atomic(), allowing_deletion():
        Activity.objects.update(actor="somebody else")


def test_drops_what_is_too_old(people, settings, monkeypatch):
    changed(people, ChangedEntity(KEY, None, image(1)))
    settings.ACTIVITY_DAYS = 90
    now = datetime.now(UTC)
    activity.tidy(now + timedelta(days=89))
    assert Activity.objects.count() == 3

    monkeypatch.setattr(activity, "_TIDY_BATCH", 2)
    activity.tidy(now + timedelta(days=91))
    assert Activity.objects.count() == EntityChange.objects.count() == 0


# entities


def test_keeps_entities_as_they_were_and_are(people):
    content = b'\n,"Id@odata.type":"Edm.Int64"\n,"Id":"9223372036854775807"\n,"T":"\\u0000\\ud800"'
    for before, after in ((None, image(5, content)), (image(5, content), image(6)), (image(6), None)):
        wanted = changed(people, ChangedEntity(KEY, before, after))
        assert activity.latest_change(people, KEY) == (wanted, (KEY, before, after))


def test_the_last_change_of_an_entity(people, account):
    other = tables.create(account.pk, "others")
    keys = [EntityKey("a", ""), EntityKey("", "a"), EntityKey("a", "a")]
    for ticks, key in enumerate(keys, start=1):
        changed(people, ChangedEntity(key, None, image(ticks, key=key)))
    changed(other, ChangedEntity(keys[0], None, image(9, key=keys[0])))
    found = [activity.latest_change(people, key) for key in keys]
    assert [it.after.timestamp for _, it in found] == [1, 2, 3]
    assert activity.latest_change(people, KEY) is None


# found again


def test_finds_by_everything(account, people):
    other = accounts.add("other", by=SERVER)
    changed(people, ChangedEntity(EntityKey("se", "ada%_"), None, image(1)), by=Actor(ActorKind.USER, "Eve"))
    assert verbs(account_ids=[other.pk]) == [Verb.ACCOUNT_CREATE]
    assert verbs(account_ids=[]) == []
    assert verbs(actor="ev") == [Verb.ENTITY_CHANGE]
    assert verbs(verbs=[Verb.TABLE_CREATE, Verb.ENTITY_CHANGE]) == [Verb.ENTITY_CHANGE, Verb.TABLE_CREATE]
    assert verbs(table="PEOPLE") == [Verb.ENTITY_CHANGE, Verb.TABLE_CREATE]
    assert verbs(key="a%_") == verbs(key="se") == [Verb.ENTITY_CHANGE]
    assert verbs(key="a%b") == []
    now = datetime.now(UTC)
    assert verbs(since=now) == verbs(until=now - timedelta(minutes=1)) == []
    assert len(verbs(since=now - timedelta(minutes=1), until=now)) == 4
    assert [found.changed for found in activity.page(ActivityFilter()).activities] == [1, 0, 0, 0]


def test_pages_in_both_directions(account):
    for number in range(9):
        account_settings.change(account, label=str(number))
    wanted = ActivityFilter(account_ids=[account.pk], verbs=[Verb.ACCOUNT_CHANGE])
    labels = lambda page: [found.after["label"] for found in page.activities]  # noqa: E731

    first = activity.page(wanted, top=4)
    assert labels(first) == ["8", "7", "6", "5"]
    second = activity.page(wanted, before=first.older, top=4)
    assert labels(second) == ["4", "3", "2", "1"]
    last = activity.page(wanted, before=second.older, top=4)
    assert (labels(last), last.older) == (["0"], None)

    newer = replace(wanted, since=second.activities[-1].at)
    back, has_more = activity.page_of_time(newer, top=4, oldest_first=True)
    assert (back, has_more) == (second.activities, True)
    assert activity.page_of_time(newer, top=4) == (first.activities, True)
    newest = replace(wanted, since=first.activities[-1].at)
    assert activity.page_of_time(newest, top=4, oldest_first=True) == (first.activities, False)


def test_does_not_look_for_ever(account):
    limit = limited(timedelta(milliseconds=1))
    with pytest.raises(OperationTimedOut), limit, connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(10)")
    assert verbs() == [Verb.ACCOUNT_CREATE]  # the connection goes on as before


def test_exports_all(account, monkeypatch):
    monkeypatch.setattr(activity, "_BATCH", 2)
    for number in range(5):
        account_settings.change(account, label=str(number))
    exported = list(activity.export(ActivityFilter()))
    assert [found.pk for found in exported] == sorted((found.pk for found in exported), reverse=True)
    assert len(exported) == 6
