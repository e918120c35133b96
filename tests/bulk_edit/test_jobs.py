"""A bulk edit as a job: in steps, paused, cancelled and undone; tests/faults kills it."""

from dataclasses import replace

import pytest

from storage.accounts import account_settings, accounts
from storage.activity import activity
from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews, bulk_edit_work, bulk_edits
from storage.bulk_edit.bulk_edit_work import BulkEditRequest, SkippedEntity, Work
from storage.bulk_edit.bulk_edits import BulkEditRefused
from storage.domain.entities.entity import EntityKey
from storage.editing.bulk_edit import Obstacle, ObstacleKind
from storage.jobs import jobs, running
from storage.jobs.states import JobStatus
from storage.models import Activity
from storage.runtime import job_runner
from storage.tables import tables
from storage.undo import undo
from tests.bulk_edit.test_operations import ADA, INCREMENT, MOVE, content, put

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(bulk_edit_work, "CHUNK", 2)
    table = tables.create(accounts.add("acme"), "people")
    put(table, a=1, b=2, c=2**31 - 1, d=4, e=5)
    return table


def start(table, wanted=INCREMENT, **options):
    return bulk_edit_jobs.start(table, wanted, by=ADA, **options)


def test_steps_with_progress_failures_and_undo(table):
    job = job_runner.finish(start(table, number=5))
    assert content(table) == {"a": 2, "b": 3, "c": 2**31 - 1, "d": 5, "e": 6}
    assert (job.status, job.done, job.total, job.counts) == (
        JobStatus.DONE,
        5,
        5,
        {"changed": 4, "skipped": 1},
    )
    [failure] = jobs.failures_of(job)
    assert (failure.subject, str(failure.refusal)) == ("p, c", "Not edited: N: out-of-range: Int32")
    [done] = Activity.objects.filter(verb="entity.bulk-edit")
    assert (job.activity_id, done.actor, done.request_id) == (done.pk, "ada", str(job.request_id))
    undo.undo(done, ADA)
    assert content(table) == {"a": 1, "b": 2, "c": 2**31 - 1, "d": 4, "e": 5}


@pytest.mark.parametrize(
    "obstacle",
    [
        Obstacle(ObstacleKind.CHANGED),
        Obstacle(ObstacleKind.INVALID_KEY, detail="KeyValueTooLarge"),
        Obstacle(ObstacleKind.DIVISION_BY_ZERO, "loss"),
        Obstacle(ObstacleKind.WRONG_TYPE, "gone", "+ of String: Int32"),
    ],
)
def test_the_entity_of_a_failure_is_read_again(obstacle):
    skipped = SkippedEntity(EntityKey("p", "a, b"), obstacle)
    assert bulk_edit_jobs.read_skipped(bulk_edit_jobs._failure(skipped)) == skipped


def test_moved_entities_are_met_again_by_no_step(table):
    job = job_runner.finish(start(table, MOVE))
    assert (job.counts, list(content(table))) == ({"moved": 5}, ["na", "nb", "nc", "nd", "ne"])


def test_cancelled_and_resumed(table, monkeypatch):
    job, advance = start(table), bulk_edits.advance

    def advance_and_cancel(*arguments, **options):
        jobs.cancel(job, by=ADA)
        return advance(*arguments, **options)

    monkeypatch.setattr(bulk_edits, "advance", advance_and_cancel)
    job = job_runner.finish(job)
    assert (job.status, job.counts) == (JobStatus.CANCELLED, {"changed": 2})
    assert Activity.objects.get(verb="entity.bulk-edit").detail["interrupted"]
    monkeypatch.setattr(bulk_edits, "advance", advance)
    put(table, e=9)
    jobs.resume(job, by=ADA)
    job.refresh_from_db()
    job = job_runner.finish(job)
    assert (job.status, job.counts) == (JobStatus.DONE, {"changed": 3, "skipped": 2})
    assert content(table) == {"a": 2, "b": 3, "c": 2**31 - 1, "d": 5, "e": 9}


def test_a_job_that_fails_is_recorded_as_far_as_it_came(table):
    job = start(table)

    def rest(seconds):
        account_settings.change(table.account, by=ADA, read_only=content(table)["a"] == 2)
        return False

    assert running.run(job.pk, job_runner.KINDS, rest)
    job.refresh_from_db()
    assert (job.status, job.counts) == (JobStatus.FAILED, {"changed": 2})
    with pytest.raises(BulkEditRefused):
        bulk_edit_jobs.outcome_of(job)
    [done] = Activity.objects.filter(verb="entity.bulk-edit")
    assert (activity.is_interrupted(done), done.detail["rows"]) == (True, 2)
    account_settings.change(table.account, by=ADA, read_only=False)
    undo.undo(done, ADA)
    assert content(table) == {"a": 1, "b": 2, "c": 2**31 - 1, "d": 4, "e": 5}


@pytest.fixture
def small_pages(monkeypatch):
    read = Work.read
    monkeypatch.setattr(Work, "read", lambda work, position: read(work, position, 2))


DELETION = BulkEditRequest("", ({"op": "delete"},))


def test_a_complete_preview_is_a_job_that_writes_nothing(table, small_pages):
    for edit_request in [INCREMENT, MOVE, DELETION]:
        job = bulk_edit_jobs.start_preview(table, edit_request, by=ADA)
        assert bulk_edit_jobs.preview_of(job, table, edit_request) is None, edit_request
        job = job_runner.finish(job)
        shown, expected = (
            bulk_edit_jobs.preview_of(job, table, edit_request),
            bulk_edit_previews.preview(table, edit_request),
        )
        assert replace(shown, read_at=0) == replace(expected, read_at=0), edit_request
        assert (shown.matches, shown.is_exact, shown.is_complete) == (5, True, True), edit_request
        assert (job.done, job.total, sum(job.counts.values())) == (5, 5, 5), edit_request
        assert content(table) == {"a": 1, "b": 2, "c": 2**31 - 1, "d": 4, "e": 5}, edit_request
        assert bulk_edit_jobs.preview_of(job, table, replace(edit_request, filter="N ge 2")) is None, (
            edit_request
        )


def test_a_preview_shows_what_it_knows_and_gives_way_to_the_next(table, small_pages, monkeypatch):
    first = bulk_edit_jobs.start_preview(table, INCREMENT, by=ADA)
    seen = []

    def advance(examination, limit):
        examination._advance()
        first.refresh_from_db()
        seen.append(bulk_edit_jobs.preview_of(first, table, INCREMENT))
        if len(seen) == 2:
            bulk_edit_jobs.start_preview(table, MOVE, by=ADA)

    monkeypatch.setattr(bulk_edit_previews.Examination, "advance_for", advance)
    job_runner.run_all()
    first.refresh_from_db()
    assert seen[0] is None
    assert (seen[1].examined, seen[1].matches, seen[1].is_complete) == (2, 5, False)
    second = jobs.find(jobs.JobFilter())[0]
    assert [(it.status, it.done) for it in (first, second)] == [(JobStatus.CANCELLED, 2), (JobStatus.DONE, 5)]
    assert not Activity.objects.filter(verb__startswith="job.").exists()
    assert not jobs.find(jobs.JobFilter(user="ada")).filter(seen_at=None)
