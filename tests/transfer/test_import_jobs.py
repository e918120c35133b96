"""Imports as jobs: each chunk once, wherever they are interrupted, with the rejected rows as a file."""

import gzip
import threading

import pytest
from django.db import connection
from django.utils import timezone

from storage.accounts import accounts
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.errors import ServerBusy
from storage.domain.filters.query import EntityQuery
from storage.editing.input_context import InputContext
from storage.entities import entities
from storage.entities.writing import WriteMode
from storage.jobs import files, jobs, kinds, pacing, process_end, running
from storage.jobs.states import JobStatus
from storage.models import Activity, Job
from storage.tables import tables
from storage.tabular import proposals
from storage.transfer import import_jobs
from storage.transfer.import_jobs import IMPORT_CHECK_JOB, IMPORT_JOB, arguments_for, open_rows
from storage.undo import undo

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
KINDS = {it.name: it for it in (IMPORT_JOB, IMPORT_CHECK_JOB)}
TEXT = "id,name\n" + "".join(f"{number},x{number}\n" for number in range(95)) + "a/b,y\n"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(running, "FIRST_SIZE", 10)
    monkeypatch.setattr(pacing.Pace, "after_step", lambda self, size: (10, 0))


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


def start(table, content, kind=IMPORT_JOB):
    file = files.create("people.csv", account=table.account, by=ADA)
    files.upload(file, [content])
    rows = open_rows(file)
    mapping = proposals.complete(rows.propose(InputContext(timezone.now())), "p", "{id}")
    arguments = arguments_for(file, rows, mapping, WriteMode.INSERT)
    return jobs.start(kind, arguments, account=table.account, table=table, files=[file], by=ADA)


def count(table):
    return sum(len(page) for page in entities.all_pages(table, EntityQuery()))


def in_western_windows(data):
    return data.decode().replace("x", "Müller-").encode("cp1252")


@pytest.mark.parametrize("write", [bytes, gzip.compress, in_western_windows])
def test_each_row_once_with_interruptions_and_undo(table, write, monkeypatch):
    content = write(TEXT.encode())
    job = start(table, content)
    stops = iter([True] * 4)

    def rest(seconds):
        if next(stops, False):
            import_jobs._open.clear()  # another process goes on
            return True
        return False

    while job.ended_at is None:
        running.run(job.pk, KINDS, rest)
        job.refresh_from_db()
    assert (job.status, job.counts["inserted"], job.failed, count(table)) == (JobStatus.DONE, 95, 1, 95)
    is_counted = write is not gzip.compress
    assert (job.done, job.total) == ((len(content), len(content)) if is_counted else (96, None))
    [_, rejects] = map(files.find, [it.pk for it in files.of_job(job)])
    assert b"".join(files.read(rejects)).decode().splitlines() == [
        "id,name,reject:line,reject:reason",
        'a/b,y,97,RowKey has a character that keys cannot have: / \\ # ? or a control character.',
    ]  # fmt: skip
    done = Activity.objects.get(verb="entity.import")
    assert (done.detail["rows"], job.activity) == (95, done)
    undo.undo(done, SERVER)
    assert count(table) == 0


def test_nothing_is_left_of_a_job_that_has_finished(table):
    content = b"id,name\n1,x\n2,y\n\n\n"
    job = start(table, content)
    running.run_all(KINDS)
    job.refresh_from_db()
    assert job.status == JobStatus.DONE and 0 < job.done == job.total
    assert jobs.percentage(job) == 100


def test_rows_of_a_cancelled_import_can_be_undone(table):
    job = start(table, TEXT.encode())
    steps = iter(range(3))

    def rest(seconds):
        if next(steps, None) is None:
            jobs.cancel(Job.objects.get(pk=job.pk), by=ADA)
        return False

    running.run(job.pk, KINDS, rest)
    job.refresh_from_db()
    assert job.status == JobStatus.CANCELLED and 0 < count(table) < 95
    assert job.activity.detail["interrupted"] is True
    undo.undo(job.activity, SERVER)
    assert count(table) == 0


@pytest.mark.parametrize("kind", [IMPORT_JOB, IMPORT_CHECK_JOB], ids=lambda kind: kind.name)
@pytest.mark.parametrize("write", [bytes, gzip.compress])
def test_the_report_counts_everything_once_with_interruptions(table, write, kind):
    rows = "".join(f"{number},x,n/a,,\n" + ",,,,\n" * (number % 3) for number in range(60))
    job = start(table, write(f"id,a b,age,,\n,,,,\n{rows}\n\n,,,,\n".encode()), kind)
    stops = iter([True] * 4)

    def rest(seconds):
        import_jobs._open.clear()  # another process goes on
        return next(stops, False)

    while job.ended_at is None:
        running.run(job.pk, KINDS, rest)
        job.refresh_from_db()
    assert list(import_jobs.outcome_of(job).report.sentences()) == [
        "64 blank rows skipped.",
        "a b becomes the property a_b.",
        "column4 and column5 are left out: they have no names and no values.",
    ]


@pytest.mark.parametrize("kind", [IMPORT_JOB, IMPORT_CHECK_JOB], ids=lambda kind: kind.name)
def test_names_and_values_that_no_json_of_postgresql_holds(table, kind):
    lines = [
        '{"id":"1","a\\u0000":"x\\u0000"}', '{"id":"2\\ud800","a\\u0000":"x"}', '{"id":"3","b\\udc00":{"c\\u0000":1}}',
        '{"id":"4","a\\u0000":1,"a\\u0000":2}', '{"id":"5","\\u0000":"\\ud83d"}',
    ]  # fmt: skip
    job = start(table, "".join(f"{line}\n" for line in lines).encode(), kind)
    running.run_all(KINDS)
    job.refresh_from_db()
    outcome = import_jobs.outcome_of(job)
    assert (job.status, outcome.inserted, outcome.rejected) == (JobStatus.DONE, 2, 3)
    assert [it.target for it in outcome.report.columns] == ["a", "b", "unnamed"]


BOTH = pytest.mark.parametrize("kind", [IMPORT_JOB, IMPORT_CHECK_JOB], ids=lambda kind: kind.name)
# rows that are far apart: most reads of this file return none
FAR_APART = TEXT.encode() + b"\n" * 300_000 + b"b,z\n" * 10


@BOTH
def test_no_file_is_read_in_a_transaction(table, kind, monkeypatch):
    job, read, where = start(table, TEXT.encode(), kind), files.FileReader.readinto, []

    def note_and_read(self, buffer):
        where.append(connection.in_atomic_block)
        return read(self, buffer)

    monkeypatch.setattr(files.FileReader, "readinto", note_and_read)
    running.run(job.pk, KINDS, lambda seconds: False)
    job.refresh_from_db()
    assert (job.status, set(where)) == (JobStatus.DONE, {False})


@BOTH
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_job_is_cancelled_although_no_row_appears(table, kind, compress, monkeypatch):
    monkeypatch.setattr(kinds, "_LOOK", 0)
    job = start(table, compress(FAR_APART), kind)

    def rest(seconds):
        """While it is read, it is asked whether the process ends: then another one cancels the job."""
        if not seconds and not Job.objects.get(pk=job.pk).wish:
            jobs.cancel(job, by=ADA)
        return False

    running.run(job.pk, KINDS, rest)
    job.refresh_from_db()
    assert (job.status, count(table)) == (JobStatus.CANCELLED, 0)


@BOTH
def test_a_job_is_left_where_it_was_when_the_process_ends(table, kind, monkeypatch):
    monkeypatch.setattr(kinds, "_LOOK", 0)
    job = start(table, FAR_APART, kind)
    running.run(job.pk, KINDS, lambda seconds: True)
    job.refresh_from_db()
    assert (job.status, job.done, job.ended_at) == (JobStatus.RUNNING, 0, None)
    running.run_all(KINDS)
    job.refresh_from_db()
    assert (job.status, job.counts["inserted"]) == (JobStatus.DONE, 96)


def test_waiting_imports_hold_no_connection_and_stop_with_the_process(table):
    lane, job = threading.BoundedSemaphore(1), start(table, TEXT.encode())
    assert running.finish(start(table, TEXT.encode()), KINDS, lane).status == JobStatus.DONE
    with lane:
        process_end.announce()
        try:
            with pytest.raises(ServerBusy):
                running.finish(job, KINDS, lane)
        finally:
            process_end.revoke()
        assert connection.connection is None
    job.refresh_from_db()
    assert job.status == JobStatus.WAITING
    assert running.finish(job, KINDS, lane).status == JobStatus.DONE
