"""Comments on entities whose keys are changed: they follow the entity, also when the change is undone or redone.

An undo never leaves an entity under both of its keys, or under neither.
"""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from console.models import User
from storage.accounts import accounts, removal
from storage.branches import snapshot_restores
from storage.branches.snapshot_restores import RestoreRequest
from storage.bulk_edit import bulk_edit_jobs
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.comments import comments, threads
from storage.comments.content import Subject
from storage.core.account_settings import HISTORY_DAYS_LIMIT
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.restoring import Effect, Skip
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.history import changes, key_changes
from storage.history.changes import ChangeFilter
from storage.jobs import running
from storage.models import EntityMove
from storage.runtime import job_runner
from storage.snapshots import snapshots
from storage.sql import entities, restoring
from storage.sql.django import fetch, run, run_in_lane
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.undo import data_undo, reverting, undo
from storage.undo.outcome_jobs import outcome_of

pytestmark = pytest.mark.django_db(transaction=True)  # chunk by chunk, as a server does it


@pytest.fixture
def table():
    table = tables.create(accounts.add("acme"), "people")
    for row_key in "abz":
        put(table, Insert(Entity(key(row_key), {"N": EdmValue(Edm.INT32, 1)})))
    return table


@pytest.fixture(autouse=True)
def ada():
    """Create the user who starts these jobs and who has every permission."""
    return User.objects.create(username="ada", is_admin=True)


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
    criteria = ChangeFilter(requests=(gone.activity.request_id,))
    running.complete(data_undo.request(table.account, criteria), by=by())
    assert texts(table) == {"m": ["of a"]}


def test_moves_are_forgotten_with_the_history(table, ada):
    say(table, ada, a="of a")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    edits.change_key(table, key("b"), key("n"), ANY, by=by())
    assert EntityMove.objects.count() == 2
    key_changes.tidy(timezone.now() + timedelta(days=table.account.history_days - 1))
    assert EntityMove.objects.count() == 2
    key_changes.tidy(timezone.now() + timedelta(days=HISTORY_DAYS_LIMIT - 1))
    assert EntityMove.objects.get().row_key == "a"  # the other has no comments
    key_changes.tidy(timezone.now() + timedelta(days=HISTORY_DAYS_LIMIT + 1))
    assert not EntityMove.objects.exists()


def test_moves_go_with_their_account(table, ada):
    say(table, ada, a="of a")
    edits.change_key(table, key("a"), key("m"), ANY, by=by())
    removal.remove("acme", with_tables=True)
    assert not EntityMove.objects.exists()


def numbers(table):
    result = fetch(f"SELECT rk, vals FROM {relation_name(table.pk)}")
    return {rk: int(vals.rpartition(":")[2]) for rk, vals in result}


def number(row_key, value):
    return Entity(key(row_key), {"N": EdmValue(Edm.INT32, value)})


def insert_newer(table, row_key):
    edits.apply(table, [Insert(number(row_key, 7))], by=by("bob"))


def change_newer(table, row_key):
    edits.apply(table, [Update(number(row_key, 7), ANY, merge=True)], by=by("bob"))


@pytest.mark.parametrize(
    ("prefix", "newer", "left", "is_in_chunks"),
    [
        ("n", insert_newer, {"na": 1, "a": 7, "b": 1, "z": 1}, True),  # the former key is taken
        ("n", lambda table, _: change_newer(table, "na"), {"na": 7, "b": 1, "z": 1}, False),
        ("A", insert_newer, {"Aa": 1, "a": 7, "b": 1, "z": 1}, False),  # its new key is the first of both
        ("A", insert_newer, {"Aa": 1, "a": 7, "b": 1, "z": 1}, True),
    ],
    ids=["taken", "changed", "taken, in the other order", "taken, in the other order, in chunks"],
)
def test_an_undo_skips_both_keys_of_an_entity_if_one_has_newer_work(
    table, prefix, newer, left, is_in_chunks, monkeypatch
):
    if is_in_chunks:
        collect = restoring._COLLECT.replace(f" / {restoring._CHUNK_BYTES}", "")
        monkeypatch.setattr(restoring, "_COLLECT", collect)
    done = edit(table, f"concat('{prefix}', RowKey)").activity
    newer(table, "a")
    criteria = changes.selection_of(done)
    previewed = data_undo.preview(table.account, criteria).tables[0]
    assert (previewed.inserted, previewed.deleted, previewed.skipped) == (1, 1, 2)
    reasons = {it.key.row_key: it.reason for it in previewed.samples if it.effect is Effect.SKIPPED}
    assert sorted(reasons.values()) == [Skip.CHANGED, Skip.MOVED]

    undone = undo.undo(done, by())
    assert numbers(table) == left
    undo.undo(undone, by())
    assert numbers(table) == {key: value for key, value in left.items() if key != "b"} | {f"{prefix}b": 1}


def test_the_undo_of_an_undo_skips_both_keys_as_well(table):
    undone = undo.undo(edit(table).activity, by())
    insert_newer(table, "na")
    undo.undo(undone, by())
    assert numbers(table) == {"a": 1, "na": 7, "nb": 1, "z": 1}


def test_an_entity_that_was_moved_twice_keeps_to_its_last_key(table):
    edit(table)
    edit(table, "concat('m', RowKey)", "RowKey ge 'n' and RowKey lt 'o'")
    insert_newer(table, "a")
    everything = ChangeFilter(actors=(("user", "ada"),))
    outcome = outcome_of(running.complete(data_undo.request(table.account, everything), by=by("bob")))
    assert numbers(table) == {"mna": 1, "a": 7, "b": 1, "z": 1}
    assert {it.key.row_key: it.reason for it in outcome.tables[0].examples}["mna"] is Skip.MOVED


def test_a_key_that_is_taken_while_an_undo_runs_keeps_the_other(table, monkeypatch):
    done = edit(table).activity
    collect = restoring.collect

    def collect_before_newer_work(images):
        statement = collect(images)
        return replace(
            statement, read=lambda result: (put(table, Insert(number("a", 7))), statement.read(result))[1]
        )

    monkeypatch.setattr(restoring, "collect", collect_before_newer_work)
    undo.undo(done, by())
    assert numbers(table) == {"na": 1, "a": 7, "b": 1, "z": 1}


def test_an_undo_that_is_interrupted_goes_on_behind_both_keys(table):
    done = edit(table).activity
    images = data_undo._images(table.account, table, changes.selection_of(done))
    saved = []

    def stop(after, left):
        saved.append(after)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        reverting.apply_images(table, images, by=by(), save=stop)
    assert saved == [key("b")]
    rest = reverting.apply_images(table, images, by=by(), after=key("a"))
    assert (rest.inserted, rest.deleted, numbers(table)) == (1, 1, {"na": 1, "b": 1, "z": 1})


def test_the_images_of_many_moves_are_not_compared_each_with_each(table):
    done = edit(table).activity
    images = data_undo._images(table.account, table, changes.selection_of(done))
    statement = restoring.preview(relation_name(table.pk), images, 5)
    explained = replace(
        statement,
        text=f"EXPLAIN {statement.text}",
        read=lambda result: [result.get_value(row, 0).decode() for row in range(result.ntuples)],
    )
    plan = run_in_lane(explained, settings=restoring.settings_of(images))
    assert not [line for line in plan if "Join Filter" in line]
