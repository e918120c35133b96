"""Bulk edits as jobs: each chunk is committed with where the job stands, so that no entity is edited twice."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.service.jobs import JobStatus
from storage.editing.bulk_edit import Obstacle, ObstacleKind
from storage.models import Activity, Job, Table
from storage.operations.activity import activity
from storage.operations.entities import bulk_edits
from storage.operations.entities.bulk_edits import (
    BulkEditRefused,
    BulkEditRequest,
    Counts,
    Progress,
    SkippedEntity,
)
from storage.operations.jobs import jobs
from storage.operations.jobs.kinds import Failure, JobKind, Run, Step
from storage.operations.relations import history


@dataclass(frozen=True, slots=True)
class Arguments:
    """A request and its progress before the first chunk, as they are dumped.

    The request is a text, which may hold what PostgreSQL's JSON cannot.
    """

    request: str
    progress: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    progress: Mapping[str, Any]


class _BulkEditJob(JobKind[Arguments, State]):
    name, arguments, state, capability = "entity.bulk-edit", Arguments, State, Capability.WRITE

    def begin(self, run: Run[Arguments]) -> Step[State]:
        total = bulk_edits.expect(run.table, _read_request(run))
        return Step(State(run.arguments.progress), total=total.number)

    def step(self, run: Run[Arguments], state: State) -> Step[State]:
        request, before = _read_request(run), Progress.load(state.progress)
        size = min(run.size, bulk_edits.CHUNK)
        after, skipped = bulk_edits.advance(run.table, request, before, by=run.by, size=size)
        return Step(
            State(after.dump()),
            done=after.counts.seen - before.counts.seen,
            counts=_difference(before.counts, after.counts),
            failures=[_failure(it) for it in skipped],
            is_finished=after.is_finished,
        )

    def end(self, run: Run[Arguments], state: State | None, status: JobStatus) -> Activity | None:
        if state is None:
            return None
        request, progress = _read_request(run), Progress.load(state.progress)
        detail = bulk_edits.describe(request, progress)
        if not detail:
            return None
        if not progress.is_finished:
            detail["interrupted"] = True
        return activity.record(
            Verb.ENTITY_BULK_EDIT, run.by, account=run.account, table=run.job.table, detail=detail
        )


BULK_EDIT_JOB: Final = _BulkEditJob()


def _read_request(run: Run[Arguments]) -> BulkEditRequest:
    return BulkEditRequest.load(json.loads(run.arguments.request))


_COUNTED: Final = ("changed", "moved", "deleted", "unchanged", "skipped")


def _difference(before: Counts, after: Counts) -> dict[str, int]:
    found = {name: getattr(after, name) - getattr(before, name) for name in _COUNTED}
    return {name: number for name, number in found.items() if number}


def _failure(skipped: SkippedEntity) -> Failure:
    return Failure(_write_key(skipped.key), Reason.NOT_EDITED.of(why=_describe(skipped.obstacle)))


def _write_key(key: EntityKey) -> str:
    return f"{key.partition_key}, {key.row_key}"


def _describe(obstacle: Obstacle) -> str:
    parts: Sequence[str] = (obstacle.property, obstacle.kind, obstacle.detail)
    return ": ".join(filter(None, parts))


def read_obstacle(text: str) -> Obstacle | None:
    """Return the obstacle that a failure of a job names, for doors with words of their own."""
    kinds, parts = set(ObstacleKind), text.split(": ", 2)
    if len(parts) > 1 and parts[1] in kinds:
        return Obstacle(ObstacleKind(parts[1]), parts[0], *parts[2:])
    kind, _, detail = text.partition(": ")
    return Obstacle(ObstacleKind(kind), detail=detail) if kind in kinds else None


def start(
    table: Table,
    request: BulkEditRequest,
    *,
    by: Actor,
    number: int | None = None,
    read_at: int | None = None,
) -> Job:
    """Have all entities edited by a job; takes and raises what ``bulk_edits.begin`` does."""
    progress = bulk_edits.begin(table, request, number=number, read_at=read_at)
    arguments = Arguments(json.dumps(request.dump()), progress.dump())
    return jobs.start(BULK_EDIT_JOB, arguments, account=table.account, table=table, by=by)


@dataclass(frozen=True, slots=True)
class BulkEditOutcome:
    """What an edit has done. ``activity`` is None if nothing was written."""

    job: Job
    progress: Progress
    can_undo: bool

    @property
    def counts(self) -> Counts:
        return self.progress.counts

    @property
    def activity(self) -> Activity | None:
        return self.job.activity


def outcome_of(job: Job) -> BulkEditOutcome:
    """Return what a job that has ended has done; raises BulkEditRefused if it has failed."""
    if (error := jobs.error_of(job)) is not None:
        raise BulkEditRefused(error)
    assert job.account is not None
    state = BULK_EDIT_JOB.read_state(job.state) or State(job.arguments["progress"])
    return BulkEditOutcome(job, Progress.load(state.progress), history.is_recorded(job.account))
