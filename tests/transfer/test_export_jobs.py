"""Exports as jobs: the file is whole, wherever its process is interrupted, and nothing is left of a cancelled one."""

import io
import zipfile

import pytest

from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.filters.parser import parse
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits, entities
from storage.jobs import files, jobs, running
from storage.jobs.states import JobStatus
from storage.models import JobFile
from storage.tables import tables
from storage.transfer import export_jobs
from storage.transfer.export_jobs import TABLE_EXPORT_JOB
from storage.transfer.exports import Export, Scope

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Actor(ActorKind.USER, "ada")
KINDS = {TABLE_EXPORT_JOB.name: TABLE_EXPORT_JOB}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(files, "PIECE", 100)


@pytest.fixture
def table():
    made = tables.create(accounts.add("acme"), "people")
    for number in range(9):
        entity = Entity(EntityKey("p", str(number)), {"Text": EdmValue(Edm.STRING, "x" * 50)})
        edits.apply_one(made, Insert(entity), by=ADA)
    return made


def content(job):
    [file] = files.to_download(job)
    return file.name, b"".join(files.read(file))


def test_an_export_that_was_interrupted_begins_again(table, monkeypatch):
    text = "RowKey ge '2'"
    export = Export(table, "ndjson", ADA, Scope.QUERY, filter=parse(text), text=text)
    job = export_jobs.start(export)
    pages = entities.all_pages

    def broken(*given):
        yield from pages(*given)
        raise KeyboardInterrupt  # as when its process is killed

    monkeypatch.setattr(entities, "all_pages", broken)
    with pytest.raises(KeyboardInterrupt):
        running.run(job.pk, KINDS, lambda seconds: False)
    assert not files.to_download(job)
    monkeypatch.setattr(entities, "all_pages", pages)
    running.run_all(KINDS)
    job.refresh_from_db()
    assert (job.status, job.counts, job.done, job.total) == (JobStatus.DONE, {"exported": 7}, 7, 7)
    name, lines = content(job)
    assert (name, lines.count(b"\n")) == ("people.ndjson", 7)


def test_an_account_as_a_zip_file_and_a_cancelled_one(table):
    tables.create(table.account, "empty")
    every = tables.listed(table.account)
    job = export_jobs.start_zip(table.account, every, "csv", by=ADA)
    cancelled = export_jobs.start_zip(table.account, every, "csv", by=ADA)
    jobs.cancel(cancelled, by=ADA)
    running.run_all(KINDS)
    job.refresh_from_db()
    name, data = content(job)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert (name, sorted(archive.namelist())) == ("acme.zip", ["empty.csv", "people.csv"])
        assert archive.read("people.csv").count(b"\n") == 10
    assert not JobFile.objects.filter(job=cancelled).exists()
