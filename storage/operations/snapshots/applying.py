"""Make one side of a comparison equal to the other, in whole or in part, by ordinary recorded writes."""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.fits import Misfit
from storage.domain.entities.moments import Moment
from storage.domain.entities.restoring import Skip, TableAction
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.service.activity import Verb
from storage.domain.values.names import fold_table_name
from storage.models import Table
from storage.operations.access import policies
from storage.operations.accounts import accounts, service_properties
from storage.operations.activity import long_operations
from storage.operations.activity.activity import ChangedSince
from storage.operations.changes import reverting
from storage.operations.changes.outcomes import Outcome, TableOutcome
from storage.operations.changes.reverting import COLLECTION_LIMIT
from storage.operations.relations import table_relations
from storage.operations.snapshots import comparing
from storage.operations.snapshots.comparing import ALL_KINDS, ComparedTable, Comparison
from storage.operations.snapshots.sides import Side, SideTable
from storage.operations.tables import tables


class Target(StrEnum):
    """The side that is made equal to the other."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a comparison is applied.

    ``tables``: their names; None: all but those that only the target has, which are deleted only if they are named.
    ``keys``: of the tables in it, these entities only; such a table is never deleted. ``kinds``: of entities; without
    any, only settings are applied.
    """

    tables: Collection[str] | None = None
    keys: Mapping[str, Collection[EntityKey]] = field(default_factory=dict)
    kinds: Collection[DifferenceKind] = ALL_KINDS
    policies: bool = False
    service_properties: bool = False

    def has(self, table: ComparedTable) -> bool:
        return self.tables is None or table.name in self.tables

    def deletes(self, table: ComparedTable, target: Target) -> bool:
        """Return whether a table that only the target has is deleted, rather than some of its entities."""
        is_only = DifferenceKind.ONLY_LEFT if target is Target.LEFT else DifferenceKind.ONLY_RIGHT
        has_source = _both(table, target)[1] is not None
        is_named = self.tables is not None and table.name in self.tables
        return is_named and not has_source and table.name not in self.keys and is_only in self.kinds


class CannotApply(Refused):
    """The target is of the past."""


def capabilities(comparison: Comparison, target: Target, selection: Selection) -> set[Capability]:
    """Return what a user needs in the account of the target."""
    needed = {Capability.WRITE}
    for table in filter(selection.has, comparison.tables):
        side, _ = _both(table, target)
        if (selection.kinds and side is None) or selection.deletes(table, target):
            needed.add(Capability.MANAGE_TABLES)
    if selection.policies or selection.service_properties:
        needed.add(Capability.MANAGE_ACCESS)
    return needed


def apply(
    comparison: Comparison,
    target: Target,
    selection: Selection,
    *,
    by: Actor,
    read_at: Moment | None = None,
    dry_run: bool = False,
) -> Outcome:
    """Make the target equal to the other side; with ``dry_run`` only find out what would be done.

    Entities that were changed on either side after ``read_at``, when the comparison was read, are skipped, as are
    those that are changed while this runs. A table in which anything changed after it is not deleted. What was written
    before a failure stays, and is recorded. Raises CannotApply if the target is not as it is now, StorageError if its
    account is read-only.
    """
    side, source = _sides(comparison, target)
    if not side.is_live:
        raise CannotApply(Reason.SIDE_IS_PAST, side=side.name)
    accounts.check_writable(side.account)
    by, began = replace(by, request_id=str(uuid.uuid4())), timezone.now()
    work = Application(comparison, target, selection, by, read_at, Outcome(is_preview=dry_run))
    if dry_run:
        return work.run()

    def detail() -> tuple[dict[str, object], Table | None]:
        return _detail(work.outcome, source, began), work.outcome.only_table

    with long_operations.running(Verb.ENTITY_APPLY, side.account, by=by) as operation:
        work.run(lambda: operation.save(*detail()))
        work.outcome.activity = operation.finish(*detail())
    return work.outcome


def _detail(outcome: Outcome, source: Side, began: datetime) -> dict[str, object]:
    """What the activity log remembers; nothing if no entity was written."""
    if not outcome.written:
        return {}
    return {"source": str(source.name), **outcome.detail(), "began": began.isoformat()}


def _sides(comparison: Comparison, target: Target) -> tuple[Side, Side]:
    """Return the side that is changed, and the other."""
    left, right = comparison.left, comparison.right
    return (right, left) if target is Target.RIGHT else (left, right)


def _both(table: ComparedTable, target: Target) -> tuple[SideTable | None, SideTable | None]:
    """Return a table on the side that is changed, and on the other."""
    return (table.right, table.left) if target is Target.RIGHT else (table.left, table.right)


@dataclass(slots=True)
class Application:
    """An application of a comparison, table by table; ``save`` is None if it only finds out what would be done.

    Else it is called in each transaction that does something, and stores the ``outcome`` up to then.
    """

    comparison: Comparison
    target: Target
    selection: Selection
    by: Actor
    read_at: Moment | None = None
    outcome: Outcome = field(default_factory=Outcome)
    save: Callable[[], None] | None = None
    limit: timedelta = COLLECTION_LIMIT

    def run(self, save: Callable[[], None] | None = None, limit: timedelta = COLLECTION_LIMIT) -> Outcome:
        self.save, self.limit = save, limit
        for table in filter(self.selection.has, self.comparison.tables):
            self._apply_table(table, self.outcome.table(table.name))
        self._apply_service_properties()
        return self.outcome

    def _apply_table(self, table: ComparedTable, outcome: TableOutcome) -> None:
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
            self._apply_entities(table, changed, outcome)
        if self.selection.policies and source is not None:
            self._apply_policies(source, changed, outcome)

    def _delete(self, table: Table, outcome: TableOutcome) -> None:
        try:
            if self.save is None:
                self._check_unchanged(table)
                outcome.action = TableAction.DELETE
            else:
                outcome.deletion = tables.delete(
                    table.account,
                    table.name,
                    by=self.by,
                    keep=tables.DELETED_TABLE_RETENTION,
                    check=lambda found: self._note_deletion(found, outcome),
                )
        except ChangedSince:
            outcome.skip(None, Skip.CHANGED)

    def _note_deletion(self, table: Table, outcome: TableOutcome) -> None:
        table.refresh_from_db(fields=("deleted_at",))  # its relation has another name already
        self._check_unchanged(table)
        outcome.action = TableAction.DELETE
        if self.save is not None:
            self.save()

    def _check_unchanged(self, table: Table) -> None:
        """Raise ChangedSince for a table that was created or written to since the comparison was read."""
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
        if self.save is None:
            return outcome.table  # a deleted one that would be restored
        return tables.create(
            side.account, source.name, by=self.by, description=source.description, tags=source.tags
        )

    def _apply_entities(self, table: ComparedTable, changed: Table | None, outcome: TableOutcome) -> None:
        if changed is not None:
            table_relations.refuse_distributed(changed)
        side, source = _sides(self.comparison, self.target)
        kind = None if side.kind is source.kind else side.kind
        images = comparing.images(
            table,
            self.selection.kinds,
            to_left=self.target is Target.LEFT,
            keys=self.selection.keys.get(table.name),
            read_at=self.read_at,
        )
        if changed is None or self.save is None:
            reverting.preview_images(images, outcome, kind=kind, limit=self.limit)
            return
        reverting.apply_images(changed, images, by=self.by, into=outcome, save=self.save, kind=kind)
        # however it was changed
        outcome.examples = [
            replace(it, reason=Skip.CHANGED) if it.misfit is None else it for it in outcome.examples
        ]

    def _apply_policies(self, source: SideTable, changed: Table | None, outcome: TableOutcome) -> None:
        present = [] if changed is None else policies.written([changed])[changed.pk]
        outcome.policies = present != source.policies
        if outcome.policies and changed is not None and self.save is not None:
            wanted = policies.read(source.policies)
            policies.replace(changed, wanted, by=self.by)

    def _apply_service_properties(self) -> None:
        differing = self.comparison.service_properties
        if not self.selection.service_properties or differing is None:
            return
        self.outcome.service_properties = True
        if self.save is not None:
            side, _ = _sides(self.comparison, self.target)
            wanted = service_properties.read(differing[0 if self.target is Target.RIGHT else 1])
            service_properties.replace(side.account, lambda _: wanted, by=self.by)
