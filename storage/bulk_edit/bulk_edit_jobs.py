"""Bulk edits and their complete previews as jobs.

Each chunk of an edit is committed with where the job stands, so that no entity is edited twice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from storage.activity import activity
from storage.bulk_edit import bulk_edit_previews, bulk_edit_work, bulk_edits
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview, Examination
from storage.bulk_edit.bulk_edit_work import BulkEditRequest, SkippedEntity, Work
from storage.bulk_edit.bulk_edits import COUNTED, BulkEditRefused, Counts, Progress
from storage.bulk_edit.second_copies import TakenKeys
from storage.bulk_edit.subject import BulkEditVerb
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.editing.bulk_edit import Obstacle, ObstacleKind
from storage.jobs import jobs
from storage.jobs.kinds import (
    Failure,
    JobKind,
    NoState,
    Run,
    Step,
)
from storage.jobs.states import JobStatus
from storage.models import Activity, Job, Table
from storage.relations import history


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a bulk edit: the request and its initial progress, serialized."""

    request: str
    progress: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    progress: Mapping[str, Any]


class _BulkEditJob(JobKind[Arguments, State]):
    name, arguments, state, capability = "entity.bulk-edit", Arguments, State, Capability.WRITE

    def begin(self, run: Run[Arguments]) -> Step[State]:
        request = _read_request(run)
        bulk_edits.prepare(run.table, request, by=run.by)
        numbers = bulk_edits.expect(run.table, request).number, bulk_edits.expect_copies(run.table, request)
        total = None if None in numbers else sum(filter(None, numbers))
        return Step(State(run.arguments.progress), total=total)

    def prepare(self, run: Run[Arguments], state: State) -> TakenKeys | None:
        """Return the keys of second copies so far, which a process computes again when it takes over the job."""
        progress = Progress.load(state.progress)
        work = Work.of(run.table, _read_request(run), progress.began)
        if work.editor.second_copy is None:
            return None
        taken = _taken.get(run.job.pk)
        if taken is None or not taken.is_at(progress.position, is_complete=progress.is_clearing):
            taken = bulk_edits.map_keys(work, progress, run.look)
            while len(_taken) >= _TAKEN_JOBS:
                del _taken[next(iter(_taken))]
            _taken[run.job.pk] = taken
        return taken

    def step(self, run: Run[Arguments], state: State) -> Step[State]:
        request, before = _read_request(run), Progress.load(state.progress)
        size = min(run.size, bulk_edit_work.CHUNK)
        after, skipped = bulk_edits.advance(
            run.table, request, before, by=run.by, size=size, taken=run.prepared
        )
        return Step(
            State(after.dump()),
            done=after.done - before.done,
            total=after.done if after.is_finished else None,
            counts=_difference(before.counts, after.counts),
            failures=[_failure(it) for it in skipped],
            is_finished=after.is_finished,
        )

    def end(self, run: Run[Arguments], state: State | None, status: JobStatus) -> Activity | None:
        _taken.pop(run.job.pk, None)
        if state is None:
            return None
        request, progress = _read_request(run), Progress.load(state.progress)
        detail = bulk_edits.describe(request, progress)
        if not detail:
            return None
        if not progress.is_finished:
            detail["interrupted"] = True
        copies = any(it["op"] == "second-copy" for it in request.operations)
        verb = BulkEditVerb.SECOND_COPY if copies else BulkEditVerb.BULK_EDIT
        return activity.record(verb, run.by, account=run.account, table=run.job.table, detail=detail)


_TAKEN_JOBS: Final = 4
_taken: Final[dict[int, TakenKeys]] = {}  # keys of the last jobs of this process, by job

BULK_EDIT_JOB: Final = _BulkEditJob()


def _read_request(run: Run[Any]) -> BulkEditRequest:
    return BulkEditRequest.load(json.loads(run.arguments.request))


@dataclass(frozen=True, slots=True)
class PreviewArguments:
    request: str


class _PreviewJob(JobKind[PreviewArguments, NoState]):
    """Job that previews a bulk edit over every entity that matches its query."""

    name, is_transactional = "entity.bulk-edit-preview", False
    arguments, state, capability = PreviewArguments, NoState, Capability.WRITE

    def begin(self, run: Run[PreviewArguments]) -> Step[NoState]:
        return Step(NoState(), total=bulk_edits.expect(run.table, _read_request(run)).number)

    def step(self, run: Run[PreviewArguments], state: NoState) -> Step[NoState]:
        examination, known = Examination.begin(run.table, _read_request(run)), run.job.done
        while True:
            examination.advance_for(_PREVIEW_STEP)
            preview = examination.summarize()
            # entities that an interrupted process has examined are not counted twice
            step = Step(state, max(0, preview.examined - known), result={"preview": preview.dump()})
            if preview.is_complete:
                counts = _numbers(preview.counts)
                return replace(step, total=preview.examined, counts=counts, is_finished=True)
            run.save(step)
            known = max(known, preview.examined)
            run.rest()


PREVIEW_JOB: Final = _PreviewJob()
_PREVIEW_STEP: Final = timedelta(seconds=0.5)  # after which its progress is saved


def _difference(before: Counts, after: Counts) -> dict[str, int]:
    known = _numbers(before)
    found = {name: number - known.get(name, 0) for name, number in _numbers(after).items()}
    return {name: number for name, number in found.items() if number}


def _numbers(counts: Counts) -> dict[str, int]:
    found = {name: getattr(counts, name) for name in COUNTED}
    return {name: number for name, number in found.items() if number}


def _failure(skipped: SkippedEntity) -> Failure:
    key, obstacle = skipped
    why = ": ".join(filter(None, (obstacle.property, obstacle.kind, obstacle.detail)))
    details = {"kind": obstacle.kind.value, "property": obstacle.property, "detail": str(obstacle.detail)}
    subject = f"{key.partition_key}, {key.row_key}"
    return Failure(subject, Reason.NOT_EDITED.of(why=why), key._asdict() | details)


def read_skipped(failure: Failure) -> SkippedEntity | None:
    """Return the skipped entity in a failure of a bulk edit; None for failures of other jobs."""
    details = failure.details
    if failure.refusal.reason is not Reason.NOT_EDITED or details.get("kind") not in set(ObstacleKind):
        return None
    obstacle = Obstacle(ObstacleKind(details["kind"]), details["property"], details["detail"])
    return SkippedEntity(EntityKey(details["partition_key"], details["row_key"]), obstacle)


def start(
    table: Table,
    request: BulkEditRequest,
    *,
    by: Actor,
    number: int | None = None,
    read_at: int | None = None,
) -> Job:
    """Start a job that edits all matching entities; raises the errors of ``bulk_edits.begin``."""
    progress = bulk_edits.begin(table, request, number=number, read_at=read_at)
    arguments = Arguments(json.dumps(request.dump()), progress.dump())
    return jobs.start(BULK_EDIT_JOB, arguments, account=table.account, table=table, by=by)


def start_preview(table: Table, request: BulkEditRequest, *, by: Actor) -> Job:
    """Start a job that previews all entities, replacing the user's other previews on the table."""
    bulk_edits.check(table, request)
    end_previews(table, by=by)
    arguments = PreviewArguments(json.dumps(request.dump()))
    job = jobs.start(PREVIEW_JOB, arguments, account=table.account, table=table, by=by)
    job.seen_at = timezone.now()  # its end is no news: the user waits for it, or wants it no more
    job.save(update_fields=("seen_at",))
    return job


def end_previews(table: Table, *, by: Actor) -> None:
    """End the previews that a user has started on a table."""
    jobs.abandon(jobs.unfinished(PREVIEW_JOB, table=table).filter(actor__name=by.name))


def preview_of(job: Job, table: Table, request: BulkEditRequest) -> BulkEditPreview | None:
    """Return the latest preview of a job; None if there is none yet or it belongs to a different request."""
    written = job.arguments.get("request")
    if job.kind != PREVIEW_JOB.name or job.table_id != table.pk or written != json.dumps(request.dump()):
        return None
    dumped = job.result.get("preview")
    return None if dumped is None else bulk_edit_previews.load(table, request, dumped)


@dataclass(frozen=True, slots=True)
class BulkEditOutcome:
    """The outcome of an edit. ``activity`` is None if nothing was written."""

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
    """Return the outcome of an ended job; raises BulkEditRefused if it failed."""
    if (error := jobs.error_of(job)) is not None:
        raise BulkEditRefused(error)
    assert job.account is not None
    state = BULK_EDIT_JOB.read_state(job.state) or State(job.arguments["progress"])
    return BulkEditOutcome(job, Progress.load(state.progress), history.is_recorded(job.account))
