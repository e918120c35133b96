"""Application of a comparison to one side, in whole or in part, by recorded writes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from django.db import transaction

from storage.access import policies
from storage.accounts import accounts, service_properties
from storage.activity.activity import ChangedSince
from storage.compare import comparing, sides
from storage.compare.comparing import ALL_KINDS, ComparedTable, Comparison
from storage.compare.side_names import SideName
from storage.compare.sides import Side, SideNotFound, SideTable
from storage.compare.subject import CompareVerb
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.fits import Misfit
from storage.domain.entities.moments import Moment, read_moment_token
from storage.domain.entities.restoring import Skip, TableAction
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.values.names import fold_table_name
from storage.jobs import local, running
from storage.jobs.kinds import JobRequest, Run
from storage.jobs.starters import NeededAccess
from storage.models import Account, Job, Table
from storage.relations import table_relations
from storage.tables import tables
from storage.undo import reverting
from storage.undo.outcome_jobs import (
    OutcomeJob,
    OutcomeState,
    Progress,
    began,
    outcome_of,
)
from storage.undo.outcomes import Outcome, TableOutcome
from storage.undo.reverting import COLLECTION_LIMIT


class Target(StrEnum):
    """The side that is made equal to the other."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a comparison that is applied."""

    # their names; None for all except tables of the target only, which are deleted only if they are named
    tables: Collection[str] | None = None
    # limits tables to these entities; such a table is never deleted
    keys: Mapping[str, Collection[EntityKey]] = field(default_factory=dict)
    # kinds of differences of entities; without any, only settings are applied
    kinds: Collection[DifferenceKind] = ALL_KINDS
    policies: bool = False
    service_properties: bool = False

    def dump(self) -> dict[str, Any]:
        return {
            "tables": None if self.tables is None else [*self.tables],
            "keys": {name: [[*key] for key in keys] for name, keys in self.keys.items()},
            "kinds": [*self.kinds],
            "policies": self.policies,
            "service_properties": self.service_properties,
        }

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        keys = {name: [EntityKey(*key) for key in keys] for name, keys in found["keys"].items()}
        return cls(**{**found, "keys": keys, "kinds": [*map(DifferenceKind, found["kinds"])]})

    def has(self, table: ComparedTable) -> bool:
        return self.tables is None or table.name in self.tables

    def deletes(self, table: ComparedTable, target: Target) -> bool:
        """Return whether a table that exists only in the target is to be deleted as a whole."""
        is_only = DifferenceKind.ONLY_LEFT if target is Target.LEFT else DifferenceKind.ONLY_RIGHT
        has_source = _both(table, target)[1] is not None
        is_named = self.tables is not None and table.name in self.tables
        return is_named and not has_source and table.name not in self.keys and is_only in self.kinds


class CannotApply(Refused):
    """The target is a past state."""


def capabilities(comparison: Comparison, target: Target, selection: Selection) -> set[Capability]:
    """Return the capabilities that a user needs in the target's account."""
    needed = {Capability.WRITE}
    for table in filter(selection.has, comparison.tables):
        side, _ = _both(table, target)
        if (selection.kinds and side is None) or selection.deletes(table, target):
            needed.add(Capability.MANAGE_TABLES)
    if selection.policies or selection.service_properties:
        needed.add(Capability.MANAGE_ACCESS)
    return needed


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of an application, as JSON."""

    left: Sequence[Any]  # the id of an account, and the name of the side in it
    right: Sequence[Any]  # the same for the other side
    target: str
    selection: Mapping[str, Any]
    with_timestamps: bool
    read_at: str
    place: str = ""  # where the process that has started the job finds the comparison, see storage.jobs.local


class _ApplyJob(OutcomeJob[Arguments]):
    name, arguments, capability = "entity.apply", Arguments, Capability.WRITE
    verb = CompareVerb.APPLY

    def needed_access(self, job: Job, arguments: Arguments) -> Sequence[NeededAccess]:
        """Require read access to the other side, too; creation and deletion of tables are checked at the start."""
        selection = Selection.load(arguments.selection)
        is_of_access = selection.policies or selection.service_properties
        capability = Capability.MANAGE_ACCESS if is_of_access else self.capability
        own = [] if job.account_id is None else [NeededAccess(job.account_id, capability)]
        return [*own, *(NeededAccess(side[0], Capability.READ) for side in (arguments.left, arguments.right))]

    def apply(self, progress: Progress[Arguments]) -> None:
        run, arguments = progress.run, progress.run.arguments
        accounts.writable(run.account)
        known: Comparison | None = local.find(arguments.place)
        comparison = known or comparing.compare(
            *map(_find_side, (arguments.left, arguments.right)), with_timestamps=arguments.with_timestamps
        )
        Application(
            comparison,
            Target(arguments.target),
            Selection.load(arguments.selection),
            run.by,
            read_moment_token(arguments.read_at),
            progress.outcome,
        ).run(progress)

    def describe(self, run: Run[Arguments], outcome: Outcome) -> dict[str, object]:
        """Return the details for the activity log; empty if no entity was written."""
        if not outcome.written:
            return {}
        arguments = run.arguments
        _, source = arguments.right if arguments.target == Target.LEFT else arguments.left
        return {"source": source, **outcome.detail(), "began": began(run)}


APPLY_JOB: Final = _ApplyJob()


def _find_side(written: Sequence[Any]) -> Side:
    account, name = Account.objects.filter(pk=written[0]).first(), SideName.read(written[1])
    assert name is not None
    if account is None:
        raise SideNotFound(Reason.NO_ACCOUNT, account=name.account)
    return sides.find(name, account)


def apply(
    comparison: Comparison,
    target: Target,
    selection: Selection,
    *,
    by: Actor,
    read_at: Moment | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Apply the selected differences to the target and wait for the result; with ``dry_run``, only report them.

    See ``request``.
    """
    job_request = request(comparison, target, selection, read_at=read_at)
    if dry_run:
        return Application(comparison, target, selection, by, read_at, Outcome(is_preview=True)).run()
    with local.offering(comparison) as place:
        arguments = replace(job_request.arguments, place=place)
        return outcome_of(running.complete(replace(job_request, arguments=arguments), by=by))


def request(
    comparison: Comparison, target: Target, selection: Selection, *, read_at: Moment | None = None
) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that makes the target equal to the other side."""
    side = _check(comparison, target)
    left, right = ((it.account.pk, str(it.name)) for it in (comparison.left, comparison.right))
    moment = "" if read_at is None else read_at.token
    arguments = Arguments(left, right, target, selection.dump(), comparison.with_timestamps, moment)
    return JobRequest(APPLY_JOB, arguments, side.account)


def _check(comparison: Comparison, target: Target) -> Side:
    """Return the target side; raises CannotApply for a past state."""
    side, _ = _sides(comparison, target)
    if not side.is_live:
        raise CannotApply(Reason.SIDE_IS_PAST, side=side.name)
    accounts.check_writable(side.account)
    return side


def _sides(comparison: Comparison, target: Target) -> tuple[Side, Side]:
    """Return the target side and the other one."""
    left, right = comparison.left, comparison.right
    return (right, left) if target is Target.RIGHT else (left, right)


def _both(table: ComparedTable, target: Target) -> tuple[SideTable | None, SideTable | None]:
    """Return a table on the target side and on the other."""
    return (table.right, table.left) if target is Target.RIGHT else (table.left, table.right)


@dataclass(slots=True)
class Application:
    """Application of a comparison, table by table; each transaction stores its ``outcome``."""

    comparison: Comparison
    target: Target
    selection: Selection
    by: Actor
    read_at: Moment | None = None
    outcome: Outcome = field(default_factory=Outcome)
    progress: Progress[Any] | None = None
    limit: timedelta = COLLECTION_LIMIT

    def run(self, progress: Progress[Any] | None = None, limit: timedelta = COLLECTION_LIMIT) -> Outcome:
        self.progress, self.limit = progress, limit
        done: Collection[str] = ()
        if progress is not None:
            # changes by users since the rest was compared are newer work
            self.read_at = self.read_at or progress.read_at
            progress.compared_at = progress.read_at or self.comparison.read_at
            done = frozenset(progress.done)
        selected = [it for it in self.comparison.tables if self.selection.has(it) and it.name not in done]
        for table in selected:
            self._apply_table(table, self.outcome.table(table.name), is_last=table is selected[-1])
            if progress is not None:
                progress.done.append(table.name)
        self._apply_service_properties()
        return self.outcome

    def _apply_table(self, table: ComparedTable, outcome: TableOutcome, *, is_last: bool) -> None:
        side, source = _both(table, self.target)
        if not self.selection.kinds and (side is None or source is None):
            return
        if source is None and self.selection.tables is None:
            outcome.skip(None, Skip.ONLY_TARGET)
            return
        changed = side.table if side is not None and isinstance(side.table, Table) else None
        if changed is not None and self.selection.deletes(table, self.target):
            self._delete(changed, outcome)
            return
        outcome.table = changed or outcome.table
        if changed is None and source is not None:
            changed = self._create(source, outcome)
            if outcome.action is TableAction.KEEP:
                return
        if self.selection.kinds:
            self._apply_entities(table, changed, outcome, is_last=is_last)
        if self.selection.policies and source is not None:
            self._apply_policies(source, changed, outcome)

    def _delete(self, table: Table, outcome: TableOutcome) -> None:
        try:
            if self.progress is None:
                self._check_unchanged(table)
                outcome.action = TableAction.DELETE
            else:
                outcome.deletion = tables.delete(
                    table.account,
                    table.name,
                    by=self.by,
                    keep=tables.DELETED_TABLE_RETENTION,
                    check=lambda locked: self._note_deletion(locked, outcome),
                )
        except ChangedSince:
            outcome.skip(None, Skip.CHANGED)

    def _note_deletion(self, table: Table, outcome: TableOutcome) -> None:
        table.refresh_from_db(fields=("deleted_at",))  # its relation has another name already
        self._check_unchanged(table)
        outcome.action = TableAction.DELETE
        if self.progress is not None:
            self.progress.save()

    def _check_unchanged(self, table: Table) -> None:
        """Raise ChangedSince for a table that was created or changed since the comparison was read."""
        if self.read_at is not None and comparing.is_changed_since(table, self.read_at):
            raise ChangedSince

    def _create(self, source: SideTable, outcome: TableOutcome) -> Table | None:
        side, _ = _sides(self.comparison, self.target)
        try:
            fold_table_name(source.name, side.kind)
        except StorageError:
            outcome.skip(None, Skip.MISFIT, Misfit.TABLE_NAME)
            return None
        if outcome.action is TableAction.KEEP:
            outcome.action = TableAction.CREATE
        if self.progress is None:
            return outcome.table  # a deleted one that would be restored
        with transaction.atomic():
            made = tables.create(
                side.account, source.name, by=self.by, description=source.description, tags=source.tags
            )
            self.progress.save()
        return made

    def _apply_entities(
        self, table: ComparedTable, changed: Table | None, outcome: TableOutcome, *, is_last: bool
    ) -> None:
        if changed is not None:
            table_relations.refuse_without_images(changed)
        side, source = _sides(self.comparison, self.target)
        kind = None if side.kind is source.kind else side.kind
        images = comparing.images(
            table,
            self.selection.kinds,
            to_left=self.target is Target.LEFT,
            keys=self.selection.keys.get(table.name),
            read_at=self.read_at,
        )
        if changed is None or self.progress is None:
            reverting.preview_images(images, outcome, kind=kind, limit=self.limit)
            return
        self.progress.apply_images(changed, outcome, images, kind=kind, is_last=is_last)
        # however it was changed
        outcome.examples = [
            replace(it, reason=Skip.CHANGED) if it.misfit is None else it for it in outcome.examples
        ]

    def _apply_policies(self, source: SideTable, changed: Table | None, outcome: TableOutcome) -> None:
        present = [] if changed is None else policies.written([changed])[changed.pk]
        outcome.policies = present != source.policies
        if outcome.policies and changed is not None and self.progress is not None:
            new_policies = policies.read(source.policies)
            policies.replace(changed, new_policies, by=self.by)

    def _apply_service_properties(self) -> None:
        differing = self.comparison.service_properties
        if not self.selection.service_properties or differing is None:
            return
        self.outcome.service_properties = True
        if self.progress is not None:
            side, _ = _sides(self.comparison, self.target)
            new_properties = service_properties.read(differing[0 if self.target is Target.RIGHT else 1])
            service_properties.replace(side.account, lambda _: new_properties, by=self.by)
