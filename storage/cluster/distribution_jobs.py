"""Jobs that distribute or gather a table, because moving many rows takes longer than a request may."""

from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.utils import timezone

from storage.accounts import accounts
from storage.cluster import distribution, relations
from storage.cluster.distribution import DistributionError
from storage.cluster.subject import ClusterReason
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.jobs import jobs
from storage.jobs.kinds import (
    JobKind,
    NoState,
    Run,
    Step,
)
from storage.jobs.states import JobStatus
from storage.models import Job, Table


@dataclass(frozen=True, slots=True)
class Arguments:
    distributed: bool  # whether the table is to be distributed


class _DistributionJob(JobKind[Arguments, NoState]):
    name, arguments, state, capability = "table.distribute", Arguments, NoState, Capability.OWN
    is_transactional = False

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        return Step(NoState())

    def step(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        table, distributed = run.table, run.arguments.distributed
        done = None
        try:
            if not _is_done(table, distributed=distributed):  # by a process that died
                move = distribution.distribute if distributed else distribution.undistribute
                done = move(table, by=run.by)
        except DatabaseError as error:
            if not connection.is_usable():
                raise
            failed = ClusterReason.DISTRIBUTION_FAILED if distributed else ClusterReason.GATHERING_FAILED
            raise DistributionError(failed, table=table.name, why=str(error).strip()) from error
        return Step(state, activity=done, is_finished=True)


DISTRIBUTION_JOB: Final = _DistributionJob()


def ask(table: Table, *, distributed: bool, by: Actor) -> Job:
    """Start a job that distributes a table or moves it back."""
    accounts.check_writable(table.account)
    if distributed and not relations.can_distribute():
        raise DistributionError(ClusterReason.NO_COORDINATOR)
    if _is_done(table, distributed=distributed):
        reason = ClusterReason.DISTRIBUTED_ALREADY if distributed else ClusterReason.NOT_DISTRIBUTED
        raise DistributionError(reason, table=table.name)
    if jobs.unfinished(DISTRIBUTION_JOB, table=table).exists():
        raise DistributionError(ClusterReason.ROWS_ARE_MOVED, table=table.name)
    dismiss(table)
    return jobs.start(DISTRIBUTION_JOB, Arguments(distributed), account=table.account, table=table, by=by)


def find(table: Table) -> Job | None:
    """Return the unfinished or failed distribution job of a table."""
    return jobs.unfinished(DISTRIBUTION_JOB, table=table).first() or failed().filter(table=table).first()


def failed() -> QuerySet[Job]:
    """Return the failed distribution jobs that were not dismissed."""
    return Job.objects.filter(kind=DISTRIBUTION_JOB.name, status=JobStatus.FAILED, seen_at=None)


def dismiss(table: Table) -> None:
    """Dismiss the failed distribution job of a table."""
    failed().filter(table=table).update(seen_at=timezone.now())


def _is_done(table: Table, *, distributed: bool) -> bool:
    return relations.is_spread(table) if distributed else not table.distributed
