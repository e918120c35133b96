"""Apply a comparison: make one side equal to the other, in whole or in part, by ordinary recorded writes."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.entities.fits import Misfit, find_misfit
from storage.domain.entities.moments import Moment
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.service.activity import Verb
from storage.domain.values.names import fold_table_name
from storage.editing.comparison import DifferenceKind
from storage.models import Activity, Table
from storage.operations.access import policies
from storage.operations.accounts import accounts, service_properties
from storage.operations.activity import long_operations
from storage.operations.activity.activity import ChangedSince
from storage.operations.changes import past, reverting
from storage.operations.changes.reverting import Reverted
from storage.operations.snapshots import comparing
from storage.operations.snapshots.comparing import ALL_KINDS, ComparedTable, Comparison
from storage.operations.snapshots.sides import Side, SideTable
from storage.operations.tables import tables
from storage.sql import comparing as statements
from storage.sql import django as sql
from storage.sql.comparing import DifferingEntity, Image, NewImage

EXAMPLES: Final = 100  # of what was skipped in a table


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


class SkipReason(StrEnum):
    """Why an entity or a table was left alone."""

    CHANGED = "changed"  # since the comparison was read
    ONLY_TARGET = "only-target"  # a table that was not named
    MISFIT = "misfit"  # it does not fit into an account of the other kind


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entity, or the table if ``key`` is None; ``misfit`` says what does not fit."""

    key: EntityKey | None
    reason: SkipReason
    misfit: Misfit | None = None


@dataclass(slots=True)
class AppliedTable:
    """Result of applying to one table, or of its dry run: numbers of entities, and examples of skipped ones.

    ``deletion``: that of the whole table once it is done.
    """

    name: str
    inserted: int = 0
    changed: int = 0
    deleted: int = 0
    skipped: int = 0
    examples: list[Skipped] = field(default_factory=list)
    is_created: bool = False
    is_deleted: bool = False
    deletion: Activity | None = None
    policies: bool = False

    @property
    def written(self) -> int:
        return self.inserted + self.changed + self.deleted

    def skip(self, key: EntityKey | None, reason: SkipReason, misfit: Misfit | None = None) -> None:
        self.skipped += key is not None
        if len(self.examples) < EXAMPLES:
            self.examples.append(Skipped(key, reason, misfit))


@dataclass(slots=True)
class Applied:
    """``activity`` is None if no entity was written."""

    tables: list[AppliedTable] = field(default_factory=list)
    service_properties: bool = False
    activity: Activity | None = None

    @property
    def written(self) -> int:
        return sum(table.written for table in self.tables)

    @property
    def skipped(self) -> int:
        return sum(table.skipped for table in self.tables)


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
) -> Applied:
    """Make the target equal to the other side; with ``dry_run`` only find out what would be done.

    Entities that were changed on either side after ``read_at``, when the comparison was read, are skipped, as are
    those that are changed while this runs. A table in which anything changed after it is not deleted. What was written
    before a failure stays, and is recorded. Raises CannotApply if the target is not as it is now, StorageError if its
    account is read-only.
    """
    is_right = target is Target.RIGHT
    side, source = (comparison.right, comparison.left) if is_right else (comparison.left, comparison.right)
    if not side.is_live:
        raise CannotApply(Reason.SIDE_IS_PAST, side=side.name)
    accounts.check_writable(side.account)
    by, began = replace(by, request_id=str(uuid.uuid4())), timezone.now()
    applied = Applied()

    def save() -> None:
        operation.save(*_detail(applied, side, source, began))

    work = _Application(target, side, source, selection, by, read_at, save, dry_run=dry_run)
    if dry_run:
        work.apply_tables(comparison, applied)
    else:
        with long_operations.running(Verb.ENTITY_APPLY, side.account, by=by) as operation:
            work.apply_tables(comparison, applied)
            applied.activity = operation.finish(*_detail(applied, side, source, began))
    differing = comparison.service_properties
    if selection.service_properties and differing is not None:
        applied.service_properties = True
        wanted = service_properties.read(differing[0] if is_right else differing[1])
        if not dry_run:
            service_properties.replace(side.account.pk, lambda _: wanted, by=by)
    return applied


def _both(table: ComparedTable, target: Target) -> tuple[SideTable | None, SideTable | None]:
    """Return a table on the side that is changed, and on the other."""
    return (table.right, table.left) if target is Target.RIGHT else (table.left, table.right)


def _detail(
    applied: Applied, side: Side, source: Side, began: datetime
) -> tuple[dict[str, object], Table | None]:
    """What the activity log remembers, with the table if it is one; nothing if no entity was written."""
    written = [table for table in applied.tables if table.written]
    if not written:
        return {}, None
    only = next((it for it in side.tables.values() if len(written) == 1 and it.name == written[0].name), None)
    detail = {
        "source": str(source.name),
        "changed": sum(table.changed for table in written),
        "inserted": sum(table.inserted for table in written),
        "deleted": sum(table.deleted for table in written),
        "skipped": applied.skipped,
        "rows": applied.written,
        "tables": len(written),
        "began": began.isoformat(),
    }
    return detail, None if only is None else Table.objects.filter(pk=only.table_id).first()


@dataclass(slots=True)
class _Application:
    """One application of a comparison; tables are applied one after the other."""

    target: Target
    side: Side
    source: Side
    selection: Selection
    by: Actor
    read_at: Moment | None
    save: Callable[[], None]  # what was done, in the transaction that does it
    dry_run: bool

    def apply_tables(self, comparison: Comparison, applied: Applied) -> None:
        for table in filter(self.selection.has, comparison.tables):
            applied.tables.append(AppliedTable(table.name))
            self.apply_table(table, applied.tables[-1])

    def apply_table(self, table: ComparedTable, applied: AppliedTable) -> None:
        side, source = _both(table, self.target)
        if not self.selection.kinds and (side is None or source is None):
            return
        if source is None and self.selection.tables is None:
            applied.skip(None, SkipReason.ONLY_TARGET)
            return
        if self.selection.deletes(table, self.target):
            self._delete(table, applied)
            return
        changed = None if side is None else Table.objects.get(pk=side.table_id)
        if changed is None and source is not None:
            changed = self._create(source, applied)
            if not applied.is_created:
                return
        if self.selection.kinds:
            keys = self.selection.keys.get(table.name)
            for page in comparing.pages(table, self.selection.kinds, keys=keys):
                self._apply_page(table, page, changed, applied)
        if self.selection.policies and source is not None and table.policies is not None:
            applied.policies = True
            if changed is not None and not self.dry_run:
                identifiers = policies.read(source.policies)
                policies.replace(changed.account_id, changed.folded_name, identifiers, by=self.by)

    def _delete(self, table: ComparedTable, applied: AppliedTable) -> None:
        side, _ = _both(table, self.target)
        assert side is not None
        try:
            if self.dry_run:
                self._check_unchanged(side.table_id)
            else:
                applied.deletion = tables.delete(
                    self.side.account.pk,
                    table.name,
                    by=self.by,
                    keep=tables.DELETED_TABLE_RETENTION,
                    check=lambda found: self._check_unchanged(found.pk),
                )
        except ChangedSince:
            applied.skip(None, SkipReason.CHANGED)
        else:
            applied.is_deleted = True

    def _check_unchanged(self, table_id: int) -> None:
        """Raise ChangedSince for a table that was created or written to since the comparison was read."""
        if self.read_at is not None and _is_changed_since(Table.objects.get(pk=table_id), self.read_at):
            raise ChangedSince

    def _create(self, source: SideTable, applied: AppliedTable) -> Table | None:
        account = self.side.account
        try:
            fold_table_name(source.name, self.side.kind)
        except StorageError:
            applied.skip(None, SkipReason.MISFIT, Misfit.TABLE_NAME)
            return None
        applied.is_created = True
        if self.dry_run:
            return None
        return tables.create(
            account.pk, source.name, by=self.by, description=source.description, tags=source.tags
        )

    def _apply_page(
        self, table: ComparedTable, page: list[DifferingEntity], changed: Table | None, applied: AppliedTable
    ) -> None:
        images = list(self._images(page, self._newer(table, page), applied))
        if changed is None or self.dry_run:
            for image in images:
                _count(image, applied)
        elif images:
            before, done = (applied.inserted, applied.changed, applied.deleted), Reverted()

            def save() -> None:
                applied.inserted = before[0] + done.inserted
                applied.changed = before[1] + done.changed
                applied.deleted = before[2] + done.deleted
                self.save()

            reverting.apply_images(changed, statements.images(images), by=self.by, into=done, save=save)
            for skipped in done.examples:
                applied.skip(skipped.key, SkipReason.CHANGED)
            applied.skipped += done.skipped - len(done.examples)

    def _images(
        self, page: list[DifferingEntity], newer: Collection[EntityKey], applied: AppliedTable
    ) -> Iterator[NewImage]:
        """Yield what the entities become, but for those that were changed since or do not fit."""
        for entity in page:
            old, new = entity.left, entity.right
            if self.target is Target.RIGHT:
                old, new = new, old
            if entity.key in newer:
                applied.skip(entity.key, SkipReason.CHANGED)
                continue
            annotations, values = (None, None) if new is None else (new.annotations, new.values)
            if new is not None and self.side.kind is not self.source.kind:
                converted = read_stored(entity.stored(new))
                misfit = find_misfit(converted, self.side.kind)
                if misfit is not None:
                    applied.skip(entity.key, SkipReason.MISFIT, misfit)
                    continue
                _, annotations, values = converted.fragments
            yield NewImage(entity.key, None if old is None else old.timestamp, annotations, values)

    def _newer(self, table: ComparedTable, page: list[DifferingEntity]) -> set[EntityKey]:
        """Return which entities were changed on a side that is live since the comparison was read."""
        if self.read_at is None:
            return set()
        found: set[EntityKey] = set()
        for side, images in (
            (table.left, {entity.key: entity.left for entity in page}),
            (table.right, {entity.key: entity.right for entity in page}),
        ):
            if side is not None and side.past is None:
                found.update(_changed_since(Table.objects.get(pk=side.table_id), self.read_at, images))
        return found


def _changed_since(
    table: Table, moment: Moment, images: Mapping[EntityKey, Image | None]
) -> Collection[EntityKey]:
    """Return which entities were changed since a comparison was read.

    Without a history of the time since, Timestamps tell: also those of changes in the seconds before. Deletions go
    unnoticed then.
    """
    record = past.changes_since(table, moment)
    if record is not None and moment.snapshot is not None:
        return sql.run_in_lane(statements.changed_since(table.pk, record, moment.snapshot, list(images)))
    return {key for key, image in images.items() if image is not None and image.timestamp > moment.ticks}


def _is_changed_since(table: Table, moment: Moment) -> bool:
    """Return whether a table was created, or any entity of it changed, since a comparison was read.

    Without a history of the time since, Timestamps tell, as they do of single entities.
    """
    record = None if moment.snapshot is None else past.changes_since(table, moment)
    changed = statements.is_table_changed_since(table.pk, past.source_of(table), record, moment)
    return sql.run_limited(changed, comparing.PAGE_LIMIT)


def _count(image: NewImage, applied: AppliedTable) -> None:
    if image.values is None:
        applied.deleted += 1
    elif image.expected is None:
        applied.inserted += 1
    else:
        applied.changed += 1
