"""Jobs: start, search, pause, cancel and resume; storage.jobs.running runs them."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from storage.activity import activity
from storage.core import registry
from storage.core.verbs import Verb
from storage.domain.access.actor import SERVER, Actor, dump_actor, load_actor
from storage.domain.refusals import Reason, Refusal, Refused
from storage.domain.values.stored import read_member
from storage.jobs import starters
from storage.jobs import states as domain
from storage.jobs.kinds import Failure, JobKind, JobRequest
from storage.jobs.starters import OF_USERS
from storage.jobs.states import (
    RESUMABLE,
    RETENTION,
    JobStatus,
    Wish,
)
from storage.jobs.subject import JobVerb
from storage.models import Account, Activity, Job, JobFile, Table
from storage.sql.notify import notify_jobs

A = TypeVar("A")
S = TypeVar("S")

TRAY: Final = 20  # jobs
_MAKING_ACCOUNTS: Final = ("account.copy", "account.import", "branch.create")
_OF_WHOLE_ACCOUNTS: Final = (*_MAKING_ACCOUNTS, "account.delete")
# they change nothing: a page shows their results, so that ended ones are of no use in a list
_PREVIEWS: Final = ("entity.import-check", "entity.bulk-edit-preview")
_OF_ONE_PROCESS: Final = ("account.import", "entity.import-local")


ENDED_PREVIEW: Final = Q(kind__in=_PREVIEWS, ended_at__isnull=False)


class Starter(Protocol):
    """A user who may have started jobs.

    Jobs from before the user's creation belong to a deleted one of the same name, and jobs of a command to a
    user of the operating system.
    """

    username: str
    created_at: datetime


class JobError(Refused):
    """A job cannot be started or changed."""


@transaction.atomic
def start(
    kind: JobKind[A, S],
    arguments: A,
    *,
    account: Account | None,
    table: Table | None = None,
    files: Iterable[JobFile] = (),
    by: Actor = SERVER,
) -> Job:
    """Start a job; a server process runs it once the caller's transaction commits."""
    job = _new(kind, arguments, account, table, by)
    job.save(force_insert=True)
    JobFile.objects.filter(pk__in=[file.pk for file in files]).update(job=job)
    notify_jobs()
    return job


def start_requested(request: JobRequest[A, S], *, by: Actor) -> Job:
    return start(request.kind, request.arguments, account=request.account, table=request.table, by=by)


def unsaved(request: JobRequest[A, S], *, by: Actor) -> Job:
    """Return an unsaved job that is run immediately in the caller's transaction."""
    job = _new(request.kind, request.arguments, request.account, request.table, by)
    job.started_at = timezone.now()
    return job


def _new(kind: JobKind[A, S], arguments: A, account: Account | None, table: Table | None, by: Actor) -> Job:
    return Job(
        kind=kind.name,
        account=account,
        table=table,
        table_name="" if table is None else table.name,
        actor=activity.in_json(dump_actor(by)),
        starter=starters.find_user(by),
        starter_token=by.token_id,
        request_id=uuid.uuid4(),
        arguments=kind.write(arguments),
        status=JobStatus.WAITING,
    )


# reading


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Conditions on jobs; an empty one matches all.

    Jobs that belong to no account, such as an account's deletion, match ``account_ids`` if ``is_server``, or
    if ``reader`` has started them.
    """

    account_ids: Collection[int] | QuerySet[Any, Any] | None = None
    is_server: bool = False
    reader: Starter | None = None
    user: str = ""  # the name of the user who started them
    kinds: Collection[str] = ()
    statuses: Collection[JobStatus] = ()
    table: Table | None = None
    hides_previews: bool = False  # leave out ended checks and previews


def _of_no_account(criteria: JobFilter) -> Q:
    if criteria.is_server:
        return Q(account=None)
    if criteria.reader is None:
        return Q(pk=None)
    return Q(account=None) & _started_by(criteria.reader)


def _started_by(user: Starter) -> Q:
    kinds = [kind.value for kind in OF_USERS]
    return Q(actor__name=user.username, actor__kind__in=kinds, created_at__gte=user.created_at)


def find(criteria: JobFilter) -> QuerySet[Job]:
    """Find jobs, the newest first."""
    conditions = Q()
    if criteria.account_ids is not None:
        conditions &= Q(account__in=criteria.account_ids) | _of_no_account(criteria)
    if criteria.user:
        conditions &= Q(actor__name=criteria.user)
    if criteria.kinds:
        conditions &= Q(kind__in=criteria.kinds)
    if criteria.statuses:
        conditions &= Q(status__in=criteria.statuses)
    if criteria.table is not None:
        conditions &= Q(table=criteria.table)
    if criteria.hides_previews:
        conditions &= ~ENDED_PREVIEW
    matching = Job.objects.filter(conditions).select_related("account", "activity").order_by("-pk")
    return matching.prefetch_related("activity__undone_by", "files")


def get(pk: int) -> Job | None:
    return find(JobFilter()).filter(pk=pk).first()


def unfinished(
    kind: JobKind[Any, Any], *, account: Account | None = None, table: Table | None = None
) -> QuerySet[Job]:
    """Return the unfinished jobs of a kind, optionally of one account or table."""
    matching = Job.objects.filter(kind=kind.name, ended_at=None)
    if account is not None:
        matching = matching.filter(account=account)
    return matching if table is None else matching.filter(table=table)


def of_whole_account(account: Account) -> Job | None:
    """Return the job that is creating or deleting an account, which is incomplete until then."""
    return Job.objects.filter(account=account, kind__in=_OF_WHOLE_ACCOUNTS, ended_at=None).first()


def making(account_ids: Collection[int]) -> dict[int, Job]:
    """Return the unfinished jobs that create or delete accounts, by account."""
    matching = Job.objects.filter(account__in=account_ids, kind__in=_OF_WHOLE_ACCOUNTS, ended_at=None)
    return {job.account_id: job for job in matching if job.account_id is not None}


def detach(account: Account) -> None:
    """Detach jobs that create or delete an account before its deletion, so that they are kept."""
    Job.objects.filter(account=account, kind__in=_OF_WHOLE_ACCOUNTS).update(account=None)


def makes_account(job: Job) -> bool:
    """Return whether a job creates an account."""
    return job.kind in _MAKING_ACCOUNTS


def undone_by(job: Job) -> Activity | None:
    """Return the activity that took a job's changes back; None if they stand, also after a redo."""
    undo = None if job.activity is None else activity.undone_by(job.activity)
    if undo is None or activity.is_undone(undo):
        return None
    return undo


def is_of_one_process(job: Job) -> bool:
    """Return whether only the process that started a job can run it, as it reads a local file."""
    return job.kind in _OF_ONE_PROCESS


def for_tray(user: Starter) -> list[Job]:
    """Return a user's running jobs, and ended ones not yet seen, newest first."""
    # every page asks, and nearly always there is none: whole jobs are read only where some are
    shown = Job.objects.filter(_started_by(user), ~ENDED_PREVIEW, Q(ended_at=None) | Q(seen_at=None))
    keys = list(shown.order_by("-pk").values_list("pk", flat=True)[:TRAY])
    return list(find(JobFilter()).filter(pk__in=keys)) if keys else []


def mark_seen(user: Starter, *, upto: datetime) -> None:
    """Mark a user's jobs that ended until a time as seen."""
    found = Job.objects.filter(_started_by(user), seen_at=None, ended_at__lte=upto)
    found.update(seen_at=timezone.now())


def started_by(job: Job) -> Actor:
    """Return the user who started a job, with the request id of the job's changes."""
    return replace(load_actor(job.actor), request_id=str(job.request_id))


def is_started_by(job: Job, user: Starter) -> bool:
    by = started_by(job)
    return by.kind in OF_USERS and by.name == user.username and job.created_at >= user.created_at


def is_of_starter(job: Job, user: Starter) -> bool:
    """Return whether a user has started the unfinished creation of an account, which has no members yet."""
    return makes_account(job) and status_of(job) != JobStatus.DONE and is_started_by(job, user)


def status_of(job: Job) -> JobStatus:
    return read_member(JobStatus, job.status)


def error_of(job: Job) -> Refusal | None:
    """Return the refusal with which a job failed; None otherwise."""
    return registry.read_refusal(job.error) if job.error else None


def failures_of(job: Job) -> list[Failure]:
    """Return the first failures of lines or entities; Job.failed counts all."""
    return [
        Failure(it["subject"], registry.read_refusal(it["refusal"]), it.get("details", {}))
        for it in job.failures
    ]


def time_left(job: Job) -> timedelta | None:
    if job.status != JobStatus.RUNNING:
        return None
    return domain.time_left(job.done, job.total, job.rate)


def percentage(job: Job) -> int | None:
    if job.status == JobStatus.DONE:
        return 100
    found = domain.percentage(job.done, job.total)
    return None if found is None else min(found, 99)  # the total may be an estimate


def version(job: Job) -> str:
    """Return a version string that changes with each step and each change of status."""
    return f"{job.steps}-{job.status}{job.wish and '-' + job.wish}"


# wishes of users


class Change(Protocol):
    """Function that cancels, pauses or resumes a job."""

    def __call__(self, job: Job, *, by: Actor) -> Job: ...


def cancel(job: Job, *, by: Actor) -> Job:
    """Cancel a job after its current step; finished steps are kept. Raises JobError if it has ended."""
    return _wish(job, Wish.CANCEL, JobVerb.CANCEL, by)


def pause(job: Job, *, by: Actor) -> Job:
    """Pause a job until it is resumed; raises JobError if it has ended, is paused or cannot be paused."""
    if is_of_one_process(job):
        raise JobError(Reason.JOB_OF_ONE_PROCESS, job=job.pk)
    return _wish(job, Wish.PAUSE, JobVerb.PAUSE, by)


@transaction.atomic
def _wish(job: Job, wish: Wish, verb: Verb, by: Actor) -> Job:
    locked = _lock(job)
    if locked.ended_at is not None:
        raise JobError(Reason.JOB_ENDED, job=job.pk)
    if locked.status == JobStatus.PAUSED and wish is Wish.PAUSE:
        raise JobError(Reason.JOB_PAUSED, job=job.pk)
    if locked.wish != wish:
        locked.wish = wish
        locked.save(update_fields=("wish",))
        notify_jobs()  # one that is paused has to end
        _record(verb, locked, by)
    return locked


@transaction.atomic
def resume(job: Job, *, by: Actor) -> Job:
    """Resume a paused, cancelled or failed job where it stopped; raises JobError for any other."""
    locked = _lock(job)
    if is_of_one_process(job):
        raise JobError(Reason.JOB_OF_ONE_PROCESS, job=job.pk)
    if locked.wish == Wish.PAUSE and locked.ended_at is None:
        locked.wish = Wish.NONE  # before it was looked at
    elif locked.status in RESUMABLE and not locked.wish:
        locked.status, locked.error = JobStatus.WAITING, ""
        locked.attempts, locked.ended_at, locked.seen_at = 0, None, None
    else:
        raise JobError(Reason.JOB_NOT_RESUMABLE, job=job.pk)
    locked.save()
    notify_jobs()
    _record(JobVerb.RESUME, locked, by)
    return locked


def _record(verb: Verb, job: Job, by: Actor) -> None:
    activity.record(verb, by, account=job.account, table=job.table, detail={"job": job.pk, "kind": job.kind})


def _lock(job: Job) -> Job:
    locked = (
        Job.objects.select_for_update(of=("self",))
        .select_related("account", "table")
        .filter(pk=job.pk)
        .first()
    )
    if locked is None:
        raise JobError(Reason.NO_JOB, job=job.pk)
    return locked


def abandon(several: QuerySet[Job]) -> None:
    """Delete ended jobs, and cancel running ones, whose result is not needed; without an activity."""
    several.exclude(ended_at=None).delete()
    if several.filter(ended_at=None).update(wish=Wish.CANCEL):
        notify_jobs()


def tidy(now: datetime) -> None:
    """Delete expired jobs with their files."""
    Job.objects.filter(ended_at__lt=now - RETENTION).delete()
