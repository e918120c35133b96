"""A database before PostgreSQL 18, which cannot record changes: everything else works, and it is said what does not."""

from datetime import UTC, datetime

import pytest

from storage.accounts import account_settings, accounts
from storage.accounts.refusals import AccountError
from storage.activity.undoing import CannotUndo, Reason
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, StoredEntity
from storage.domain.errors import ResourceNotFound
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits, entities
from storage.history import feed, last_change, retention
from storage.history.feed import OLDEST, Feed, NoHistory
from storage.models import Activity
from storage.relations import history
from storage.runtime import doctor
from storage.sql import history as statements
from storage.tables import tables
from storage.undo import undo

ADA = Actor(ActorKind.USER, "ada")
KEY = EntityKey("p", "r")


def entity(number):
    return Entity(KEY, {"A": EdmValue(Edm.INT32, number)})


@pytest.fixture
def older(db, monkeypatch):
    """Give this PostgreSQL the version of one that cannot record."""
    monkeypatch.setattr(statements, "OLDEST_POSTGRESQL", 99_00_00)


@pytest.fixture
def account(db):
    return accounts.add("acme")


def findings():
    return [finding.text for finding in doctor.parts()["database"]() if "history" in finding.text]


def test_changes_are_made_but_not_recorded(older, account):
    table = tables.create(account, "people")
    changes = [
        Insert(entity(1)),
        Update(entity(2), ANY, merge=True),
        Upsert(entity(3), merge=True),
        Delete(KEY, ANY),
    ]
    done = [edits.apply_one(table, change, by=ADA) for change in changes]

    assert not history.is_recorded(account)
    assert retention.kept(account) == (None, 0)
    with pytest.raises(NoHistory):
        feed.read(Feed(account.pk), OLDEST)
    with pytest.raises(CannotUndo) as cannot:
        undo.undo(Activity.objects.get(pk=done[-1].activity.pk), ADA)
    assert cannot.value.reason is Reason.NO_HISTORY
    # the activity log knows who left an entity as it is, or deleted it
    assert last_change.of_entity(table, KEY, None).actor.name == "ada"
    stored = edits.apply_one(table, Insert(entity(1)), by=ADA).after[KEY]
    assert last_change.of_entity(table, KEY, stored).actor.name == "ada"
    unknown = StoredEntity(stored.keys, b"1", stored.content)
    assert last_change.of_entity(table, KEY, unknown) is None


def test_a_recent_change_is_undone_and_redone_without_history(older, account):
    table = tables.create(account, "people")
    stored = edits.apply_one(table, Insert(entity(1)), by=ADA).after[KEY]
    done = edits.apply_one(table, Delete(KEY, ANY), by=ADA).activity
    for expected in (stored.content, None):
        done = undo.undo(done, ADA)
        result = entities.get(table, KEY)
        assert (result and result.content) == expected


def test_it_is_said(older, account):
    assert len(findings()) == 1
    with pytest.raises(AccountError, match="needs PostgreSQL 18"):
        account_settings.change(account, by=ADA, history_days=30)


def test_a_history_does_not_go_on_after_a_gap(account, monkeypatch):
    if not history.is_available():
        pytest.skip("this PostgreSQL cannot record")
    table = tables.create(account, "people")
    edits.apply_one(table, Insert(entity(1)), by=ADA)
    assert history.is_recorded(account)
    assert not findings()

    with monkeypatch.context() as patch:
        patch.setattr(statements, "OLDEST_POSTGRESQL", 99_00_00)
        feed.keep_mark()
        edits.apply_one(table, Upsert(entity(2), merge=False), by=ADA)
        retention.tidy(datetime.now(UTC))
    assert not history.is_recorded(account)
    retention.tidy(datetime.now(UTC))

    assert history.is_recorded(account)
    began = retention.kept(account).since
    assert began > table.created_at
    edits.apply_one(table, Delete(KEY, ANY), by=ADA)
    with pytest.raises(ResourceNotFound):
        edits.apply_one(table, Delete(KEY, ANY), by=ADA)
