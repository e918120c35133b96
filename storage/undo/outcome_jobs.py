"""Jobs that apply images to tables in chunks: undo, restores and comparisons."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from storage.activity import activity
from storage.core.verbs import Verb
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.moments import Moment, read_moment_token
from storage.domain.entities.restoring import Effect
from storage.domain.values.kinds import AccountKind
from storage.jobs.kinds import JobKind, Run, Step
from storage.jobs.states import JobStatus
from storage.models import Activity, Job, Table
from storage.sql.restoring import Images
from storage.undo import reverting
from storage.undo.outcomes import Outcome, TableOutcome

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class OutcomeState:
    """Progress state: ``done`` tables, the current ``table`` with its last key ``after``, and the times compared."""

    done: Sequence[str] = ()
    table: str = ""
    after: Sequence[str] = ()
    read_at: str = ""


@dataclass(slots=True)
class Progress(Generic[A]):
    """Progress of a job that applies images, with its outcome so far."""

    run: Run[A]
    outcome: Outcome
    done: list[str] = field(default_factory=list)
    table: str = ""
    after: EntityKey | None = None
    # the moment of the comparison whose rest is to be applied; None at the beginning, when it is new
    read_at: Moment | None = None
    compared_at: Moment | None = None
    _counted: Mapping[Effect, int] = field(default_factory=dict)

    @classmethod
    def load(cls, run: Run[A], state: OutcomeState) -> "Progress[A]":
        outcome = Outcome.load(run.job.result, run.account)
        after, read_at = EntityKey(*state.after) if state.after else None, read_moment_token(state.read_at)
        return cls(run, outcome, [*state.done], state.table, after, read_at, read_at, _count(outcome))

    def apply_images(
        self,
        table: Table,
        outcome: TableOutcome,
        images: Images,
        *,
        kind: AccountKind | None = None,
        is_last: bool = False,
    ) -> None:
        """Apply the remaining images of a table; with ``is_last``, the total becomes known."""

        def save(after: EntityKey, left: int) -> None:
            done = sum(_count(self.outcome).values())
            self.save(outcome.name, after, done + left if is_last else None)

        after = self.after if outcome.name == self.table else None
        reverting.apply_images(
            table,
            images,
            by=self.run.by,
            into=outcome,
            save=save,
            rest=self.run.rest,
            after=after,
            kind=kind,
        )

    def save(self, table: str = "", after: EntityKey | None = None, total: int | None = None) -> None:
        """Save the outcome in the transaction that did the work; raises JobInterrupted."""
        step = self.step(table, after, total)
        self.run.save(step)
        self._counted = _count(self.outcome)

    def step(
        self,
        table: str = "",
        after: EntityKey | None = None,
        total: int | None = None,
        *,
        is_finished: bool = False,
    ) -> Step[OutcomeState]:
        counts = {
            effect.value: number - self._counted.get(effect, 0)
            for effect, number in _count(self.outcome).items()
        }
        moment = self.compared_at
        return Step(
            OutcomeState(self.done, table, after or (), "" if moment is None else moment.token),
            done=sum(counts.values()),
            total=total,
            counts={name: number for name, number in counts.items() if number},
            result=self.outcome.dump(),
            is_finished=is_finished,
        )


def _count(outcome: Outcome) -> dict[Effect, int]:
    return {effect: outcome.number(effect) for effect in Effect}


class OutcomeJob(JobKind[A, OutcomeState]):
    """Base of jobs that make tables equal to another state."""

    state, is_transactional, goes_on = OutcomeState, False, True
    verb: ClassVar[Verb]  # the verb of its activity

    @abstractmethod
    def apply(self, progress: Progress[A]) -> None:
        """Do all remaining work, calling Progress.save in each transaction."""

    @abstractmethod
    def describe(self, run: Run[A], outcome: Outcome) -> dict[str, object]:
        """Return the details of the outcome for the activity log; empty if nothing was done."""

    def undoes(self, run: Run[A]) -> int | None:
        """Return the id of the activity to undo; None for none."""
        return None

    def begin(self, run: Run[A]) -> Step[OutcomeState]:
        return Step(OutcomeState())

    def step(self, run: Run[A], state: OutcomeState) -> Step[OutcomeState]:
        progress = Progress.load(run, state)
        self.apply(progress)
        return progress.step(is_finished=True)

    def end(self, run: Run[A], state: OutcomeState | None, status: JobStatus) -> Activity | None:
        outcome = Outcome.load(run.job.result, run.account)
        detail = self.describe(run, outcome) if run.job.result else {}
        if not detail:
            return None
        if status is not JobStatus.DONE:
            detail["interrupted"] = True
        undoes = Activity.objects.filter(pk=self.undoes(run) or 0).first()
        if undoes is not None and activity.is_undone(undoes):
            undoes = None  # by another request
        return activity.record(
            self.verb, run.by, account=run.account, table=outcome.only_table, detail=detail, undoes=undoes
        )


def outcome_of(job: Job) -> Outcome:
    """Return the outcome of a job so far, with its activity once it has ended."""
    assert job.account is not None
    return Outcome.load(job.result, job.account, job.activity)


def began(run: Run[Any]) -> str:
    """Return the earliest time of the job's changes, for the activity log."""
    assert run.job.started_at is not None
    return run.job.started_at.isoformat()
