"""A table is distributed over the nodes of a cluster, and brought back, on its settings page."""

import pytest

from storage.accounts import account_settings
from storage.cluster.subject import ClusterVerb
from storage.models import Activity, Job, Table
from storage.runtime import doctor, job_runner
from storage.sql.django import execute
from tests.console.markup import text
from tests.sql import citus

# a job moves the rows, with a session of its own
pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = "/ui/a/acme/t/people/settings/"
PART = SETTINGS + "distribution/"
START = PART + "start/"


@pytest.fixture
def cluster():
    with citus.installed():
        yield


def card(client):
    return text(client.get(PART))


def found_by_doctor():
    return " ".join(finding.text for finding in doctor.parts()["cluster"]())


def test_without_a_cluster_nothing_is_offered(visit, add_entity):
    alice = visit("alice")
    assert "Distribut" not in alice.get(SETTINGS).content.decode().partition("<main")[2]
    assert "is not the coordinator of a Citus cluster" in text(alice.post(START, follow=True))
    assert not Job.objects.exists()


def test_is_distributed_and_brought_back_by_a_job(cluster, visit, add_entity):
    add_entity("se", "1", Score=5)
    alice = visit("alice")
    assert "past-button" in alice.get("/ui/a/acme/t/people/").content.decode()
    page = text(alice.get(SETTINGS))
    assert "are on the coordinator" in page
    assert "Costs and limitations" in page

    assert "Distributing people." in text(alice.post(START, follow=True))
    assert "hx-get" in card(alice)
    assert "distributing" in card(alice)
    assert "are being moved" in text(alice.post(START, follow=True))
    job_runner.run_all()
    assert Table.objects.get().distributed
    assert "hx-get" not in card(alice)
    assert "are on the nodes of the cluster" in card(alice)
    assert "past-button" in alice.get("/ui/a/acme/t/people/").content.decode()
    past = alice.get("/ui/a/acme/t/people/", {"asof": "2026-01-01T00:00:00Z"})
    assert past.status_code == 422, past.status_code
    assert "This time cannot be shown" in text(past)
    done = Activity.objects.get(verb=ClusterVerb.DISTRIBUTE)
    assert (done.actor, done.address) == ("alice", "127.0.0.1")

    assert "Bringing people back." in text(alice.post(START, {"back": "1"}, follow=True))
    job_runner.run_all()
    assert not Table.objects.get().distributed
    assert "are on the coordinator" in card(alice)
    assert "is not distributed" in text(alice.post(START, {"back": "1"}, follow=True))


def test_a_failure_is_shown_tried_again_and_dismissed(cluster, visit, add_entity):
    alice = visit("alice")
    execute("ALTER FUNCTION create_distributed_function RENAME TO gone")
    for _attempt in range(2):
        alice.post(START)
        job_runner.run_all()
        reason = "could not be distributed: function create_distributed_function(unknown) does not exist"
        assert reason in card(alice)
    assert "The last attempt to move this table failed." in card(visit("victor"))
    assert "Moving acme/people has failed: The table people could not be distributed" in found_by_doctor()
    execute("ALTER FUNCTION gone RENAME TO create_distributed_function")
    job_runner.run_all()
    assert not Table.objects.get().distributed

    alice.post(PART + "dismiss/")
    assert "could not be distributed" not in card(alice)
    alice.post(START)
    job_runner.run_all()
    assert Table.objects.get().distributed


def test_work_of_a_dead_process_is_not_repeated(cluster, visit, add_entity):
    visit("alice").post(START)
    left = Job.objects.get()
    job_runner.run_all()
    Job.objects.filter(pk=left.pk).update(status=left.status, state={}, ended_at=None)
    job_runner.run_all()
    assert Job.objects.get().status == "done"


def test_only_owners_are_offered_it_and_not_while_read_only(cluster, visit, account, add_entity):
    alice = visit("alice")
    assert START in card(alice)
    assert START not in card(visit("max"))
    account_settings.change(account, read_only=True)
    assert START not in card(alice)
    alice.post(START)
    assert not Job.objects.exists()
