"""Jobs: lists, progress as a stream, files, and who may change what becomes of them."""

import asyncio
import json
from itertools import count

import pytest
from django.db import OperationalError
from django.utils import timezone

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.jobs import files, jobs
from storage.models import Activity, ApiToken, Job
from storage.rest import streams
from storage.runtime import job_runner
from storage.runtime.stream_access import LIMIT, AccessChanges
from storage.runtime.threads import in_thread
from storage.tables import indexes
from storage.tables.indexes import INDEX_JOB, Arguments
from tests.rest.test_errors import check
from tests.rest.test_streams import accept, following

pytestmark = pytest.mark.django_db(transaction=True)
MAX = Actor(ActorKind.USER, "max")


@pytest.fixture
def job(table):
    """Start the index that max asked for."""
    indexes.add(table, "Score", by=MAX)
    return Job.objects.get()


def server_job_of(name):
    return jobs.start(INDEX_JOB, Arguments(0, ""), account=None, by=Actor(ActorKind.USER, name))


def server_job():
    return server_job_of("ada")


def told(answer):
    return [item["id"] for item in answer.json()["items"]]


def test_members_see_the_jobs_of_their_accounts(call, job, table):
    other, server = accounts.add("other"), server_job()
    hidden = jobs.start(INDEX_JOB, Arguments(0, ""), account=other, by=MAX)
    victor, ada = call("victor", "read"), call("ada", "read")
    assert told(victor("GET", "jobs")) == [job.pk]
    assert told(ada("GET", "jobs")) == [hidden.pk, server.pk, job.pk]
    assert told(ada("GET", "jobs?account=acme&status=waiting&user=max")) == [job.pk]
    assert told(ada("GET", "jobs?status=failed")) == []
    page = ada("GET", "jobs?limit=2").json()
    assert told(ada("GET", page["next"].partition("testserver")[2])) == [job.pk]
    check(call("sam", "read")("GET", f"jobs/{job.pk}"), 404)
    check(victor("GET", f"jobs/{server.pk}"), 404)
    check(victor("GET", f"jobs/{server.pk + 100}"), 404)

    job_runner.run_all()
    result = victor("GET", f"jobs/{job.pk}").json()
    assert (result["kind"], result["account"], result["table"]) == ("table.index", "acme", "people")
    assert (result["status"], result["started_by"], result["percentage"]) == ("done", "max", 100)
    assert (result["error"], result["seconds_left"], result["files"]) == ("", None, [])


def test_its_own_user_and_maintainers_change_it(call, job):
    path = f"jobs/{job.pk}"
    check(call("victor", "manage")("POST", f"{path}/cancel"), 403)
    check(call("eve", "manage")("POST", f"{path}/cancel"), 403)
    check(call("max", "read")("POST", f"{path}/cancel"), 403)
    check(call("sam", "manage")("POST", f"{path}/cancel"), 404)
    manage = call("max", "manage")
    assert manage("POST", f"{path}/pause").json()["wish"] == "pause"
    job_runner.run_all()
    check(manage("POST", f"{path}/pause"), 409)
    assert manage("GET", path).json()["status"] == "paused"
    assert call("alice", "manage")("POST", f"{path}/resume").json()["status"] == "waiting"
    check(manage("POST", f"{path}/resume"), 409)
    assert call("alice", "manage")("POST", f"{path}/cancel").json()["wish"] == "cancel"
    job_runner.run_all()
    check(manage("POST", f"{path}/cancel"), 409)
    recorded = Activity.objects.filter(verb__startswith="job.").order_by("pk")
    assert [(it.verb, it.actor, it.detail["job"]) for it in recorded] == [
        ("job.pause", "max", job.pk),
        ("job.resume", "alice", job.pk),
        ("job.cancel", "alice", job.pk),
    ]


def test_files_are_downloaded_in_whole_or_in_parts(call, job):
    made = files.create("out ü.csv", account=job.account, by=MAX, job=job, content_type="text/csv")
    files.upload(made, [b"0123456789"])
    unfinished = files.create("later.csv", account=job.account, by=MAX, job=job)
    ask, path = call("victor", "read"), f"jobs/{job.pk}/files/{made.pk}"
    assert [it["name"] for it in ask("GET", f"jobs/{job.pk}").json()["files"]] == ["out ü.csv"]

    whole = ask("GET", path)
    assert (whole.status_code, b"".join(whole), whole["Content-Length"]) == (200, b"0123456789", "10")
    assert whole["Content-Disposition"] == "attachment; filename*=UTF-8''out%20%C3%BC.csv"
    for asked, status, content, told_range in (
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=0-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=1-2,4-5", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
    ):
        answer = ask("GET", path, Range=asked)
        assert (answer.status_code, b"".join(answer), answer.get("Content-Range")) == (
            status,
            content,
            told_range,
        )
    for asked in ("bytes=10-", "bytes=4-2"):
        assert ask("GET", path, Range=asked).status_code == 416
    assert ask("GET", path, **{"Range": "bytes=2-", "If-Range": '"former"'}).status_code == 200
    check(ask("GET", f"jobs/{job.pk}/files/{unfinished.pk}"), 404)


async def test_a_stream_survives_a_lost_database(job, monkeypatch):
    find, losses = jobs.get, iter(range(2))
    monkeypatch.setattr(streams, "_PAUSE", 0.0)

    def find_or_lose(pk):
        if next(losses, None) is not None:
            raise OperationalError("the connection is lost")
        return find(pk)

    monkeypatch.setattr(jobs, "get", find_or_lose)
    stream = streams.JobStream(job.pk, None, lambda changed: str(changed.pk).encode(), "user 1", lambda: True)
    events = stream.events(None)
    async with asyncio.timeout(60):
        assert f"data: {job.pk}\n".encode() in await anext(events)
    await events.aclose()


@pytest.mark.parametrize("loses", ["the token", "the right"])
async def test_the_stream_of_a_job_of_the_server_ends_with_access(call, cast, loses):
    job, caller = await in_thread(server_job_of, "eve"), await in_thread(call, "ada", "read")
    address = (f"/ui/api/v1/jobs/{job.pk}", {"Authorization": f"Bearer {caller.secret}"})
    async with following(*accept(address), AccessChanges(clock=count(step=LIMIT).__next__)) as reader:
        if loses == "the token":
            await in_thread(ApiToken.objects.update, expires_at=timezone.now())
        else:
            await in_thread(User.objects.filter(username="ada").update, is_admin=False)
        await reader.end()


async def test_progress_is_streamed_until_the_end(call, job):
    caller = await in_thread(call, "victor", "read")
    address = (f"/ui/api/v1/jobs/{job.pk}", {"Authorization": f"Bearer {caller.secret}"})
    async with following(*accept(address), AccessChanges()) as reader:
        await in_thread(job_runner.run_all)
        await reader.end()
    events = [json.loads(text.partition(b"data: ")[2]) for text in reader.texts if b"data: " in text]
    assert [event["status"] for event in events][:: len(events) - 1] == ["waiting", "done"]
    version = await in_thread(lambda: jobs.version(jobs.get(job.pk)))
    headers = {"Accept": "text/event-stream", "Last-Event-ID": version}
    assert (await in_thread(lambda: caller("GET", f"jobs/{job.pk}", **headers))).status_code == 204
