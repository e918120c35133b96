"""Kinds of jobs. A subject defines its own beside its operations; storage.runtime.job_runner lists them all.

Example, a job that deletes the entities of a table::

    @dataclass(frozen=True, slots=True)
    class Arguments:
        prefix: str

    @dataclass(frozen=True, slots=True)
    class State:
        after: str = ""  # the key up to which everything is done

    class Deletion(JobKind[Arguments, State]):
        name = "entity.delete"
        arguments, state = Arguments, State
        capability = Capability.WRITE

        def begin(self, run: Run[Arguments]) -> Step[State]:
            return Step(State(), total=count(run.table, run.arguments.prefix))

        def step(self, run: Run[Arguments], state: State) -> Step[State]:
            deleted, last = delete_some(run.table, state.after, run.size, by=run.by)
            return Step(State(last), done=deleted, counts={"deleted": deleted}, is_finished=deleted < run.size)

    DELETION: Final = Deletion()
    job = jobs.start(DELETION, Arguments("2024-"), account=account, table=table, by=actor)
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Final, Generic, TypeVar

from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.errors import ResourceNotFound
from storage.domain.refusals import Refusal
from storage.jobs.starters import NeededAccess
from storage.jobs.states import JobStatus, Unit
from storage.models import Account, Activity, Job, Table

A = TypeVar("A")  # the arguments
S = TypeVar("S")  # the state

FIRST_SIZE: Final = 256
_LOOK: Final = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed item of a job, with the reason."""

    subject: str  # a line of a file, or the keys of an entity
    refusal: Refusal
    # values that a kind needs to show the failure in other words
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """Result of one step of a job, and the state for the next one.

    ``done``, ``counts`` and ``failures`` cover only this step; they are added up. ``counts`` has names that
    the console knows, such as inserted or skipped.
    """

    state: S
    done: int = 0  # counts the same things as ``total``
    total: int | None = None  # None while it is unknown
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    is_finished: bool = False
    # values for the end of the job, which a kind defines
    result: Mapping[str, object] = field(default_factory=dict)
    activity: Activity | None = None  # the one whose undo takes the job back
    starts_over: bool = False  # whether the work counted so far was undone


@dataclass(slots=True)
class Run(Generic[A]):
    """Execution of a job by a process."""

    job: Job
    arguments: A
    by: Actor
    size: int = FIRST_SIZE
    prepared: Any = None
    _save: Callable[[Step[Any]], None] = field(default=lambda _: None, repr=False)
    _rest: Callable[[], None] = field(default=lambda: None, repr=False)
    _show: Callable[[int], None] = field(default=lambda done: None, repr=False)
    _check: Callable[[], None] = field(default=lambda: None, repr=False)
    _is_ending: Callable[[], bool] = field(default=lambda: False, repr=False)
    _looked_at: float = field(default_factory=time.monotonic, repr=False)

    @property
    def account(self) -> Account:
        """Return the account; raises AssertionError for a job of the whole server."""
        assert self.job.account is not None
        return self.job.account

    @property
    def table(self) -> Table:
        """Return the table; raises ResourceNotFound if it was deleted meanwhile."""
        table = self.job.table
        if table is None or table.deleted_at is not None:
            raise ResourceNotFound
        return table

    def save(self, step: Step[Any]) -> None:
        """Save a step of a job that is not transactional, in the transaction that did the work; also the last step.

        Raises JobInterrupted, which rolls the transaction back, when the job is to be paused or cancelled.
        """
        self._save(step)

    def show(self, done: int) -> None:
        """Show the progress within a long transaction, before it is saved."""
        self._show(done)

    def check(self) -> None:
        """Raise JobInterrupted when the job is to be paused or cancelled, even within a transaction."""
        self._check()

    def look(self) -> None:
        """Raise JobInterrupted when the job is paused or cancelled, or the process is ending."""
        if time.monotonic() - self._looked_at < _LOOK:
            return
        if self._is_ending():
            raise JobInterrupted
        self._check()
        self._looked_at = time.monotonic()

    def rest(self) -> None:
        """Pause between two transactions of a long step to yield to requests; raises JobInterrupted."""
        self._rest()


@dataclass(frozen=True, slots=True)
class JobRequest(Generic[A, S]):
    """Validated work for a job: see jobs.start_requested and running.complete."""

    kind: "JobKind[A, S]"
    arguments: A
    account: Account | None
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class NoState:
    """State of jobs with a single step."""


class JobMustWait(Exception):
    """A resource that a step needs is in use; the step is retried later, after other jobs."""


class JobInterrupted(Exception):
    """The job is to be paused or cancelled, or another process has taken it over; kinds must not catch it."""


class JobKind(ABC, Generic[A, S]):
    """A kind of job.

    ``name`` is stored. ``arguments`` and ``state`` are dataclasses of texts, numbers, booleans, lists and
    mappings. ``capability`` is the one that a user needs in the account to start, resume, and undo a job of
    the kind, ``reads_files`` the one to download its files. A kind that is not ``is_transactional`` has one
    long step that opens its own transactions, because PostgreSQL demands it or because its operation does: it
    calls Run.save in each of them, and when a process that died is replaced, its step is called again with
    the last saved state, so it must be repeatable. If it ``goes_on`` then, rather than begin again, it also
    gives others their turn where it calls Run.rest. ``secrets`` are arguments that are emptied when a job
    ends.
    """

    name: ClassVar[str]
    arguments: ClassVar[type[Any]]
    state: ClassVar[type[Any]]
    capability: ClassVar[Capability]
    reads_files: ClassVar[Capability] = Capability.READ
    is_transactional: ClassVar[bool] = True
    goes_on: ClassVar[bool] = False
    parses_files: ClassVar[bool] = False
    secrets: ClassVar[Sequence[str]] = ()

    def needed_access(self, job: Job, arguments: A) -> Sequence[NeededAccess] | None:
        """Return the access that the user who started a job needs until its end; it is checked before each step.

        None for a kind that completes what was decided at its start, by any user.
        """
        return [] if job.account_id is None else [NeededAccess(job.account_id, self.capability)]

    @abstractmethod
    def begin(self, run: Run[A]) -> Step[S]:
        """Prepare the first step, in a transaction: validate, count, and return the first state."""

    def prepare(self, run: Run[A], state: S) -> object:
        """Do slow preparations for a step, such as reading a file, before its transaction begins.

        Call Run.look in the meantime. ``step`` gets the result as ``run.prepared``.
        """
        return None

    @abstractmethod
    def step(self, run: Run[A], state: S) -> Step[S]:
        """Do the next chunk, in a transaction committed together with the returned step."""

    def unit(self, arguments: A) -> Unit:
        """Return the unit of progress."""
        return Unit.ENTITIES

    def may_stop(self, state: S | None) -> bool:
        """Return whether a job can be paused or cancelled in this state."""
        return True

    def end(self, run: Run[A], state: S | None, status: JobStatus) -> Activity | None:
        """Record the work of a job in the transaction that ends it, whatever its final status.

        ``state`` is None if the job ends before it has begun. Return the activity whose undo reverts the job.
        """
        return None

    def write(self, value: A | S) -> dict[str, Any]:
        return asdict(value)  # type: ignore[call-overload,no-any-return]

    def knows(self, job: Job) -> bool:
        """Return whether this version knows all arguments and state fields of a job."""
        names, of_state = ({it.name for it in fields(type_)} for type_ in (self.arguments, self.state))
        return set(job.arguments) <= names and set(job.state or ()) <= of_state

    def read_arguments(self, written: Mapping[str, Any]) -> A:
        found: A = self.arguments(**written)
        return found

    def read_state(self, written: Mapping[str, Any] | None) -> S | None:
        return None if written is None else self.state(**written)
