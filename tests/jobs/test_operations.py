"""Jobs: steps, their progress, failures, wishes of users, and files. tests/faults/test_kills.py kills processes."""

import asyncio
import io
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, transaction
from django.utils import timezone

from console.models import User
from storage.accounts import accounts
from storage.activity import activity
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ServerBusy
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.entities import edits, entities
from storage.entities.subject import EntityVerb
from storage.jobs import files, jobs, pacing, running
from storage.jobs.files import PIECE
from storage.jobs.jobs import JobError, JobFilter
from storage.jobs.kinds import Failure, JobKind, Step
from storage.jobs.states import FAILURES_KEPT, JobStatus
from storage.models import Activity, Job, JobFile, JobFilePiece
from storage.runtime import job_runner
from storage.runtime.catalog import Catalog
from storage.runtime.job_news import JobNews
from storage.runtime.threads import in_thread
from storage.tables import tables
from tests.runtime.test_catalog import break_listener, eventually

pytestmark = pytest.mark.django_db(transaction=True)
ADA = Actor(ActorKind.USER, "ada", request_id="of the click")


@dataclass(frozen=True, slots=True)
class Arguments:
    number: int
    fails_at: int = -1
    error: str = ""


@dataclass(frozen=True, slots=True)
class State:
    next: int = 0


class Filling(JobKind[Arguments, State]):
    """Insert entities, ten in a step."""

    name, arguments, state, capability = "test.fill", Arguments, State, Capability.WRITE
    sizes: list[int] = []

    def begin(self, run):
        return Step(State(), total=run.arguments.number)

    def step(self, run, state):
        self.sizes.append(run.size)
        numbers = range(state.next, min(run.arguments.number, state.next + 10))
        edits.apply(run.table, [Insert(Entity(EntityKey("p", f"{n:04}"), {})) for n in numbers], by=run.by)
        if run.arguments.fails_at in numbers:
            raise ERRORS[run.arguments.error]
        return Step(
            State(numbers.stop),
            done=len(numbers),
            counts={"inserted": len(numbers)},
            failures=[Failure(f"line {n}", Reason.OTHER.of(text="odd")) for n in numbers if n % 2],
            is_finished=numbers.stop == run.arguments.number,
        )

    def end(self, run, state, status):
        if not run.job.counts:
            return None
        detail = {"inserted": run.job.counts["inserted"], "status": status}
        return activity.record(EntityVerb.INSERT, run.by, account=run.account, table=run.table, detail=detail)


class Saving(Filling):
    """The same in one long step, which opens its own transactions."""

    name, is_transactional = "test.save", False

    def step(self, run, state):
        step = Step(state)
        while not step.is_finished:
            with transaction.atomic():
                step = super().step(run, step.state)
                if not step.is_finished:
                    run.save(step)
        return step


FILLING, SAVING = Filling(), Saving()
KINDS = {kind.name: kind for kind in (FILLING, SAVING)}
ERRORS = {
    "busy": ServerBusy(),
    "refused": JobError(Reason.NO_TABLE, account="acme", table="x"),
    "bug": ZeroDivisionError(),
    "database": OperationalError("gone"),
}


@pytest.fixture(params=[FILLING, SAVING], ids=lambda kind: kind.name)
def kind(request):
    return request.param


def begin(table, kind=FILLING, number=35, **options):
    return jobs.start(kind, Arguments(number, **options), account=table.account, table=table, by=ADA)


def rows(table):
    return sum(len(page) for page in entities.all_pages(table, EntityQuery()))


def run(job, rest=lambda seconds: False):
    assert running.run(job.pk, KINDS, rest)
    return jobs.get(job.pk)


def after(number, do):
    """Rest so many times, then do something, and end the process if that says so."""
    steps = iter(range(1, number + 1))

    def rest(seconds):
        return next(steps, None) == number and bool(do())

    return rest


def test_a_job_that_failed_before_it_did_anything_has_no_percentage():
    assert jobs.percentage(Job(status="failed", done=0, total=0)) is None
    assert jobs.percentage(Job(status="failed", done=5, total=5)) == 99
    assert jobs.percentage(Job(status="done", done=0, total=0)) == 100


def test_runs_to_its_end(table, kind):
    job = begin(table, kind)
    assert (job.status, jobs.percentage(job)) == ("waiting", None)
    job = run(job)

    assert (job.status, job.done, job.total, jobs.percentage(job)) == ("done", 35, 35, 100)
    assert job.counts == {"inserted": 35}
    assert (job.failed, jobs.failures_of(job)[0].subject) == (17, "line 1")
    assert rows(table) == 35
    assert job.ended_at >= job.started_at
    recorded = Activity.objects.get(pk=job.activity_id)
    assert (recorded.actor, recorded.request_id) == ("ada", str(job.request_id))
    assert recorded.detail == {"inserted": 35, "status": "done"}
    assert not running.run(job.pk, KINDS, lambda _: False)


def test_keeps_the_first_failures_and_counts_all(table):
    job = run(begin(table, number=300))
    assert (job.failed, len(job.failures)) == (150, FAILURES_KEPT)


def test_resumes_in_another_process(table):
    job = begin(table)
    run(job, after(2, lambda: True))
    assert (jobs.get(job.pk).status, rows(table)) == ("running", 10)
    assert run(job).counts == {"inserted": 35}


@pytest.mark.parametrize(("error", "reason"), [("refused", Reason.NO_TABLE), ("bug", Reason.JOB_BROKEN)])
def test_a_failure_is_reported_and_keeps_earlier_steps(table, kind, error, reason):
    job = run(begin(table, kind, fails_at=25, error=error))
    assert (job.status, jobs.error_of(job).reason, rows(table), job.done) == ("failed", reason, 20, 20)
    assert Activity.objects.get(pk=job.activity_id).detail == {"inserted": 20, "status": "failed"}

    Job.objects.filter(pk=job.pk).update(arguments={"number": 35})
    assert run(jobs.resume(job, by=ADA)).counts == {"inserted": 35}
    assert rows(table) == 35


@pytest.mark.parametrize("error", ["busy", "database"])
def test_is_retried_a_limited_time_while_the_database_does_not_answer(table, error):
    job = begin(table, fails_at=15, error=error)
    for _ in range(6):  # the first one has done a step before
        with pytest.raises((ServerBusy, OperationalError)):
            running.run(job.pk, KINDS, lambda _: False)
        assert jobs.get(job.pk).status == "running"
    job = run(job)
    assert (job.status, jobs.error_of(job).reason, rows(table)) == ("failed", Reason.JOB_DIES, 10)


def test_a_deleted_table_ends_it(table):
    job = begin(table)
    run(job, after(2, lambda: True))
    tables.delete(table.account, "people")
    job = run(job)
    assert (job.status, job.table_name) == ("failed", "people")


def test_cancels_between_two_steps_and_resumes(table, kind):
    job = begin(table, kind)
    if kind.is_transactional:
        cancelled = run(job, after(3, lambda: jobs.cancel(job, by=ADA) and False))
        assert (cancelled.status, rows(table)) == ("cancelled", 20)
        assert Activity.objects.get(pk=cancelled.activity_id).detail["inserted"] == 20
    else:
        jobs.cancel(job, by=ADA)
        cancelled = run(job)
        assert (cancelled.status, rows(table), cancelled.activity_id) == ("cancelled", 0, None)
    with pytest.raises(JobError):
        jobs.cancel(cancelled, by=ADA)
    assert run(jobs.resume(cancelled, by=ADA)).counts == {"inserted": 35}


def test_a_long_step_is_interrupted_where_it_saves(table, monkeypatch):
    job, save = begin(table, SAVING), running._Runner._save
    monkeypatch.setattr(
        running._Runner,
        "_save",
        lambda self, step: (save(self, step), step.state.next == 20 and jobs.pause(job, by=ADA)),
    )
    job = run(job)
    assert (job.status, job.done, rows(table)) == ("paused", 20, 20)


def test_pauses_and_resumes(table):
    job = begin(table)
    paused = run(job, after(2, lambda: jobs.pause(job, by=ADA) and False))
    assert (paused.status, paused.wish, running.pending(KINDS)) == ("paused", "", [])
    with pytest.raises(JobError):
        jobs.pause(paused, by=ADA)
    jobs.cancel(paused, by=ADA)
    assert run(job).status == "cancelled"


def test_takes_turns(table, monkeypatch):
    monkeypatch.setattr(running, "_SLICE", 0)
    first, second = begin(table), begin(tables.create(table.account, "others"))
    order = []
    while pending := running.pending(KINDS):
        order.append(pending[0])
        running.run_some(KINDS, lambda _: False, others=lambda: True)
    assert order[:4] == [first.pk, second.pk, first.pk, second.pk]


def test_a_job_running_in_another_process_is_left_to_it(table):
    job, answers = begin(table), []

    def ask():
        answers.append(running.run(job.pk, KINDS, lambda _: False))
        transaction.get_connection().close()

    def run_in_another_session():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return False

    run(job, after(1, run_in_another_session))
    assert answers == [False]
    assert rows(table) == 35


def test_a_step_committed_by_another_process_is_rolled_back(table):
    """Should two processes ever run a job, each step is done by one of them."""
    job = begin(table)
    run(job, after(2, lambda: Job.objects.filter(pk=job.pk).update(steps=7) and False))
    assert (rows(table), jobs.get(job.pk).done) == (10, 10)


def test_jobs_of_a_newer_version_wait_for_its_servers(table):
    job = begin(table)
    assert not running.run(job.pk, {}, lambda _: False)
    assert jobs.get(job.pk).status == "waiting"


def test_steps_adapt_to_what_they_take(table, monkeypatch):
    monkeypatch.setattr(pacing, "_STEP", 60.0)
    monkeypatch.setattr(FILLING, "sizes", [])
    run(begin(table))
    assert FILLING.sizes[1] > FILLING.sizes[0]


def test_finds_jobs(table):
    ada = User.objects.create(username="ada")
    mine = begin(table)
    other = accounts.add("other")
    jobs.start(FILLING, Arguments(1), account=None, by=Actor(ActorKind.USER, "bob"))
    assert list(jobs.find(JobFilter(account_ids=[table.account_id]))) == [mine]
    assert len(jobs.find(JobFilter(account_ids=[table.account_id], is_server=True))) == 2
    assert not jobs.find(JobFilter(account_ids=[other.pk]))
    assert [it.pk for it in jobs.for_tray(ada)] == [mine.pk]
    run(mine)
    assert [it.pk for it in jobs.for_tray(ada)] == [mine.pk]
    jobs.mark_seen(ada, upto=timezone.now())
    assert jobs.for_tray(ada) == []
    assert [it.pk for it in jobs.unfinished(FILLING)] != [mine.pk]


def test_ended_jobs_and_their_files_expire(table):
    file = files.create("in.csv", account=table.account, by=ADA)
    files.upload(file, [b"a" * (PIECE - 1), b"bcd"])
    job = jobs.start(FILLING, Arguments(5), account=table.account, table=table, files=[file], by=ADA)
    later = timezone.now() + 2 * files.FILE_RETENTION
    files.tidy(later)
    assert files.of_job(job) == [file]  # for as long as the job goes on
    run(job)
    files.tidy(later)
    assert not JobFilePiece.objects.exists()
    jobs.tidy(timezone.now() + 2 * jobs.RETENTION)
    assert not Job.objects.exists()


def test_files_are_read_in_parts(table):
    content = bytes(range(256)) * (PIECE // 256 * 2 + 3)
    file = files.create("some.bin", account=table.account, by=ADA)
    assert files.find(file.pk) is None
    files.upload(file, [content[: PIECE + 5], content[PIECE + 5 :]])
    result = files.find(file.pk)
    assert result.size == len(content)
    for start, end in ((0, None), (PIECE - 3, PIECE + 9), (5, 6), (len(content) - 1, 10**9), (7, 7)):
        assert b"".join(files.read(result, start, end)) == content[start:end]
    reader = files.open_file(result)
    reader.seek(-10, io.SEEK_END)
    assert reader.read() == content[-10:]
    reader.seek(PIECE - 1)
    assert reader.read(3) == content[PIECE - 1 : PIECE + 2]
    JobFile.objects.update(expires_at=timezone.now())
    assert files.find(file.pk) is None
    assert JobStatus("done").has_ended


async def test_a_stopping_server_finishes_only_the_running_step(monkeypatch):
    begun, end = threading.Event(), threading.Event()

    class Slow(Filling):
        name = "test.slow"

        def step(self, run, state):
            begun.set()
            end.wait(60)
            return super().step(run, state)

    slow = Slow()
    monkeypatch.setattr(job_runner, "KINDS", {slow.name: slow})
    table = await in_thread(lambda: tables.create(accounts.add("acme"), "people"))
    job = await in_thread(begin, table, slow)
    task = asyncio.create_task(job_runner.run(JobNews()))
    assert await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=0.05)
    assert not done
    end.set()
    await asyncio.wait([task])
    result = await in_thread(jobs.get, job.pk)
    assert (result.status, result.done, await in_thread(rows, table)) == ("running", 10, 10)


async def test_long_steps_leave_a_thread_to_small_jobs(monkeypatch):
    end = threading.Event()

    class Long(Filling):
        name, is_transactional = "test.long", False

        def step(self, run, state):
            end.wait(60)
            return super().step(run, state)

    small, long = Filling(), Long()
    monkeypatch.setattr(job_runner, "KINDS", {it.name: it for it in (small, long)})
    table = await in_thread(lambda: tables.create(accounts.add("acme"), "people"))
    blocked = [await in_thread(begin, table, long, 10) for _ in range(2)]
    job = await in_thread(begin, table, small, 10)
    task = asyncio.create_task(job_runner.run(JobNews()))
    while (await in_thread(jobs.get, job.pk)).status != "done":
        assert not task.done()
    while {(await in_thread(jobs.get, it.pk)).status for it in blocked} != {"running", "waiting"}:
        assert not task.done()
    end.set()
    task.cancel()
    await asyncio.wait([task])


@asynccontextmanager
async def waiting_runner(monkeypatch, news):
    """Both threads have looked for jobs, and wait for news."""
    monkeypatch.setattr(job_runner, "KINDS", {FILLING.name: FILLING})
    task = asyncio.create_task(job_runner.run(news))

    async def both_wait():
        return len(news._changed._waiters) == 2

    await eventually(both_wait)
    yield both_wait
    task.cancel()
    await asyncio.wait([task])


async def test_jobs_begin_when_announced_and_when_the_announcement_was_lost(monkeypatch):
    table = await in_thread(lambda: tables.create(accounts.add("acme"), "people"))

    async def is_done(number):
        return await in_thread(Job.objects.filter(status=JobStatus.DONE).count) == number

    news = JobNews(longest_wait=3600)
    catalog = Catalog(settings.LANES_CONNINFO, job_news=news)
    await catalog.open()
    async with waiting_runner(monkeypatch, news) as both_wait:
        await in_thread(begin, table, FILLING, 0)
        await eventually(partial(is_done, 1))
        await eventually(both_wait)
        with psycopg.connect(settings.LANES_CONNINFO, autocommit=True) as database:
            await break_listener(database)
        await in_thread(begin, table, FILLING, 0)  # while nothing listens, or just before
        await eventually(partial(is_done, 2))
    await catalog.close()
    async with waiting_runner(monkeypatch, JobNews(longest_wait=0.02)):
        await in_thread(begin, table, FILLING, 0)
        await eventually(partial(is_done, 3))
