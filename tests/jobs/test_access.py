"""A job ends when the user who has started it may no longer do what it does; what it did stays, and can be undone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from console.models import User
from storage.account_files import account_copies
from storage.accounts import accounts, removal
from storage.branches import branches
from storage.branches.branches import BranchRequest
from storage.domain.access.actor import COMMAND, SERVER, Actor, ActorKind
from storage.domain.access.roles import Role, Scope
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.entities.writing import WriteMode
from storage.history.changes import ChangeFilter
from storage.jobs import files, jobs, pacing, running
from storage.jobs.jobs import JobError
from storage.jobs.kinds import JobKind
from storage.jobs.states import JobStatus
from storage.models import Account, Activity, ApiToken, Job, Membership
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.runtime import job_runner
from storage.tables import tables
from storage.tabular.mapping import ColumnMapping
from storage.transfer import import_jobs
from storage.undo import data_undo, undo

pytestmark = pytest.mark.django_db(transaction=True)

EVE = Actor(ActorKind.USER, "eve")
ROWS = 60
TEXT = b"PartitionKey,RowKey\n" + b"".join(b"p,%d\n" % number for number in range(ROWS))
MAPPING = ColumnMapping("{PartitionKey}", "{RowKey}")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(running, "FIRST_SIZE", 10)
    monkeypatch.setattr(pacing.Pace, "after_step", lambda self, size: (10, 0))


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


@pytest.fixture
def eve(table):
    user = User.objects.create_user("eve", "a password of 8")
    Membership.objects.create(user=user, account=table.account, role=Role.EDITOR)
    return user


def count(table):
    return sum(len(page) for page in entities.all_pages(table, EntityQuery()))


def start(table, by=EVE, kind=import_jobs.start):
    file = files.create("people.csv", account=table.account, by=by)
    files.upload(file, [TEXT])
    return kind(table, file, import_jobs.open_rows(file), MAPPING, WriteMode.MERGE, by=by)


def run(job, do=lambda: None, after=2):
    """Run a job to its end, and do something after some of its steps."""
    rests = 0

    def rest(seconds):
        nonlocal rests
        rests += 1
        if rests == after:
            do()
        return False

    while job.ended_at is None:
        running.run(job.pk, job_runner.KINDS, rest)
        job.refresh_from_db()
    return job


def token_of(user, name="ci", scope=Scope.WRITE, **more):
    _, token = api_tokens.issue(user, TokenRequest(name, scope, **more), by=SERVER)
    return token, Actor(ActorKind.TOKEN, user.username, token=name, token_id=token.pk)


LOSSES = {
    "deleted": lambda eve: eve.delete(),
    "disabled": lambda eve: User.objects.update(is_active=False),
    "no member": lambda eve: Membership.objects.all().delete(),
    "viewer": lambda eve: Membership.objects.update(role=Role.VIEWER),
}


@pytest.mark.parametrize("how", LOSSES)
def test_an_import_ends_when_its_user_loses_access(table, eve, how):
    job = run(start(table), lambda: LOSSES[how](eve))
    refusal = jobs.error_of(job)
    assert (job.status, refusal.reason) == (JobStatus.FAILED, Reason.JOB_ACCESS_LOST)
    assert "eve, who started it, no longer has the access" in str(refusal)
    assert 0 < count(table) < ROWS
    assert job.activity.detail["interrupted"] is True
    undo.undo(job.activity, SERVER)
    assert count(table) == 0


@pytest.mark.parametrize("how", LOSSES)
def test_one_that_has_not_begun_and_a_check_end_as_well(table, eve, how):
    waiting, check = start(table), start(table, kind=import_jobs.start_check)
    LOSSES[how](eve)
    for job in (waiting, check):
        assert jobs.error_of(run(job)).reason is Reason.JOB_ACCESS_LOST
    assert count(table) == 0


def test_a_job_goes_on_while_its_user_keeps_the_required_role(table, eve):
    maintainer = Membership.objects.filter(user=eve)
    maintainer.update(role=Role.OWNER)
    job = run(start(table), lambda: maintainer.update(role=Role.EDITOR))
    assert (job.status, count(table)) == (JobStatus.DONE, ROWS)
    maintainer.delete()
    User.objects.update(is_admin=True)
    assert run(start(table)).status == JobStatus.DONE


@pytest.mark.parametrize(
    "lose",
    [
        lambda token: api_tokens.revoke(token, by=SERVER),
        lambda token: ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now()),
        lambda token: token.delete(),
        lambda token: token.user.delete(),
    ],
)
def test_a_job_of_a_token_ends_with_this_token(table, eve, lose):
    """Another one of the same name and user goes on."""
    token, by = token_of(eve, expires_at=timezone.now() + timedelta(days=1))
    _, by_other = token_of(eve)
    job = run(start(table, by), lambda: lose(token))
    assert (job.status, jobs.error_of(job).reason) == (JobStatus.FAILED, Reason.JOB_ACCESS_LOST)
    if User.objects.exists():
        assert run(start(table, by_other)).status == JobStatus.DONE


@pytest.mark.parametrize("by", [SERVER, COMMAND, replace(COMMAND, name="eve")])
def test_jobs_not_started_by_users_go_on(table, eve, by):
    assert run(start(table, by), lambda: eve.delete()).status == JobStatus.DONE


def test_a_new_user_of_the_same_name_does_not_inherit_the_job(table, eve):
    job = start(table)
    eve.delete()
    again = User.objects.create_user("eve", "a password of 8")
    Membership.objects.create(user=again, account=table.account, role=Role.OWNER)
    assert jobs.error_of(run(job)).reason is Reason.JOB_ACCESS_LOST


def test_resuming_a_job_keeps_the_access_of_its_starter(table, eve):
    max_ = Actor(ActorKind.USER, "max")
    Membership.objects.create(
        user=User.objects.create_user("max", "a password of 8"), account=table.account, role=Role.OWNER
    )
    job, steps = start(table), iter(range(3))

    def rest(seconds):
        if next(steps, None) is None:
            jobs.pause(job, by=max_)
        return False

    running.run(job.pk, job_runner.KINDS, rest)
    membership = Membership.objects.get(user=eve)
    membership.delete()
    with pytest.raises(JobError, match="eve, who started it"):
        job_runner.resume(job, by=max_)
    assert 0 < count(table) < ROWS
    membership.save(force_insert=True)
    assert run(job_runner.resume(job, by=max_)).status == JobStatus.DONE
    assert (count(table), Activity.objects.get(verb="entity.import").actor) == (ROWS, "eve")


def test_a_request_that_waits_hears_why(table, eve):
    entity_import = run(start(table)).activity
    request = data_undo.request(table.account, ChangeFilter(), undoes=entity_import)
    Membership.objects.update(role=Role.VIEWER)
    with pytest.raises(JobError, match="no longer has the access"):
        running.complete(request, by=EVE)
    assert count(table) == ROWS
    Membership.objects.update(role=Role.EDITOR)
    running.complete(request, by=EVE)  # her own job
    assert count(table) == 0
    others = data_undo.request(table.account, ChangeFilter())
    with pytest.raises(JobError):
        running.complete(others, by=EVE)


def test_jobs_on_whole_accounts_check_access_to_the_source(table, eve):
    """A new account has no members yet, and one that is deleted has none any more."""
    Membership.objects.update(role=Role.OWNER)
    copied = account_copies.copy(table.account, "copied", AccountKind.STORAGE, by=EVE)
    branch = branches.create(table.account, BranchRequest("branch"), by=EVE)
    for index in range(3):
        tables.create(table.account, f"more{index}")
    removal_job = removal.request(table.account, with_tables=True)
    Membership.objects.filter(account=table.account).update(role=Role.MAINTAINER)
    for request in (
        removal_job,
        account_copies.request(table.account, "other", AccountKind.STORAGE),
        branches.request(table.account, BranchRequest("third")),
    ):
        with pytest.raises(JobError):
            running.complete(request, by=EVE)
    assert {*Account.objects.values_list("name", flat=True)} == {"acme", "copied", "branch"}
    assert copied.account.name, branch.account.name
    Membership.objects.filter(account=table.account).update(role=Role.OWNER)
    running.complete(removal_job, by=EVE)
    assert not Account.objects.filter(name="acme").exists()
    assert Job.objects.filter(kind="account.delete", status=JobStatus.DONE).exists()


def test_a_kind_requires_the_access_of_its_start(table, eve):
    for kind in job_runner.KINDS.values():
        if type(kind).needed_access is JobKind.needed_access:
            job = Job(kind=kind.name, account=table.account, starter=eve.pk)
            assert kind.needed_access(job, None) == [(table.account.pk, kind.capability)]
