"""Creation of accounts with content, for copies, branches and imports; they refuse requests until complete."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from django.db import connection, transaction

from storage.accounts import account_settings, accounts, removal
from storage.accounts.accounts import NewAccount
from storage.accounts.locking import lock
from storage.accounts.refusals import AccountError, AccountExists, busy
from storage.activity.catalog_change import invalidating_catalogs
from storage.compare.sides import SideTable
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Capability
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.jobs import jobs, running
from storage.jobs.kinds import JobKind, Run, Step
from storage.jobs.states import JobStatus
from storage.metrics import totals
from storage.models import Account, Branch, Job, Table
from storage.sql import copying
from storage.sql import django as sql
from storage.sql.masking import Masking
from storage.tables import tables

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Original:
    """Property of a branch in which unmasked original values were found."""

    table: str
    property: str
    entities: int


@dataclass(frozen=True, slots=True)
class BuiltAccount:
    """Created account, with the number of its tables and entities."""

    account: Account
    tables: int
    entities: int
    branch: Branch | None = None  # None for a copy
    originals: Sequence[Original] = ()  # a branch that has any stays frozen


def describe(account: Account, branch: Branch | None = None) -> BuiltAccount:
    """Describe an account and its branch, if any, with estimated numbers of tables and entities."""
    contents = totals.contents([account.pk]).get(account.pk)
    originals = [] if branch is None else [Original(*it) for it in branch.originals]
    return BuiltAccount(
        account, contents.tables if contents else 0, contents.entities if contents else 0, branch, originals
    )


def copy_table(
    source: SideTable, account: Account, query: EntityQuery, masking: Masking | None = None
) -> tuple[Table, int]:
    """Copy the entities that match a query into a new table, keeping Timestamps; return the table and their count."""

    def fill(target: str) -> int:
        return sql.walk(copying.fill(source.relation, target, query, masking), source.run)

    with transaction.atomic():
        return tables.create_filled(account, source.table, fill)


@dataclass(frozen=True, slots=True)
class BuildState:
    """The state of a job that makes an account."""

    account: int | None = None  # the id of the account that is being made, from its creation on


class BuildJob(JobKind[A, BuildState]):
    """Base of jobs that create an account with content, all or nothing: a resumed job starts again from the beginning.

    The account refuses requests until it is complete. It is removed when the job is paused, is cancelled or fails.
    """

    state, is_transactional, capability = BuildState, False, Capability.OWN

    @abstractmethod
    def build(self, building: "Building[A]") -> None:
        """Create an account, fill it, and release it."""

    def count(self, run: Run[A]) -> int | None:
        """Return the approximate number of entities to copy, for progress; None if unknown."""
        return None

    def begin(self, run: Run[A]) -> Step[BuildState]:
        return Step(BuildState(), total=self.count(run))

    def step(self, run: Run[A], state: BuildState) -> Step[BuildState]:
        _remove(state.account)  # a process that has died may have left one
        building = Building(run)
        try:
            self.build(building)
        except BaseException:
            # without a connection, another process does it
            if connection.is_usable():
                _remove(building.state.account)
            raise
        return Step(building.state, is_finished=True)

    def end(self, run: Run[A], state: BuildState | None, status: JobStatus) -> None:
        left = None if state is None else Account.objects.filter(pk=state.account or 0).first()
        if left is not None and status is not JobStatus.DONE:
            jobs.start_requested(removal.request(left, with_tables=True), by=SERVER)


# kinds that make or delete accounts; other modules add theirs
KINDS: Final[dict[str, JobKind[Any, Any]]] = {removal.DELETION_JOB.name: removal.DELETION_JOB}


@dataclass(slots=True)
class Building(Generic[A]):
    """Account under construction by a job."""

    run: Run[A]
    state: BuildState = field(default_factory=BuildState)
    tables: int = 0  # number of tables so far
    entities: int = 0  # number of entities so far

    def create(self, name: str, new: NewAccount) -> Account:
        """Create the account, as accounts.add does.

        Raises AccountIsBusy if another request makes or deletes an account of this name.
        """
        settle(name)
        try:
            with invalidating_catalogs():
                account = accounts.add(name, replace(new, enabled=False), by=self.run.by)
                Job.objects.filter(pk=self.run.job.pk).update(account=account)
                self.state = BuildState(account.pk)
                self.run.save(Step(self.state, starts_over=True))
        except AccountExists:
            settle(name)
            raise
        return account

    def expect(self, entities: int) -> None:
        """Set the estimated number of entities to copy."""
        self.run.save(Step(self.state, total=entities))

    def add(self, entities: int, *, tables: int = 1) -> None:
        """Record the progress between two transactions; raises JobInterrupted."""
        self.tables += tables
        self.entities += entities
        self.run.save(Step(self.state, done=entities, counts={"inserted": entities}))
        self.run.rest()

    def release(self, account: Account, *, enabled: bool, settings: Mapping[str, Any] | None = None) -> None:
        """Mark the account as complete; without ``enabled`` it stays disabled."""
        changed = {**(settings or {}), **({"enabled": True} if enabled else {})}
        with invalidating_catalogs():
            lock(account)  # before the job, as a deletion does
            result = {"account": account.pk, "tables": self.tables, "entities": self.entities}
            self.run.save(Step(self.state, total=self.entities, result=result, is_finished=True))
            if changed:
                account_settings.change(account, by=self.run.by, **changed)


def settle(name: str) -> None:
    """Finish or undo abandoned jobs on the account with this name; raises AccountIsBusy if one is still running."""
    account = Account.objects.filter(name=name).first()
    while account is not None and (job := jobs.of_whole_account(account)) is not None:
        if job.kind == removal.DELETION_JOB.name:
            has_ended = running.run(job.pk, KINDS, lambda seconds: False)
        else:
            has_ended = job.kind in KINDS and running.end_abandoned(job, KINDS)
        if not has_ended:
            raise busy(name)
        account = Account.objects.filter(pk=account.pk).first()


def built_by(job: Job) -> BuiltAccount:
    """Return the account that a job created; raises AccountError if it was deleted or the job was cancelled."""
    account = Account.objects.filter(pk=job.result.get("account", 0)).first()
    if account is None:
        raise AccountError(Reason.JOB_ENDED, job=job.pk)
    branch = Branch.objects.filter(account=account).select_related("account", "origin", "source").first()
    return replace(describe(account, branch), tables=job.result["tables"], entities=job.result["entities"])


def _remove(pk: int | None) -> None:
    """Delete an incomplete account."""
    account = Account.objects.filter(pk=pk or 0).first()
    if account is not None:
        removal.remove(account.name, with_tables=True, by=SERVER, only=account)
