"""The list of jobs, one with its progress, what becomes of it, its files, and the tray."""

import json
import re
from dataclasses import asdict
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from console.site import waiting
from storage.accounts import removal
from storage.core.notices import Look
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.jobs import files, jobs
from storage.jobs.conditions import find_failed
from storage.jobs.kinds import Failure
from storage.models import Job, Table
from storage.runtime import job_runner
from storage.sql.background import has_rows
from storage.sql.django import execute
from storage.tables import indexes, tables
from storage.tables.indexes import INDEX_JOB, Arguments
from storage.tabular.layout import FileFormat, Layout
from storage.transfer.import_jobs import IMPORT_CHECK_JOB, ImportArguments
from tests.history.test_changes import actor, entity, write

pytestmark = pytest.mark.django_db(transaction=True)
LIST, TRAY = "/ui/jobs/", "/ui/jobs/tray/"
MAX = Actor(ActorKind.USER, "max")


@pytest.fixture
def job(add_entity):
    """Start the index that max asked for."""
    indexes.add(Table.objects.get(), "Score", by=MAX)
    return Job.objects.get()


def text(answer):
    """Return the text of a page without tags, as a reader sees it."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


def page(job):
    return reverse("jobs:show", args=(job.pk,))


def test_the_list_has_the_jobs_of_ones_accounts(visit, job):
    jobs.start(INDEX_JOB, Arguments(0, "Hidden"), account=None, by=Actor(ActorKind.USER, "ada"))
    victor = visit("victor")
    shown = victor.get(LIST)
    assert "Index Score of people" in text(shown)
    assert "Hidden" not in text(shown)
    assert "every 2s" in shown.content.decode()
    assert "Hidden" in text(visit("ada").get(LIST))
    sam = visit("sam")
    assert "No jobs" in text(sam.get(LIST))
    assert "No jobs" in text(victor.get(LIST, {"mine": "1"}))
    assert "No jobs" in text(victor.get(LIST, {"status": "failed"}))
    assert victor.get(LIST, {"before": job.pk, "status": "odd"}).status_code == 200
    assert sam.get(page(job)).status_code == 404
    assert visit(None).get(page(job)).status_code == 302


def test_its_progress_and_end_are_shown(visit, job):
    Job.objects.update(
        status="running", done=812, total=1284, rate=740, counts={"inserted": 806, "odd": 6}, failed=3
    )
    stored = Failure("line 7", jobs.JobError(jobs.Reason.JOB_ENDED, job=1).refusal)
    Job.objects.update(failures=[{"subject": stored.subject, "refusal": stored.refusal.dump()}])
    max_ = visit("max")
    shown = text(max_.get(page(job)))
    for part in ("running", "812 of 1,284", "63 %", "about 1 s left", "740 per second", "inserted 806"):
        assert part in shown, (part, shown)
    assert "line 7 The job 1 has ended." in shown
    assert "and 2 more" in shown
    assert "every 1s" in max_.get(page(job), headers={"HX-Request": "true"}).content.decode()

    job_runner.run_all()
    shown = max_.get(page(job))
    assert "finished" in text(shown)
    assert "every 1s" not in shown.content.decode()
    assert "Cancel job" not in text(shown)


def test_a_failure_is_told_and_resumed(visit, job):
    relation = f"entity_{job.table_id}_property_{job.arguments['index']}"
    execute(f"CREATE TABLE {relation} (in_the_way int)")
    job_runner.run_all()
    max_ = visit("max")
    assert f'could not be built: relation "{relation}" already exists' in text(max_.get(page(job)))
    assert "Jobs: 0 active, 1 failed" in max_.get("/ui/").content.decode()
    execute(f"DROP TABLE {relation}")
    assert "continues where it stopped" in text(max_.post(f"{page(job)}resume/", follow=True))


def test_cancelling_pausing_and_resuming(visit, job):
    victor, max_ = visit("victor"), visit("max")
    assert "Cancel job" not in text(victor.get(page(job)))
    assert victor.post(f"{page(job)}cancel/").status_code == 403
    assert visit("sam").post(f"{page(job)}cancel/").status_code == 404
    assert max_.get(f"{page(job)}cancel/").status_code == 405
    assert "being paused" in text(max_.post(f"{page(job)}pause/", follow=True))
    job_runner.run_all()
    shown = text(max_.get(page(job)))
    assert "paused" in shown
    assert "Resume" in shown
    assert "is paused already" in text(max_.post(f"{page(job)}pause/", follow=True))
    max_.post(f"{page(job)}resume/")
    assert "being cancelled" in text(max_.post(f"{page(job)}cancel/", follow=True))
    job_runner.run_all()
    assert "cancelled" in text(max_.get(page(job)))
    log = text(max_.get("/ui/a/acme/activity/"))
    for verb in ("paused", "resumed", "cancelled"):
        assert f"max {verb} the job {job.pk}" in log


def test_the_tray_has_ones_own_jobs_until_they_are_cleared(visit, job):
    max_, alice = visit("max"), visit("alice")
    assert "No job of yours is running." in text(alice.get("/ui/"))
    shown = max_.get("/ui/").content.decode()
    assert "Jobs: 1 active, 0 failed" in shown
    assert 'hx-trigger="every 2s"' in shown
    job_runner.run_all()
    shown = max_.get(TRAY)
    assert "finished · acme" in text(shown)
    assert "every 2s" not in shown.content.decode()
    cleared = max_.post(f"{TRAY}clear/", headers={"HX-Request": "true"})
    assert "No job of yours is running." in text(cleared)
    assert max_.post(f"{TRAY}clear/").status_code == 302


def test_ended_checks_and_previews_are_not_listed(visit, job):
    max_ = visit("max")
    file = files.create("kunden.csv", account=job.account, by=MAX)
    check = ImportArguments(file.pk, "{}", "{}", "merge")
    started = jobs.start(IMPORT_CHECK_JOB, check, account=job.account, table=job.table, files=[file], by=MAX)
    for address in (LIST, TRAY):
        assert "Checking kunden.csv" in text(max_.get(address))
    Job.objects.filter(pk=started.pk).update(status="failed", ended_at=timezone.now())
    for address in (LIST, TRAY):
        assert "kunden.csv" not in text(max_.get(address))
    assert "Checked kunden.csv" in text(max_.get(page(started)))
    assert not list(find_failed(Look(timezone.now(), 0)))


def test_a_finished_job_shows_its_whole_amount_and_leads_to_its_table(visit, job):
    victor = visit("victor")
    assert "Open people" not in text(victor.get(page(job)))
    layout = json.dumps(asdict(Layout(FileFormat.CSV)))
    Job.objects.update(kind="entity.import", arguments=asdict(ImportArguments(0, layout, "{}", "merge")))
    Job.objects.update(status="done", ended_at=timezone.now(), total=1_100_000)
    shown = victor.get(page(job))
    assert "1.0 MB of 1.0 MB 100 %" in text(shown)
    assert "Open people" in text(shown) and 'href="/ui/a/acme/t/people/"' in shown.content.decode()
    assert (
        'id="sidebar"' in shown.content.decode() and 'href="/ui/a/acme/snapshots/"' in shown.content.decode()
    )


def test_files_are_downloaded(visit, job):
    made = files.create("out.csv", account=job.account, by=MAX, job=job, content_type="text/csv")
    files.upload(made, [b"0123"])
    address = f"{page(job)}files/{made.pk}/"
    victor = visit("victor")
    assert "out.csv 4 bytes" in text(victor.get(page(job)))
    assert b"".join(victor.get(address, headers={"Range": "bytes=1-2"})) == b"12"
    assert visit("sam").get(address).status_code == 404
    assert victor.get(f"{page(job)}files/0/").status_code == 404


def test_a_page_waits_for_its_work_but_not_for_long(visit, add_entity, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0)
    write(Table.objects.get(), actor(2, "script"), Insert(entity("a", 1)))
    client = visit("max")
    answer = client.post("/ui/a/acme/activity/revert/?how=key")
    job = Job.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page(job))
    assert "Undo changes" in text(client.get(page(job))) and job.ended_at is None
    job_runner.run_all()
    assert "finished deleted 1 Account acme" in text(client.get(page(job)))


def test_a_large_undo_goes_on_as_a_job(visit, add_entity, monkeypatch):
    monkeypatch.setattr(waiting, "LARGE", 0)
    table, client = Table.objects.get(), visit("max")
    write(table, actor(2, "script"), Insert(entity("a", 1)))
    client.post("/ui/a/acme/activity/revert/?how=key")
    job_runner.run_all()
    done = Job.objects.get().activity
    assert done.detail["rows"] == 1 and not has_rows(table)

    client.post(f"/ui/undo/{done.pk}/")
    assert "The undo takes longer and continues as a job." in text(client.get(LIST))
    job_runner.run_all()
    assert has_rows(table)

    client.post(f"/ui/undo/{done.pk}/")
    assert "This was already undone." in text(client.get(LIST))


def test_a_large_account_is_branched_and_deleted_by_jobs(proven, add_entity, monkeypatch):
    monkeypatch.setattr(waiting, "LARGE", -1)
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", 1)
    mail = EdmValue(Edm.STRING, "ada@shop.test")
    leaky = Entity(EntityKey("p", "a"), {"Mail": mail, "Copy": mail})
    table = Table.objects.get()
    write(table, actor(2, "script"), Insert(leaky))
    tables.create(table.account, "second")
    client = proven("ada")
    branch = {
        "name": "staging",
        "snapshot": ":now",
        "hours": "8",
        "table": "people",
        "mask-people-Mail": "email",
    }
    answer = client.post("/ui/a/acme/snapshots/branch/", branch)
    job = Job.objects.get()
    assert answer["Location"] == page(job) and job.status == "waiting"
    client.post(f"{page(job)}cancel/")
    assert "The job ends, and the incomplete account is removed." in text(client.get(page(job)))
    job_runner.run_all()
    client.post(f"{page(job)}resume/")
    assert "The job starts over." in text(client.get(page(job)))
    job_runner.run_all()
    shown = text(client.get(page(job)))
    assert "Create the branch staging" in shown and "people.Copy has original values" in shown

    owner = proven("alice")
    monkeypatch.setattr(waiting, "LARGE", 0)
    assert owner.post("/ui/a/acme/delete/", {"name": "acme"})["Location"] == "/ui/"
    assert "Deleted the account acme." in text(owner.get("/ui/"))
    shown = owner.get(page(Job.objects.latest("pk")))
    assert "Delete account acme" in text(shown) and "Delete account acme" in text(owner.get(LIST))


def test_account_exports_need_the_right_to_manage(visit, add_entity):
    client = visit("max")
    answer = client.post("/ui/a/acme/export/")
    job_runner.run_all()
    [file] = files.to_download(Job.objects.get())
    shown = text(client.get(answer["Location"]))
    assert "Export the account acme" in shown and "acme.ndjson.gz" in shown
    address = f"{answer['Location']}files/{file.pk}/"
    assert [visit(name).get(address).status_code for name in ("max", "eve", "sam")] == [200, 403, 404]
