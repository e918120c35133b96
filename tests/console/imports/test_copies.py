"""The form that starts a copy from or to another service."""

import json

import pytest

from storage.models import Job
from storage.operations.remote_copies.copy_jobs import COPY_OUT_JOB
from storage.runtime import job_runner

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/ui/a/acme/copy/"
TEXT = "AccountName=acme;AccountKey=c2VjcmV0;TableEndpoint=http://127.0.0.1:1/acme;"


def test_a_maintainer_starts_a_copy_and_sees_how_it_ends(visit, people):
    client = visit("max")
    assert "Other service" in client.get(PATH).content.decode()
    wrong = client.post(PATH, {"direction": "in", "service": "AccountName=acme;AccountKey=c2VjcmV0=x=%"})
    assert wrong.status_code == 422 and "c2VjcmV0" not in wrong.content.decode()
    assert client.post(PATH, {"direction": "in", "service": TEXT, "filter": "N eq"}).status_code == 422
    assert not Job.objects.exists()

    answer = client.post(PATH, {"direction": "out", "service": TEXT, "tables": "p* q", "rate": "5"})
    job = Job.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/ui/jobs/{job.pk}/")
    assert (job.kind, job.arguments["options"]["tables"]) == (COPY_OUT_JOB.name, ["p*", "q"])
    assert "c2VjcmV0" not in json.dumps(job.arguments)
    job_runner.run_all()
    page = client.get(answer["Location"]).content.decode()
    assert "Copy to http://127.0.0.1:1/acme" in page and "cannot be reached" in page
