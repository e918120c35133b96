"""Runner of jobs, step by step; the docstring of the package states the guarantees of a step."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import BoundedSemaphore
from typing import Any, Final, Self

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet
from django.utils import timezone

from storage.activity import activity
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.errors import OperationTimedOut, ServerBusy, StorageError
from storage.domain.refusals import Reason, Refusal, Refused
from storage.domain.requests.spans import Attributes, span
from storage.jobs import files, jobs, process_end, starters
from storage.jobs.jobs import JobError
from storage.jobs.kinds import (
    FIRST_SIZE,
    JobInterrupted,
    JobKind,
    JobMustWait,
    JobRequest,
    Run,
    Step,
)
from storage.jobs.pacing import Pace
from storage.jobs.starters import Outlook
from storage.jobs.states import FAILURES_KEPT, JobStatus, Wish
from storage.models import Activity, Job
from storage.sql.background import try_lock
from storage.sql.django import beside_transaction, in_session, limited, release_connection

logger = logging.getLogger(__name__)

_LOCKS: Final = 0x7461626A  # class of the advisory locks; the other key is the number of the job
_MOST_ATTEMPTS: Final = 5  # at a step, before a job has failed that ends its process each time
_SLICE: Final = 5.0  # seconds after which another job takes its turn
_LOOK: Final = 0.2  # seconds between looks at a job that another process runs
_LONGEST_LOOK: Final = 1.0
_SETUP_SHARE: Final = 10  # a turn lasts at least so many times what its step takes before it saves first
_SHOW_LIMIT: Final = timedelta(seconds=2)
_RATE_SPAN: Final = 5.0  # seconds over which a rate is smoothed

# a job goes on when the database does
_PASSING: Final = (ServerBusy, OperationTimedOut, OperationalError, InterfaceError)
# columns that a step changes
_STEPPED: Final = (
    *("state", "done", "total", "rate", "counts", "failed", "failures", "result", "activity"),
    *("steps", "attempts", "stepped_at"),
)

Kinds = Mapping[str, JobKind[Any, Any]]
_GOES_ON: Final = Outlook(Wish.NONE, is_allowed=True)


class _StepTaken(Exception):
    """Another process has committed the step, so this one is rolled back."""


def pending(kinds: Kinds) -> list[int]:
    """Return the runnable jobs: users' jobs before the server's, then the longest waiting first.

    Jobs whose kind, status or wish only newer versions know are left to their servers.
    """
    runnable = _known(kinds).exclude(status=JobStatus.PAUSED, wish=Wish.NONE)
    is_of_server = ExpressionWrapper(Q(actor__kind=ActorKind.SERVER), output_field=BooleanField())
    return list(
        runnable.order_by(is_of_server, F("stepped_at").asc(nulls_first=True), "pk").values_list(
            "pk", flat=True
        )
    )


def _known(kinds: Kinds) -> QuerySet[Job]:
    """Select the unfinished jobs that this version can run."""
    return Job.objects.filter(kind__in=kinds, status__in=JobStatus, wish__in=Wish, ended_at=None)


def run_some(
    kinds: Kinds, rest: Callable[[float], bool], *, others: Callable[[], bool] = lambda: False
) -> bool:
    """Run the first available job for one turn; return whether there was one.

    ``rest`` sleeps for some seconds and returns whether the process is ending. ``others`` returns whether
    more jobs wait.
    """
    return any(run(pk, kinds, rest, others=others) for pk in pending(kinds))


def run_all(kinds: Kinds) -> None:
    """Run all runnable jobs in this thread until only waiting ones are left."""
    while run_some(kinds, lambda seconds: False):
        pass


def finish(job: Job, kinds: Kinds, lane: BoundedSemaphore | None = None) -> Job:
    """Run a job in this thread, unless it runs elsewhere already, and wait for its end.

    With a ``lane``, only as many threads run jobs as it has slots; the others wait, without a database
    connection, for a slot or for the server's own threads. Raises ServerBusy when the process ends before the
    job.
    """
    pause = _LOOK
    while job.ended_at is None and (job.status != JobStatus.PAUSED or job.wish):
        with ExitStack() as held:
            is_free = lane is None or lane.acquire(blocking=False)
            if is_free and lane is not None:
                held.callback(lane.release)
            has_run = is_free and run(job.pk, kinds, process_end.wait)
        if not has_run:
            release_connection()
            pause = min(_LONGEST_LOOK, pause * 1.2)
        if process_end.wait(0 if has_run else pause):
            raise ServerBusy(Reason.JOB_GOES_ON_LATER.of(job=job.pk))
        job.refresh_from_db()
    return job


def complete(request: JobRequest[Any, Any], *, by: Actor, patience: float | None = None) -> Job:
    """Run a request as a job in this thread and wait for its end; raises the job's error.

    Without ``patience``, raises JobError if a user has paused or cancelled it. With it, such a job is
    returned, as is one that takes longer than so many seconds: another process continues it. If this thread
    is interrupted, the job is cancelled. In the caller's transaction there is no job: all is done, or
    nothing.
    """
    if connection.in_atomic_block:
        return _run_within(request, by)
    kind = request.kind
    with ExitStack() as held:
        held.enter_context(in_session())
        with transaction.atomic():
            job = jobs.start_requested(request, by=by)
            # before others can see it
            held.enter_context(try_lock(_LOCKS, job.pk % 2**31))
        taken = _take(job.pk, {kind.name: kind})
        if taken is not None:
            _Runner.awaiting(taken, kind, patience).run_to_end()
    stored = jobs.get(job.pk)
    if stored is None:
        raise ServerBusy  # the account was deleted meanwhile
    if patience is None and stored.status != JobStatus.DONE:
        raise JobError(Reason.JOB_STOPPED, job=job.pk)
    return stored


def end_abandoned(job: Job, kinds: Kinds) -> bool:
    """Cancel a job whose process has died, unless it must finish; return whether the process had died."""
    with try_lock(_LOCKS, job.pk % 2**31) as is_alone:
        if is_alone:
            Job.objects.filter(pk=job.pk, ended_at=None).update(wish=Wish.CANCEL)
            run(job.pk, kinds, lambda seconds: False)
        return is_alone


def _run_within(request: JobRequest[Any, Any], by: Actor) -> Job:
    kind, job = request.kind, jobs.unsaved(request, by=by)

    def save(step: Step[Any]) -> None:
        job.result = {**job.result, **_storable(step.result)}

    run = Run(job, request.arguments, jobs.started_by(job), _save=save)
    step = kind.begin(run)
    while not step.is_finished:
        save(step)
        run.prepared = kind.prepare(run, step.state)
        step = kind.step(run, step.state)
    save(step)
    job.activity = kind.end(run, step.state, JobStatus.DONE) or step.activity
    job.status, job.ended_at = JobStatus.DONE, timezone.now()
    return job


def run(
    pk: int, kinds: Kinds, rest: Callable[[float], bool], *, others: Callable[[], bool] = lambda: False
) -> bool:
    """Run a job until it ends, is interrupted, or its turn is over; return whether it was available."""
    with try_lock(_LOCKS, pk % 2**31) as is_alone:
        if not is_alone:
            return False
        job = _take(pk, kinds)
        return job is not None and _Runner(job, kinds[job.kind], rest, others).run()


def look(job: Job, kind: JobKind[Any, Any]) -> Outlook | None:
    """Return a job's requested action and whether its starter still has access; None if it was deleted."""
    return starters.look(job, kind.needed_access(job, kind.read_arguments(job.arguments)))


def _take(pk: int, kinds: Kinds) -> Job | None:
    """Mark a job as running; None if it has ended, is paused, or needs a newer version."""
    with transaction.atomic():
        job = (
            _known(kinds)
            .select_for_update(of=("self",))
            .select_related("account", "table")
            .filter(pk=pk)
            .first()
        )
        if job is None or (job.status == JobStatus.PAUSED and not job.wish):
            return None
        if not kinds[job.kind].knows(job):
            return None
        job.attempts += 1
        if not job.wish:
            job.status = JobStatus.RUNNING
        job.started_at = job.started_at or timezone.now()
        job.stepped_at = timezone.now()
        job.save(update_fields=("attempts", "status", "started_at", "stepped_at"))
        return job


@dataclass(slots=True)
class _Runner:
    job: Job
    kind: JobKind[Any, Any]
    rest: Callable[[float], bool]
    others: Callable[[], bool]
    patience_ends: float | None = None  # when another process is to go on with the job
    is_awaited: bool = False  # by a caller, who sees how it ends, and to whom errors are raised
    pace: Pace = field(default_factory=Pace)
    began: float = field(default_factory=time.monotonic)
    turn: float = field(default_factory=lambda: _SLICE)  # seconds after which others may have theirs
    has_saved: bool = False  # whether a long step has saved in this turn
    has_ended: bool = False  # with the last step

    @classmethod
    def awaiting(cls, job: Job, kind: JobKind[Any, Any], patience: float | None) -> Self:
        ends = None if patience is None else time.monotonic() + patience

        def rest(seconds: float) -> bool:
            return ends is not None and time.monotonic() > ends

        return cls(job, kind, rest, lambda: False, ends, is_awaited=True)

    def run_to_end(self) -> None:
        """Run for a waiting caller, raising the error that ends the job."""
        try:
            self.run()
        except Exception as error:
            self._fail(error)
            raise
        except BaseException:
            if connection.is_usable() and self._is_unfinished() and self._may_stop():
                self._end(JobStatus.CANCELLED)
            raise

    def run(self) -> bool:
        """Run the job; return whether it made progress."""
        job = self.job
        attributes: Attributes = {"tablero.job.kind": job.kind, "tablero.job.id": job.pk}
        if job.account is not None:
            attributes["tablero.account"] = job.account.name
        with span(f"job {job.kind}", attributes, is_root=True):
            return self._run_turn()

    def _run_turn(self) -> bool:
        size = FIRST_SIZE
        try:
            if self.job.attempts > _MOST_ATTEMPTS:
                self._end(JobStatus.FAILED, Reason.JOB_DIES.of(attempts=_MOST_ATTEMPTS))
                return True
            while not self._stops() and not self._step(size):
                size, seconds = self.pace.after_step(size)
                if self.rest(seconds) or self._is_turn_over():
                    break
                self.pace.begin_step()
        except (JobInterrupted, _StepTaken):
            if self._is_unfinished():
                self._stops()
        except JobMustWait:
            Job.objects.filter(pk=self.job.pk).update(attempts=0, stepped_at=timezone.now())
            return False
        except Exception as error:
            if self.is_awaited or isinstance(error, _PASSING):
                raise
            if not isinstance(error, Refused | StorageError):
                logger.exception("The job %s has failed", self.job)
            self._fail(error)
        return True

    def _is_turn_over(self) -> bool:
        return time.monotonic() > self.began + self.turn and self.others()

    def _stops(self) -> bool:
        """Apply a requested pause or cancellation, or fail if access was lost; return whether the job stops."""
        outlook = self._look()
        if outlook is None:
            return True
        if outlook.wish == Wish.CANCEL:
            self._end(JobStatus.CANCELLED)
        elif not outlook.is_allowed:
            refusal = Reason.JOB_ACCESS_LOST.of(user=jobs.started_by(self.job).name)
            if self.is_awaited:
                raise JobError(refusal)
            self._end(JobStatus.FAILED, refusal)
        elif outlook.wish == Wish.PAUSE:
            Job.objects.filter(pk=self.job.pk, wish=Wish.PAUSE).update(
                status=JobStatus.PAUSED, wish=Wish.NONE, attempts=0, rate=0
            )
        return outlook != _GOES_ON

    def _may_stop(self) -> bool:
        return self.kind.may_stop(self.kind.read_state(self.job.state))

    def _look(self) -> Outlook | None:
        """Return the requested action and access of the job; None if it was deleted."""
        return look(self.job, self.kind) if self._may_stop() else _GOES_ON

    def _run(self, size: int) -> Run[Any]:
        arguments = self.kind.read_arguments(self.job.arguments)
        return Run(
            self.job,
            arguments,
            jobs.started_by(self.job),
            size,
            _save=self._save,
            _rest=self._rest,
            _show=self._show,
            _check=self._check,
            _is_ending=lambda: self.rest(0),
        )

    def _step(self, size: int) -> bool:
        """Run the next step; return whether the job has ended."""
        with span("step") as noted:
            step = self._take_step(self._run(size))
            noted["tablero.job.done"] = step.done
        return step.is_finished

    def _take_step(self, run: Run[Any]) -> Step[Any]:
        state = self.kind.read_state(self.job.state)
        if self.kind.is_transactional or state is None:
            if state is not None:
                run.prepared = self.kind.prepare(run, state)
            with transaction.atomic():
                step = self.kind.begin(run) if state is None else self.kind.step(run, state)
                self._store(step)
        else:
            step = self.kind.step(run, state)
            if not self.has_ended:
                self._store(step)
        return step

    def _check(self) -> None:
        if self._look() != _GOES_ON or (
            self.patience_ends is not None and time.monotonic() > self.patience_ends
        ):
            raise JobInterrupted

    def _save(self, step: Step[Any]) -> None:
        self._check()
        self._store(step)
        if not self.has_saved:
            self.has_saved = True
            self.turn = max(_SLICE, _SETUP_SHARE * (time.monotonic() - self.began))

    def _show(self, done: int) -> None:
        with suppress(OperationTimedOut), beside_transaction(), limited(_SHOW_LIMIT):
            Job.objects.filter(pk=self.job.pk, steps=self.job.steps).update(done=done)

    def _rest(self) -> None:
        _, seconds = self.pace.after_step(FIRST_SIZE)
        if self.rest(seconds) or (self.kind.goes_on and self._is_turn_over()):
            raise JobInterrupted
        self.pace.begin_step()

    @transaction.atomic
    def _store(self, step: Step[Any]) -> None:
        """Store the result of a step; raises _StepTaken if another process has done the step."""
        job = copy(self.job)
        if step.starts_over:
            job.done, job.counts, job.failed, job.failures, job.result = 0, {}, 0, [], {}
        job.state = activity.in_json(self.kind.write(step.state))
        job.done += step.done
        job.total = job.total if step.total is None else step.total
        if step.is_finished and job.total is not None:
            job.total = job.done  # it was an estimate, or has blank lines at its end: nothing is left
        job.rate = self._rate(step)
        job.counts = {
            **job.counts,
            **{it: job.counts.get(it, 0) + number for it, number in step.counts.items()},
        }
        job.failed += len(step.failures)
        job.failures = [*job.failures, *_write_failures(step)][:FAILURES_KEPT]
        job.result = {**job.result, **_storable(step.result)}
        job.activity = step.activity or job.activity
        job.steps += 1
        job.attempts, job.stepped_at = 0, timezone.now()
        changes = {name: getattr(job, name) for name in _STEPPED}
        if not Job.objects.filter(pk=job.pk, steps=self.job.steps, ended_at=None).update(**changes):
            raise _StepTaken
        if step.is_finished:
            self._write_end(job, step.state, JobStatus.DONE)
        transaction.on_commit(partial(setattr, self, "job", job))
        transaction.on_commit(partial(setattr, self, "has_ended", step.is_finished))

    def _rate(self, step: Step[Any]) -> float:
        before = self.job.stepped_at
        seconds = max(1e-3, (timezone.now() - before).total_seconds()) if before is not None else 1.0
        if not self.job.rate:
            return step.done / seconds
        weight = min(1.0, seconds / _RATE_SPAN)
        return self.job.rate * (1 - weight) + step.done / seconds * weight

    def _fail(self, error: Exception) -> None:
        if not connection.is_usable():
            return  # another process finds out
        if self._is_unfinished():
            refusal = Reason.JOB_BROKEN.of(why=type(error).__name__)
            if isinstance(error, Refused | StorageError):
                refusal = error.refusal
            self._end(JobStatus.FAILED, refusal)

    def _is_unfinished(self) -> bool:
        """Reload the job and return whether it is unfinished; it may have been deleted with its account."""
        found = Job.objects.select_related("account", "table").filter(pk=self.job.pk, ended_at=None).first()
        self.job = found or self.job
        return found is not None

    def _end(self, status: JobStatus, refusal: Refusal | None = None) -> None:
        state = self.kind.read_state(self.job.state)
        try:
            with transaction.atomic():
                self._write_end(self.job, state, status, refusal)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("What the job %s has done could not be recorded", self.job)
            self._mark_ended(self.job, status, refusal, None)

    def _write_end(self, job: Job, state: Any, status: JobStatus, refusal: Refusal | None = None) -> None:
        """End the job with its activity, in one transaction."""
        run = Run(job, self.kind.read_arguments(job.arguments), jobs.started_by(job))
        self._mark_ended(job, status, refusal, self.kind.end(run, state, status))

    def _mark_ended(
        self, job: Job, status: JobStatus, refusal: Refusal | None, done: Activity | None
    ) -> None:
        now = timezone.now()
        Job.objects.filter(pk=job.pk, ended_at=None).update(
            status=status,
            wish=Wish.NONE,
            rate=0,
            error="" if refusal is None else refusal.dump(),
            ended_at=now,
            seen_at=now if self.is_awaited else F("seen_at"),
            activity=job.activity_id if done is None else done.pk,
            arguments={**job.arguments, **dict.fromkeys(self.kind.secrets, "")},
        )
        files.keep_after(job)


def _storable(result: Mapping[str, object]) -> dict[str, object]:
    return {name: activity.in_json(value) for name, value in result.items()}


def _write_failures(step: Step[Any]) -> list[object]:
    return [
        activity.in_json({"subject": it.subject, "refusal": it.refusal.dump(), "details": it.details})
        for it in step.failures[:FAILURES_KEPT]
    ]
