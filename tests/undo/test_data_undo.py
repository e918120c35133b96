"""Recorded changes are undone as ordinary writes, and never over newer work."""

import asyncio

import pytest
from django.db import transaction

from storage.accounts import account_settings, accounts
from storage.activity.subject import ActivityVerb
from storage.activity.undoing import CannotUndo, Reason
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.entities.restoring import Effect
from storage.domain.errors import InsufficientAccountPermissions
from storage.domain.values.etag import ANY
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.history.subject import HistoryVerb
from storage.jobs import jobs, running
from storage.models import Activity
from storage.relations import history
from storage.runtime import job_runner
from storage.runtime.threads import in_thread
from storage.sql import entities
from storage.sql.django import execute, fetch, run
from storage.sql.record import segment_name
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.undo import data_undo
from storage.undo.outcome_jobs import outcome_of
from storage.undo.undo import undo
from tests.history.test_changes import REQUESTS, actor, entity, write

# as a server does it: chunk by chunk
pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
SCRIPT = actor(1, "script")
OTHER = actor(2, "other")
BY_SCRIPT = ChangeFilter(actors=(("key", "script"),))


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def people(account):
    return tables.create(account, "people")


def content(table):
    result = fetch(f"SELECT rk, vals FROM {relation_name(table.pk)} ORDER BY rk")
    return {rk: int(vals.partition(":")[2]) for rk, vals in result}


def upsert(row_key, number):
    return Upsert(entity(row_key, number), merge=False)


def delete(row_key):
    return Delete(EntityKey("p", row_key), ANY)


def undo_script(account):
    return outcome_of(running.complete(data_undo.request(account, BY_SCRIPT), by=ADA))


def change_by_script(table, number):
    """Let the script set N from 1 to 0 in many entities, whose RowKeys are numbers."""
    relation, recorder = relation_name(table.pk), history.recorder(table.account, SCRIPT)
    execute(
        f"INSERT INTO {relation}"
        " SELECT 'p', i::text, 1, '{\"N\": 1}', '', E'\\n,\"N\":1' FROM generate_series(1, %s) AS i",
        number,
    )
    execute(
        f"WITH old AS (SELECT pk, rk, ts, anns, vals FROM {relation}), done AS ("
        f" UPDATE {relation} AS e SET ts = e.ts + 1, props = '{{\"N\": 0}}', vals = E'\\n,\"N\":0'"
        " FROM old WHERE old.pk = e.pk AND old.rk = e.rk"
        " RETURNING e.pk, e.rk, e.ts, old.ts AS was, old.anns, old.vals)"
        f" INSERT INTO {recorder.relation} (tbl, op, ts, was, actor, request, pk, rk, anns, vals)"
        " SELECT %s, 'u', ts, was, %s, %s::uuid, pk, rk, anns, vals FROM done",
        table.pk,
        recorder.actor,
        recorder.request,
    )


def start(account):
    return jobs.start_requested(data_undo.request(account, BY_SCRIPT), by=ADA)


def run_chunks(job, number, then=lambda: True):
    """Run a job; after its first transaction and so many chunks do something, and end the process if that says so."""
    chunks = iter(range(number + 1))
    assert running.run(job.pk, job_runner.KINDS, lambda _: next(chunks, None) == number and bool(then()))
    return jobs.get(job.pk)


def test_another_process_goes_on_after_the_last_chunk(account, people):
    change_by_script(people, 2500)
    job = run_chunks(start(account), 2)
    first, *_, last = sorted(content(people))
    assert (job.status, job.done, job.total) == ("running", 2047, 2500)
    assert (content(people)[first], content(people)[last]) == (1, 0)
    write(people, OTHER, upsert(first, 7))
    write(people, OTHER, upsert(last, 7))
    # the table is read again, but this was not asked for
    write(people, SCRIPT, Insert(entity("a", 2)))

    job_runner.run_all()

    job = jobs.get(job.pk)
    assert (job.status, job.done, job.total) == ("done", 2500, 2500)
    assert job.counts == {"changed": 2499, "skipped": 1}
    assert content(people) == dict.fromkeys(content(people), 1) | {first: 7, last: 7, "a": 2}
    made = fetch(
        f"SELECT count(*), count(DISTINCT rk) FROM {segment_name(account.pk, 1)} WHERE request = %s",
        job.request_id,
    )
    assert made == [(2499, 2499)]
    done = outcome_of(job)
    assert (done.written, done.skipped, done.activity.detail["rows"]) == (2499, 1, 2499)
    assert "interrupted" not in done.activity.detail
    undo(done.activity, ADA)
    assert set(content(people).values()) == {0, 2, 7}


def test_other_jobs_have_their_turn_between_two_chunks(account, people, monkeypatch):
    monkeypatch.setattr(running, "_SLICE", 0)
    monkeypatch.setattr(running, "_SETUP_SHARE", 0)
    change_by_script(people, 2500)
    job, done = start(account), []
    while running.run(job.pk, job_runner.KINDS, lambda _: False, others=lambda: True):
        job.refresh_from_db()
        done.append(job.done)
    assert done == [0, 1023, 2047, 2500, 2500]
    assert sum(content(people).values()) == 2500


def test_a_cancelled_undo_leaves_what_it_has_done_to_be_undone(account, people):
    change_by_script(people, 2500)
    job = start(account)
    job = run_chunks(job, 1, then=lambda: jobs.cancel(job, by=ADA) and False)
    assert (job.status, job.done, outcome_of(job).written) == ("cancelled", 1023, 1023)
    assert (job.activity.detail["rows"], job.activity.detail["interrupted"]) == (1023, True)
    assert sum(content(people).values()) == 1023
    undo(job.activity, ADA)
    assert sum(content(people).values()) == 0


def test_another_process_goes_on_when_the_caller_waits_no_longer(account, people):
    change_by_script(people, 10)
    job = running.complete(data_undo.request(account, BY_SCRIPT), by=ADA, patience=0)
    assert (job.status, job.done) == ("running", 0)
    assert job_runner.finish(job).done == 10
    assert sum(content(people).values()) == 10


def test_undo_and_redo_by_the_activity(account, people):
    for name in ("changed", "deleted", "twice"):
        write(people, OTHER, Insert(entity(name, 1)))
    before = content(people)
    write(people, SCRIPT, upsert("changed", 2))
    write(people, SCRIPT, delete("deleted"))
    write(people, SCRIPT, Insert(entity("inserted", 2)))
    write(people, SCRIPT, upsert("twice", 2))
    write(people, SCRIPT, upsert("twice", 3))
    write(people, SCRIPT, Insert(entity("came and went", 2)))
    write(people, SCRIPT, delete("came and went"))
    after = content(people)

    preview = data_undo.preview(account, BY_SCRIPT)
    assert (preview.changes, preview.written, preview.dropped) == (7, 4, 0)
    assert {it: preview.number(it) for it in Effect} == {
        Effect.CHANGED: 2,
        Effect.INSERTED: 1,
        Effect.DELETED: 1,
        Effect.UNCHANGED: 1,
        Effect.SKIPPED: 0,
    }
    samples = {it.key.row_key: it for it in preview.tables[0].samples}
    assert set(samples) == {"changed", "deleted", "inserted", "twice"}
    assert samples["twice"].now and samples["twice"].then
    assert read_stored(samples["twice"].then).properties["N"].value == 1
    assert samples["deleted"].now is None and samples["inserted"].then is None
    assert content(people) == after

    done = undo_script(account)

    assert content(people) == before
    assert done.activity.verb == HistoryVerb.REVERT
    assert (done.activity.actor, done.activity.table_name) == ("ada", "people")
    assert done.activity.detail["rows"] == 4
    [entry, *_] = changes.page(account, ChangeFilter()).entries
    assert (entry.request, entry.number, entry.actor.name) == (done.activity.request_id, 4, "ada")

    redone = undo(done.activity, ADA)
    assert content(people) == after
    assert (redone.verb, redone.detail["verb"], redone.undoes) == (
        ActivityVerb.UNDO,
        HistoryVerb.REVERT,
        done.activity,
    )
    with pytest.raises(CannotUndo) as cannot:
        undo(done.activity, ADA)
    assert cannot.value.reason is Reason.ALREADY_UNDONE
    undo(redone, ADA)
    assert content(people) == before


def test_newer_work_is_kept(account, people):
    for name in ("mine", "before", "again", "between", "deleted", "back"):
        write(people, OTHER, Insert(entity(name, 1)))
    write(people, SCRIPT, upsert("mine", 2))
    write(people, SCRIPT, upsert("before", 2))
    write(people, OTHER, upsert("before", 3))
    write(people, SCRIPT, upsert("again", 2))
    write(people, OTHER, delete("again"))
    # changes between two mistakes are kept, and the last mistake is undone
    write(people, SCRIPT, upsert("between", 2))
    write(people, OTHER, upsert("between", 3))
    write(people, SCRIPT, upsert("between", 4))
    write(people, SCRIPT, delete("deleted"))
    write(people, SCRIPT, delete("back"))
    write(people, OTHER, Insert(entity("back", 3)))
    before = content(people)

    preview = data_undo.preview(account, BY_SCRIPT)
    assert preview.number(Effect.SKIPPED) == 3
    skipped = {it.key.row_key for it in preview.tables[0].samples if it.effect is Effect.SKIPPED}
    assert skipped == {"before", "again", "back"}
    [done] = undo_script(account).tables

    assert (done.changed, done.inserted, done.deleted, done.skipped) == (2, 1, 0, 3)
    assert content(people) == before | {"mine": 1, "between": 3, "deleted": 1}


def test_selections(account, people):
    others = tables.create(account, "others")
    gone = tables.create(account, "gone")
    write(people, actor(1), Insert(entity("a", 1)))
    write(people, actor(2), upsert("a", 2))
    middle = changes.page(account, ChangeFilter()).entries[0].latest
    write(others, actor(2), Insert(entity("b", 1)))
    write(people, actor(3), upsert("a", 3))
    write(gone, actor(3), Insert(entity("c", 1)))
    tables.delete(account, "gone", by=ADA)
    [(number,)] = fetch(f"SELECT max(seq) FROM {segment_name(account.pk, 1)} WHERE tbl = %s", people.pk)

    def restoring(**criteria):
        with transaction.atomic():
            running.complete(data_undo.request(account, ChangeFilter(**criteria)), by=ADA)
            result = content(people), content(others)
            transaction.set_rollback(True)
        return result

    assert restoring(numbers=(number,)) == ({"a": 2}, {"b": 1})
    assert restoring(requests=(REQUESTS[2],)) == ({"a": 3}, {})
    assert restoring(requests=(REQUESTS[2], REQUESTS[3])) == ({"a": 1}, {})
    assert restoring(since=middle, table="people") == ({"a": 1}, {"b": 1})
    assert restoring(actor="nobody") == ({"a": 3}, {"b": 1})
    preview = data_undo.preview(account, ChangeFilter(requests=(REQUESTS[3],)))
    assert (preview.changes, preview.dropped, preview.written) == (2, 1, 1)


def test_refuses_a_read_only_account(account, people):
    write(people, SCRIPT, Insert(entity("a", 1)))
    account_settings.change(account, read_only=True)
    with pytest.raises(InsufficientAccountPermissions):
        undo_script(account)
    assert not Activity.objects.filter(verb=HistoryVerb.REVERT).exists()


async def test_thousands_are_undone_while_others_write():
    account = await in_thread(accounts.add, "acme")
    table = await in_thread(tables.create, account, "people")

    def work(turn):
        recorder = history.recorder(account, OTHER)
        for number in range(40):
            name = str(1 + (number * 251 + turn * 17) % 3000)
            run(entities.change(relation_name(table.pk), Update(entity(name, 7), ANY, merge=False), recorder))
        return {str(1 + (number * 251 + turn * 17) % 3000) for number in range(40)}

    await in_thread(change_by_script, table, 3000)
    undoing = asyncio.create_task(in_thread(undo_script, account))
    written = await asyncio.gather(*(in_thread(work, turn) for turn in range(3)))
    total = await undoing
    result = await in_thread(content, table)

    newer = set().union(*written)
    assert total.written + total.skipped == 3000
    assert {name for name, number in result.items() if number == 7} == newer
    assert {number for name, number in result.items() if name not in newer} == {1}
