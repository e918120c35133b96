"""The activity log: every operation is recorded, can be found, and is never changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from storage.access import policies
from storage.accounts import account_settings, accounts, removal, sealed_keys, service_properties
from storage.accounts.accounts import NewAccount
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.activity import ActivityFilter, ActivityPage
from storage.core import registry
from storage.domain.access.actor import COMMAND, SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import OperationTimedOut
from storage.domain.history.recorded import Op
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, Metrics, ServiceProperties
from storage.entities.subject import EntityVerb
from storage.history import changes
from storage.models import Activity, EntityChange
from storage.sql.background import allowing_deletion
from storage.sql.django import limited
from storage.tables import tables
from storage.tables.subject import TableVerb

pytestmark = pytest.mark.django_db

ADA = Actor(ActorKind.USER, "ada", "192.0.2.1", "Firefox", "request-1")
KEY = EntityKey("p", "r")


@pytest.fixture
def account():
    return accounts.add("acme", NewAccount(label="Acme"), by=ADA)


@pytest.fixture
def people(account):
    return tables.create(account, "People", by=ADA)


def verbs(**conditions):
    return [registry.verbs()[found.verb] for found in activity.page(ActivityFilter(**conditions)).activities]


def changed(people, *keys, by=ADA):
    edited = dict.fromkeys(keys, 1)
    return activity.record(EntityVerb.CHANGE, by, account=people.account, table=people, edited=edited)


def former(people, key=KEY, before=None, after='\n,"A":1', by=ADA):
    """Record what an older version has stored."""
    done = activity.record(EntityVerb.CHANGE, by, account=people.account, table=people)
    EntityChange.objects.create(
        activity=done,
        place=0,
        table=people,
        partition_key=key.partition_key,
        row_key=key.row_key,
        key_digest=b"",
        before=before,
        after=after,
        ticks_before=None if before is None else 5,
        ticks_after=None if after is None else 6,
    )
    return done


def test_says_who_did_what_and_from_where(account):
    (kept,) = Activity.objects.all()
    assert (kept.verb, kept.account_name, kept.table_name) == ("account.create", "acme", "")
    assert (kept.actor_kind, kept.actor, kept.address, kept.agent, kept.request_id) == (
        "user", "ada", "192.0.2.1", "Firefox", "request-1",
    )  # fmt: skip
    assert kept.after["label"] == "Acme"


def test_a_client_may_call_itself_anything():
    actor = Actor(ActorKind.BEARER, "\0" + "n" * 300, "a" * 99, "\ud800" + "x" * 300, "i" * 99)
    kept = activity.record(TableVerb.CREATE, actor)
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
        tables.create(account, "people", by=ADA)
    tables.delete(account, "people", by=ADA, keep=timedelta(days=7))
    tables.restore(people, by=ADA)
    removal.remove("acme", with_tables=True, by=COMMAND)

    result = activity.page(ActivityFilter()).activities
    assert [it.verb for it in result] == [
        AccountVerb.DELETE, TableVerb.RESTORE, TableVerb.DELETE, TableVerb.CHANGE, AccountVerb.CHANGE,
        TableVerb.CREATE, AccountVerb.CREATE,
    ]  # fmt: skip
    assert {(it.account_name, it.table_name) for it in result} == {("acme", ""), ("acme", "People")}
    assert result[0].detail == {"tables": ["People"]}


def test_no_key_is_ever_in_it(account):
    accounts.rotate("acme", 2, by=ADA)
    keys = [sealed_keys.encode_key(key) for key in sealed_keys.keys_of(accounts.find("acme"))]
    kept = Activity.objects.order_by("pk").last()
    assert (kept.verb, kept.detail) == (AccountVerb.KEY_ROTATE, {"key": "key2"})
    for row in Activity.objects.values():
        assert not [key for key in keys if key in str(row)]


@pytest.mark.django_db(transaction=True)
def test_policies_and_service_properties(account, people):
    one = [SignedIdentifier("readers", AccessPolicy(None, "", "r")), SignedIdentifier("bare")]
    kept = policies.replace_by_name(account, "people", one, by=ADA)
    assert kept.before == []
    assert policies.read(Activity.objects.get(pk=kept.pk).after) == one
    assert policies.replace_by_name(account, "people", one, by=ADA) is None

    properties = ServiceProperties(
        DEFAULT_PROPERTIES.logging,
        DEFAULT_PROPERTIES.hour_metrics,
        Metrics(enabled=True),
        DEFAULT_PROPERTIES.cors,
    )
    kept = service_properties.replace(account, lambda _: properties, by=ADA)
    kept = Activity.objects.get(pk=kept.pk)
    assert service_properties.read(kept.before) == DEFAULT_PROPERTIES
    assert service_properties.read(kept.after) == properties


# the log is immutable


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
    former(people)
    with transaction.atomic():
        with allowing_deletion():
            pass
        with pytest.raises(DatabaseError, match="only added to"), transaction.atomic():
            change()


def test_tidying_cannot_change_the_log_either(account):
    with pytest.raises(DatabaseError, match="only added to"), transaction.atomic(), allowing_deletion():
        Activity.objects.update(actor="somebody else")


def test_old_activities_are_dropped(people, settings, monkeypatch):
    former(people)
    settings.ACTIVITY_DAYS = 90
    now = datetime.now(UTC)
    activity.tidy(now + timedelta(days=89))
    assert Activity.objects.count() == 3

    monkeypatch.setattr(activity, "_TIDY_BATCH", 2)
    activity.tidy(now + timedelta(days=91))
    assert Activity.objects.count() == EntityChange.objects.count() == 0


# entities


def test_shows_entities_as_older_versions_have_stored_them(people):
    content = '\n,"Id@odata.type":"Edm.Int64"\n,"Id":"9223372036854775807"\n,"T":"\\u0000\\ud800"'
    for op, before, after in ((Op.INSERT, None, content), (Op.UPDATE, content, ""), (Op.DELETE, "", None)):
        done = former(people, before=before, after=after)
        [change] = changes.made_by(done)
        assert (change.op, change.key, change.actor) == (op, KEY, ADA)
        images = [it and it.content.decode() for it in (change.before, change.after)]
        assert images == [before, after]
        assert activity.count_changes(done) == 1


def test_keeps_the_first_keys(people):
    keys = [EntityKey("p", str(number)) for number in range(activity.KEYS + 1)]
    done = changed(people, *keys)
    assert (activity.count_changes(done), activity.keys_of(done)) == (len(keys), keys[:-1])


# found again


def test_finds_by_everything(account, people):
    other = accounts.add("other", by=SERVER)
    changed(people, EntityKey("other", ""), EntityKey("se", "ada%_"), by=Actor(ActorKind.USER, "Eve"))
    former(people, EntityKey("pe", "b%_"), by=Actor(ActorKind.USER, "Bob"))
    assert verbs(account_ids=[other.pk]) == [AccountVerb.CREATE]
    assert verbs(account_ids=[]) == []
    assert verbs(actor="ev") == [EntityVerb.CHANGE]
    entered = [EntityVerb.CHANGE, EntityVerb.CHANGE, TableVerb.CREATE]
    assert verbs(verbs=[TableVerb.CREATE, EntityVerb.CHANGE]) == entered
    assert verbs(table="PEOPLE") == entered
    assert verbs(key="a%_") == verbs(key="se") == verbs(key="b%_") == [EntityVerb.CHANGE]
    assert verbs(key="e") == [EntityVerb.CHANGE, EntityVerb.CHANGE]
    assert verbs(key="a%b") == verbs(key="partition_key") == verbs(key=",") == []
    now = datetime.now(UTC)
    assert verbs(since=now) == verbs(until=now - timedelta(minutes=1)) == []
    assert len(verbs(since=now - timedelta(minutes=1), until=now)) == 5
    assert [entry.changed for entry in activity.page(ActivityFilter()).activities] == [1, 2, 0, 0, 0]


def test_pages_in_both_directions(account):
    for number in range(9):
        account_settings.change(account, label=str(number))
    criteria = ActivityFilter(account_ids=[account.pk], verbs=[AccountVerb.CHANGE])
    labels = lambda page: [entry.after["label"] for entry in page.activities]  # noqa: E731

    first = activity.page(criteria, top=4)
    assert labels(first) == ["8", "7", "6", "5"]
    second = activity.page(criteria, before=first.older, top=4)
    assert labels(second) == ["4", "3", "2", "1"]
    last = activity.page(criteria, before=second.older, top=4)
    assert (labels(last), last.older) == (["0"], None)

    newer = replace(criteria, since=second.activities[-1].at)
    back = activity.page(newer, top=4, oldest_first=True)
    assert (back.activities, back.older is None) == (second.activities, False)
    assert activity.page(newer, top=4) == first
    newest = replace(criteria, since=first.activities[-1].at)
    assert activity.page(newest, top=4, oldest_first=True) == ActivityPage(first.activities, None)


def test_searching_has_a_limit(account):
    limit = limited(timedelta(milliseconds=500))
    with pytest.raises(OperationTimedOut), limit, connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(10)")
    assert verbs() == [AccountVerb.CREATE]  # the connection goes on as before


def test_exports_all(account, monkeypatch):
    monkeypatch.setattr(activity, "_BATCH", 2)
    for number in range(5):
        account_settings.change(account, label=str(number))
    exported = list(activity.export(ActivityFilter()))
    assert [entry.pk for entry in exported] == sorted((entry.pk for entry in exported), reverse=True)
    assert len(exported) == 6
