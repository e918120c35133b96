"""Comments follow entities whose keys are changed, and whatever takes that back or does it again."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from console.models import User
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.service.account_settings import HISTORY_DAYS_LIMIT
from storage.domain.service.comments import Subject
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.models import CommentMove
from storage.operations.accounts import accounts, removal
from storage.operations.changes import key_changes
from storage.operations.changes.changes import ChangeFilter
from storage.operations.comments import comments, threads
from storage.operations.entities import bulk_edit_jobs, edits
from storage.operations.entities.bulk_edits import BulkEditRequest
from storage.operations.jobs import running
from storage.operations.snapshots import snapshot_restores, snapshots
from storage.operations.snapshots.snapshot_restores import RestoreRequest
from storage.operations.tables import tables
from storage.operations.undo import data_undo, undo
from storage.runtime import job_runner
from storage.sql import entities, restoring
from storage.sql.django import run
from storage.sql.relations import relation_name

pytestmark = pytest.mark.django_db(transaction=True)  # chunk by chunk, as a server does it


@pytest.fixture
def table():
    table = tables.create(accounts.add("acme"), "people")
    for row_key in "abz":
        put(table, Insert(Entity(key(row_key), {"N": EdmValue(Edm.INT32, 1)})))
    return table


@pytest.fixture
def ada():
    return User.objects.create(username="ada")


def key(row_key):
    return EntityKey("p", row_key)


def by(name="ada"):
    return Actor(ActorKind.USER, name, request_id=str(uuid.uuid4()))


def put(table, change):
    run(entities.change(relation_name(table.pk), change))


def say(table, ada, **texts):
    for row_key, text in texts.items():
        comments.begin(table, Subject(key(row_key)), text, author=ada, by=by())


def edit(table, row_key="concat('n', RowKey)", where="RowKey lt 'z'"):
    wanted = BulkEditRequest(where, [{"op": "key", "row_key": row_key}])
    return bulk_edit_jobs.outcome_of(job_runner.finish(bulk_edit_jobs.start(table, wanted, by=by())))


def texts(table):
    return {
        thread.row_key: [comment.text for comment in thread.shown] for thread in threads.of_table(table).all()
    }


def test_comments_follow_a_bulk_edit_its_undo_and_the_undo_of_that(table, ada):
    say(table, ada, a="of a", z="of z")
    done = edit(table).activity
    assert texts(table) == {"na": ["of a"], "z": ["of z"]}
    undone = undo.undo(done, by())
    assert texts(table) == {"a": ["of a"], "z": ["of z"]}
    undo.undo(undone, by())
    assert texts(table) == {"na": ["of a"], "z": ["of z"]}


def test_an_undo_in_chunks_leaves_the_comments_of_both_keys_where_one_entity_is(table, ada, monkeypatch):
    monkeypatch.setattr(restoring, "_COLLECT", restoring._COLLECT.replace(f" / {restoring._CHUNK_BYTES}", ""))
    say(table, ada, a="of a", b="of b")
    done = edit(table).activity
    undo.undo(done, by())
    assert texts(table) == {"a": ["of a"], "b": ["of b"]}


def test_entities_that_cannot_be_moved_keep_their_comments(table, ada):
    say(table, ada, a="of a", b="of b")
    edit(table, "'z'", "RowKey eq 'a'")
    edit(table, "'c'", "RowKey lt 'c'")  # only one of them
    assert sorted(texts(table)) == ["b", "c"]


def test_several_moves_are_taken_back_at_once(table, ada):
    say(table, ada, a="of a")
    edit(table)
    edits.change_key(table, key("na"), key("m"), ANY, by=by())
    assert texts(table) == {"m": ["of a"]}
    everything = ChangeFilter(actors=(("user", "ada"),))
    running.complete(data_undo.request(table.account, everything), by=by("bob"))
    assert texts(table) == {"a": ["of a"]}


def test_a_restore_takes_them_back(table, ada):
    say(table, ada, a="of a")
    snapshot = snapshots.take(table.account, "before")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    snapshot_restores.restore(snapshot, RestoreRequest(), by=by())
    assert texts(table) == {"a": ["of a"]}


def test_another_entity_under_the_former_key_does_not_get_them(table, ada):
    say(table, ada, a="of a")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    put(table, Delete(key("m"), ANY))
    put(table, Insert(Entity(key("a"), {})))
    gone = edits.apply(table, [Delete(key("a"), ANY)], by=by())
    wanted = ChangeFilter(requests=(gone.activity.request_id,))
    running.complete(data_undo.request(table.account, wanted), by=by())
    assert texts(table) == {"m": ["of a"]}


def test_moves_are_forgotten_with_the_history(table, ada):
    say(table, ada, a="of a")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    edits.change_key(table, key("b"), key("n"), ANY, by=by())
    assert CommentMove.objects.count() == 1  # the other has no comments
    key_changes.tidy(timezone.now() + timedelta(days=HISTORY_DAYS_LIMIT - 1))
    assert CommentMove.objects.exists()
    key_changes.tidy(timezone.now() + timedelta(days=HISTORY_DAYS_LIMIT + 1))
    assert not CommentMove.objects.exists()


def test_moves_go_with_their_account(table, ada):
    say(table, ada, a="of a")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    removal.remove("acme", with_tables=True)
    assert not CommentMove.objects.exists()
