"""Copy an account, optionally to the other kind, after reporting what does not fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from storage.account_files import account_building
from storage.account_files.account_building import (
    Building,
    BuildJob,
    BuildState,
    BuiltAccount,
    built_by,
)
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError
from storage.compare import sides
from storage.compare.sides import Side, SideTable
from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.fits import Misfit, find_misfit
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_new_table_name
from storage.entities import entities
from storage.jobs import running
from storage.jobs.kinds import JobRequest, Run
from storage.jobs.starters import NeededAccess
from storage.metrics import totals
from storage.metrics.totals import Contents
from storage.models import Account, Job, Table
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_of
from storage.tables import tables


@dataclass(frozen=True, slots=True)
class Finding:
    """A misfit: ``number`` entities of a table with ``example`` among them, or the table itself (0)."""

    misfit: Misfit
    table: str
    number: int = 0
    example: EntityKey | None = None


class CopyRefused(AccountError):
    """The copy was refused because not everything fits."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(Reason.COPY_DOES_NOT_FIT)
        self.findings = findings


class Fitting:
    """Collector of the reasons why tables and entities do not fit into an account of another kind."""

    def __init__(self, kind: AccountKind) -> None:
        self._kind = kind
        self._names: set[str] = set()
        self._tables: list[Finding] = []
        self._entities: dict[tuple[str, Misfit], Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        return [*self._tables, *self._entities.values()]

    @property
    def refused(self) -> list[Finding]:
        """Return the findings that prevent a copy, all but policies."""
        return [it for it in self.findings if it.misfit is not Misfit.POLICIES]

    def check_table(self, name: str, *, has_policies: bool) -> None:
        try:
            folded = fold_new_table_name(name, self._kind)
        except StorageError:
            self._tables.append(Finding(Misfit.TABLE_NAME, name))
            return
        if folded in self._names:
            self._tables.append(Finding(Misfit.TABLE_CASE, name))
        self._names.add(folded)
        if self._kind is AccountKind.COSMOS and has_policies:
            self._tables.append(Finding(Misfit.POLICIES, name))

    def check_entity(self, table: str, entity: Entity) -> None:
        """Check whether an entity fits, and set its kind."""
        misfit = find_misfit(entity, self._kind)
        if misfit is not None:
            finding = self._entities.get((table, misfit), Finding(misfit, table, 0, entity.key))
            self._entities[table, misfit] = replace(finding, number=finding.number + 1)


def check(source: Account, kind: AccountKind) -> list[Finding]:
    """List what would not fit or would be left out in a copy of this kind; scans all entities if the kinds differ."""
    if kind == source.kind:
        return []
    return _check(sides.live(source), kind, with_entities=True).findings


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a copy."""

    source: int  # the id of the account to copy
    origin: str  # the name of the account to copy
    name: str
    kind: str
    request_digest: str


class _CopyJob(BuildJob[Arguments]):
    name, arguments = "account.copy", Arguments

    def needed_access(self, job: Job, arguments: Arguments) -> Sequence[NeededAccess]:
        return [NeededAccess(arguments.source, self.capability)]

    def count(self, run: Run[Arguments]) -> int | None:
        source = run.arguments.source
        return totals.contents([source]).get(source, Contents()).entities

    def build(self, building: Building[Arguments]) -> None:
        arguments, kind = building.run.arguments, AccountKind(building.run.arguments.kind)
        source = Account.objects.filter(pk=arguments.source).first()
        if source is None:
            raise AccountError(Reason.NO_ACCOUNT, account=arguments.origin)
        side = sides.live(source)
        refused = {it.table for it in _check(side, kind, with_entities=False).refused}
        new = replace(NewAccount.like(source), kind=kind, request_digest=arguments.request_digest)
        account = building.create(arguments.name, new)
        for it in side.tables.values():
            if it.name in refused:
                continue
            if side.kind is kind and it.form.capabilities.joins_partitions:
                building.add(account_building.copy_table(it, account, EntityQuery())[1])
            else:
                _convert(it, account, building)
        building.release(account, enabled=True)


COPY_JOB: Final = _CopyJob()
account_building.KINDS[COPY_JOB.name] = COPY_JOB


def request(
    source: Account, name: str, kind: AccountKind, *, skip: bool = False, request_digest: str = ""
) -> JobRequest[Arguments, BuildState]:
    """Return a job that copies an account's tables to a new account, which refuses requests until the copy is complete.

    Tables and entities that do not fit are skipped with ``skip``; otherwise CopyRefused is raised. A copy of
    the same kind keeps Timestamps; a copy of another kind gets new ones. Writes to the source during the copy
    may or may not be copied.
    """
    side = sides.live(source)
    findings = [] if skip else _check(side, kind, with_entities=kind is not side.kind).refused
    if findings:
        raise CopyRefused(findings)
    account_building.settle(name)
    return JobRequest(COPY_JOB, Arguments(source.pk, source.name, name, kind.value, request_digest), None)


def copy(
    source: Account,
    name: str,
    kind: AccountKind,
    *,
    skip: bool = False,
    by: Actor = SERVER,
    request_digest: str = "",
) -> BuiltAccount:
    """Copy an account and wait for the result: see ``request``."""
    job_request = request(source, name, kind, skip=skip, request_digest=request_digest)
    return built_by(running.complete(job_request, by=by))


def _convert(source: SideTable, account: Account, building: Building[Arguments]) -> None:
    """Copy the entities of a table that fit, converting each."""
    made = tables.create(
        account, source.name, by=building.run.by, description=source.description, tags=source.tags
    )
    building.tables += 1
    for page in _pages(source):
        fitting = [entity for entity in page if find_misfit(entity, AccountKind(account.kind)) is None]
        for statement in statements.insert_all(relation_of(made), fitting):
            sql.run(statement)
        building.add(len(fitting), tables=0)


def _check(side: Side, kind: AccountKind, *, with_entities: bool) -> Fitting:
    fitting = Fitting(kind)
    for table in side.tables.values():
        fitting.check_table(table.name, has_policies=bool(table.policies))
    for table in side.tables.values() if with_entities else ():
        for page in _pages(table):
            for entity in page:
                fitting.check_entity(table.name, entity)
    return fitting


def _pages(source: SideTable) -> Iterator[list[Entity]]:
    assert isinstance(source.table, Table)
    for page in entities.all_pages(source.table, EntityQuery()):
        yield [read_stored(stored) for stored in page]
