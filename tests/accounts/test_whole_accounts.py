"""Jobs that make or delete accounts as a whole. tests/faults/test_kills.py kills their processes."""

import pytest

from storage.account_files import account_building, account_copies
from storage.accounts import account_settings, accounts, removal
from storage.accounts.refusals import AccountIsBusy
from storage.accounts.subject import AccountVerb
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.jobs import jobs, running
from storage.jobs.states import JobStatus
from storage.models import Account, Activity, Job
from storage.runtime import job_runner
from storage.tables import tables

pytestmark = pytest.mark.django_db(transaction=True)
ADA = Actor(ActorKind.USER, "ada")


@pytest.fixture
def source():
    account = accounts.add("acme")
    for number in range(5):
        tables.create(account, f"table{number}")
    return account


@pytest.fixture
def crowded(source, monkeypatch):
    monkeypatch.setattr(removal, "_DROPPED_TOGETHER", 2)
    return source


def start_copy(source):
    return jobs.start_requested(account_copies.request(source, "twig", AccountKind.STORAGE), by=ADA)


def run(job, rest=lambda seconds: False):
    assert running.run(job.pk, job_runner.KINDS, rest)
    return jobs.get(job.pk)


def after(number, do):
    """Do something after so many transactions."""
    rests = iter(range(1, number + 1))

    def rest(seconds):
        if next(rests, None) == number:
            do()
        return False

    return rest


class Death(BaseException):
    pass


def die(monkeypatch, job, number):
    """Run a job in a process that dies after so many transactions: nothing is tidied."""
    rests = iter(range(1, number + 1))

    def rest(seconds):
        if next(rests, None) == number:
            raise Death
        return False

    with monkeypatch.context() as patched:
        patched.setattr(account_building, "_remove", lambda pk: None)
        with pytest.raises(Death):
            running.run(job.pk, job_runner.KINDS, rest)
    return jobs.get(job.pk)


def names(account):
    return [it.name for it in tables.listed(account)]


def test_another_process_makes_an_account_again(source, monkeypatch):
    job = die(monkeypatch, start_copy(source), 3)
    half = accounts.by_name("twig")
    assert (job.status, job.account, half.enabled, names(half)) == (
        "running", half, False, ["table0", "table1"],
    )  # fmt: skip
    with pytest.raises(AccountIsBusy):
        account_settings.change(accounts.by_name("twig"), enabled=True)

    job_runner.run_all()

    made = account_building.built_by(jobs.get(job.pk))
    assert (made.tables, made.account.enabled, made.account.pk != half.pk) == (5, True, True)
    assert names(made.account) == names(source)


def test_the_next_request_for_the_name_begins_again(source, monkeypatch):
    job = die(monkeypatch, start_copy(source), 3)
    made = account_copies.copy(source, "twig", AccountKind.STORAGE, by=ADA)
    assert (made.tables, jobs.get(job.pk).status) == (5, "cancelled")
    assert not Job.objects.filter(ended_at=None).exists()
    assert names(made.account) == names(source)


@pytest.mark.parametrize("change", [jobs.cancel, jobs.pause])
def test_an_account_whose_making_is_stopped_is_removed(source, change):
    job = start_copy(source)
    job = run(job, after(3, lambda: change(job, by=ADA)))
    assert (job.status, job.account) == ("cancelled" if change is jobs.cancel else "paused", None)
    assert accounts.find("twig") is None
    assert run(jobs.resume(job, by=ADA)).status == "done"
    assert names(accounts.by_name("twig")) == names(source)


def test_cancelling_a_job_of_a_dead_process_removes_its_account(source, monkeypatch):
    job = die(monkeypatch, start_copy(source), 3)
    jobs.cancel(job, by=ADA)
    job_runner.run_all()
    assert jobs.get(job.pk).status == JobStatus.CANCELLED
    assert accounts.find("twig") is None


def test_an_account_that_is_not_completed_is_removed(source, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(account_building, "copy_table", fail)
    with pytest.raises(ZeroDivisionError):
        account_copies.copy(source, "twig", AccountKind.STORAGE, by=ADA)
    assert accounts.find("twig") is None


def test_an_account_that_took_the_name_stays(source):
    def take_name():
        removal.remove("twig", with_tables=True)
        accounts.add("twig")

    job = run(start_copy(source), after(3, take_name))
    assert job.status == "failed"
    assert accounts.find("twig") is not None and names(accounts.by_name("twig")) == []


def test_another_process_completes_a_deletion(crowded, monkeypatch):
    job = die(monkeypatch, jobs.start_requested(removal.request(crowded, with_tables=True), by=ADA), 2)
    assert len(names(crowded)) == 3
    with pytest.raises(AccountIsBusy):
        account_settings.change(accounts.by_name("acme"), protected=True)
    jobs.cancel(job, by=ADA)  # too late

    job_runner.run_all()

    job = jobs.get(job.pk)
    assert accounts.find("acme") is None
    assert (job.status, job.done, job.total) == ("done", 5, 5)
    done = Activity.objects.get(verb=AccountVerb.DELETE)
    assert (done.actor, done.detail["tables"]) == ("ada", [f"table{number}" for number in range(5)])


def test_a_deletion_is_cancelled_before_it_has_dropped_anything(crowded):
    job = jobs.start_requested(removal.request(crowded, with_tables=True), by=ADA)
    jobs.cancel(job, by=ADA)
    assert run(job).status == "cancelled"
    assert len(names(crowded)) == 5


def test_a_deletion_that_is_refused_deletes_nothing(crowded):
    account_settings.change(crowded, protected=True)
    with pytest.raises(Refused, match="protected"):
        removal.remove("acme", with_tables=True)
    assert Account.objects.count() == 1 and len(names(crowded)) == 5
