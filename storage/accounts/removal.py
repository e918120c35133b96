"""Deleting an account with its tables."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from storage.accounts.account_settings import to_json
from storage.accounts.refusals import (
    AccountError,
    AccountHasTables,
    AccountIsProtected,
    busy,
)
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core.account_settings import SETTINGS
from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.roles import Capability
from storage.domain.refusals import Reason
from storage.jobs import jobs, running
from storage.jobs.kinds import (
    JobKind,
    JobRequest,
    Run,
    Step,
)
from storage.jobs.starters import NeededAccess
from storage.jobs.states import Unit
from storage.models import Account, Job, Snapshot, Table
from storage.relations import history, snapshot_copies, table_relations

_DROPPED_TOGETHER: Final = 100  # tables; looking at locks takes longer the more a transaction has


@dataclass(frozen=True, slots=True)
class Arguments:
    """The account to delete."""

    account: int  # an id, so that another account that has taken the name stays
    name: str
    with_tables: bool
    # a time at which its lifetime has to be over, and the delay after it; empty for any other account
    over_at: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """Progress of a deletion."""

    tables: Sequence[str] = ()  # the names of the tables that are dropped already


class _DeletionJob(JobKind[Arguments, State]):
    """Job that deletes an account: drops most tables in separate transactions, then the rest with the account itself.

    PostgreSQL locks each relation that a transaction drops, and has room for the locks of some thousand
    tables.
    """

    name, arguments, state, capability = "account.delete", Arguments, State, Capability.OWN
    is_transactional, goes_on = False, True

    def unit(self, arguments: Arguments) -> Unit:
        return Unit.TABLES

    def begin(self, run: Run[Arguments]) -> Step[State]:
        return Step(State(), total=Table.objects.filter(account=run.arguments.account).count())

    def step(self, run: Run[Arguments], state: State) -> Step[State]:
        arguments = run.arguments
        while has_many_tables(arguments.account):
            with invalidating_catalogs():
                account = _lock(arguments.account)
                if account is None or not _may_be_deleted(account, arguments):
                    break
                dropped = list(Table.objects.filter(account=account).order_by("pk")[:_DROPPED_TOGETHER])
                _drop(dropped)
                Table.objects.filter(pk__in=[table.pk for table in dropped]).delete()
                state = State([*state.tables, *(table.name for table in dropped if table.deleted_at is None)])
                run.save(Step(state, done=len(dropped)))
            run.rest()
        with invalidating_catalogs():
            left = Table.objects.filter(account=arguments.account).count()
            _delete(arguments, by=run.by)
            last = Step(state, done=left, is_finished=True)
            run.save(last)
        return last

    def needed_access(self, job: Job, arguments: Arguments) -> Sequence[NeededAccess]:
        """Require the owner role on the account; nothing once the account is deleted."""
        exists = Account.objects.filter(pk=arguments.account).exists()
        return [NeededAccess(arguments.account, self.capability)] if exists else []

    def may_stop(self, state: State | None) -> bool:
        """Return whether the job can be cancelled, which is until it has dropped the first table."""
        return state is None or not state.tables


DELETION_JOB: Final = _DeletionJob()
_KINDS: Final = {DELETION_JOB.name: DELETION_JOB}


def request(account: Account, *, with_tables: bool) -> JobRequest[Arguments, State]:
    """Return a job that deletes an account; it cannot be cancelled once it has dropped a table.

    Raises AccountError if the account is protected, or if it has tables and ``with_tables`` is false.
    """
    _check(account, account.name, _own_tables(account), with_tables=with_tables)
    return JobRequest(DELETION_JOB, Arguments(account.pk, account.name, with_tables), account)


def remove(name: str, *, with_tables: bool = False, by: Actor = SERVER, only: Account | None = None) -> None:
    """Delete an account; raises AccountError if it is protected, or if it has tables and ``with_tables`` is false.

    With ``only``, a different account that has taken the name since is kept. If the process dies, either
    nothing is deleted or another process completes the deletion.
    """
    account = Account.objects.filter(name=name).first()
    if account is None:
        raise AccountError(Reason.NO_ACCOUNT, account=name)
    if only in (None, account):
        _remove(Arguments(account.pk, name, with_tables), account, by)


def purge(account: Account, now: datetime) -> None:
    """Delete an expired account, unless its lifetime was extended."""
    _remove(Arguments(account.pk, account.name, with_tables=True, over_at=now.isoformat()), account, SERVER)


def _remove(arguments: Arguments, account: Account, by: Actor) -> None:
    if not has_many_tables(account.pk):
        with invalidating_catalogs():
            _delete(arguments, by=by)
        return
    unfinished = jobs.of_whole_account(account)
    if unfinished is not None and unfinished.kind == DELETION_JOB.name:
        if not running.run(unfinished.pk, _KINDS, lambda seconds: False):
            raise busy(account.name)
        if not Account.objects.filter(pk=account.pk).exists():
            return
    running.complete(JobRequest(DELETION_JOB, arguments, account), by=by)


def has_many_tables(account: int) -> bool:
    """Return whether a deletion takes several transactions."""
    return Table.objects.filter(account=account).count() > _DROPPED_TOGETHER


def _lock(account: int) -> Account | None:
    return Account.objects.select_for_update(no_key=True).filter(pk=account).first()


def _is_over(account: Account, wanted: Arguments) -> bool:
    return account.purged_at is not None and account.purged_at <= datetime.fromisoformat(wanted.over_at)


def _may_be_deleted(account: Account, wanted: Arguments) -> bool:
    if wanted.over_at and not _is_over(account, wanted):
        return False
    return wanted.with_tables and not (account.protected or account.read_only)


def _own_tables(account: Account) -> list[str]:
    return list(Table.objects.existing().filter(account=account).values_list("name", flat=True))


def _check(account: Account, name: str, tables: Sequence[str], *, with_tables: bool) -> None:
    if account.protected:
        raise AccountIsProtected(Reason.ACCOUNT_PROTECTED, account=name)
    if tables and not with_tables:
        raise AccountHasTables(Reason.ACCOUNT_HAS_TABLES, account=name, number=len(tables))
    if tables and account.read_only:
        raise AccountError(Reason.READ_ONLY_ACCOUNT_HAS_TABLES, account=name, number=len(tables))


def _drop(tables: Collection[Table]) -> None:
    for table in tables:
        if table.deleted_at is None:
            table_relations.soft_delete(table)
    table_relations.drop(tables)


def _delete(arguments: Arguments, *, by: Actor) -> None:
    """Delete an account with all its data, in the caller's transaction."""
    # also against new tables: waits for those being created
    Account.objects.select_for_update().filter(pk=arguments.account).first()
    account, name = _lock(arguments.account), arguments.name
    if account is None or (arguments.over_at and not _is_over(account, arguments)):
        return
    names = _own_tables(account)
    _check(account, name, names, with_tables=arguments.with_tables)
    # deleted tables that could be restored included
    _drop(list(Table.objects.filter(account=account)))
    for snapshot in Snapshot.objects.filter(account=account):
        snapshot_copies.drop_relations(snapshot)
    history.remove(account)
    before = to_json({field: getattr(account, field) for field in SETTINGS})
    for unfinished in jobs.unfinished(DELETION_JOB, account=account):
        names += (unfinished.state or {}).get("tables", ())
    activity.record(AccountVerb.DELETE, by, account=account, before=before, detail={"tables": sorted(names)})
    jobs.detach(account)
    account.delete()
