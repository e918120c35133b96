"""Undo recorded changes of entities, by any actor: those of a caller, of a request, of a time, or single ones.

An undo writes what the entities were before, as an ordinary recorded write with a request id of its own: it is in the
history like any other, and can be undone. An entity that was changed again since keeps its newer work.
"""

import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.entities.restoring import Effect, Sample
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Table
from storage.operations.accounts import accounts
from storage.operations.activity import long_operations
from storage.operations.changes import changes, reverting
from storage.operations.changes.changes import ChangeFilter
from storage.operations.changes.reverting import Reverted
from storage.operations.relations import table_relations
from storage.operations.relations.record import recorded_changes
from storage.sql import changes as statements
from storage.sql import restoring
from storage.sql.relations import relation_name
from storage.sql.restoring import Images

PREVIEW_LIMIT: Final = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class TablePreview:
    """What an undo would do in a table."""

    table: Table
    numbers: dict[Effect, int]
    samples: list[Sample]


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """What an undo would do. ``dropped``: changes in tables that no longer exist."""

    changes: int
    tables: list[TablePreview]
    dropped: int

    def number(self, effect: Effect) -> int:
        return sum(it.numbers[effect] for it in self.tables)

    @property
    def written(self) -> int:
        return sum(self.number(effect) for effect in (Effect.CHANGED, Effect.INSERTED, Effect.DELETED))


@dataclass(slots=True)
class Undone:
    """What an undo did in each table; ``activity`` is None if there was nothing to write."""

    tables: list[tuple[Table, Reverted]] = field(default_factory=list)
    activity: Activity | None = None

    @property
    def total(self) -> Reverted:
        total = Reverted()
        for _, it in self.tables:
            total.inserted += it.inserted
            total.changed += it.changed
            total.deleted += it.deleted
            total.unchanged += it.unchanged
            total.skipped += it.skipped
        return total

    @property
    def written(self) -> list[Table]:
        """The tables in which entities were written."""
        return [table for table, it in self.tables if it.written]

    @property
    def only(self) -> Table | None:
        """The table if entities were written in one."""
        return self.written[0] if len(self.written) == 1 else None


def preview(account: Account, wanted: ChangeFilter, *, sample: int = 5) -> UndoPreview:
    """Say what undoing the matching changes would do now; raises OperationTimedOut."""
    counts = changes.count_by_table(account, wanted)
    existing = _existing(account, counts)
    previews = [_preview_table(account, table, wanted, sample) for table in existing]
    dropped = sum(counts.values()) - sum(counts[table.pk] for table in existing)
    return UndoPreview(sum(counts.values()), previews, dropped)


def _preview_table(account: Account, table: Table, wanted: ChangeFilter, sample: int) -> TablePreview:
    images = _images(account, table, wanted)
    if images is None:
        return TablePreview(table, dict.fromkeys(Effect, 0), [])
    found = changes.run_limited(
        restoring.preview(relation_name(table.pk), images, sample), limit=PREVIEW_LIMIT
    )
    return TablePreview(table, found.numbers, found.samples)


def undo(account: Account, wanted: ChangeFilter, *, by: Actor, undoes: Activity | None = None) -> Undone:
    """Undo the matching changes of all tables, as far as there is no newer work; recorded as one activity.

    Tables are done one after another, each in chunks: a failure leaves done, and recorded, what was written before it,
    as does the death of the process.
    Raises InsufficientAccountPermissions, OperationTimedOut and ServerBusy.
    """
    accounts.check_writable(account)
    by = replace(by, request_id=str(uuid.uuid4()))
    undone, began = Undone(), timezone.now()

    def save() -> None:
        operation.save(_detail(wanted, undone, began), undone.only)

    with long_operations.running(Verb.ENTITY_REVERT, account, by=by, undoes=undoes) as operation:
        for table in _existing(account, changes.count_by_table(account, wanted)):
            images = _images(account, table, wanted)
            if images is not None:
                reverted = Reverted()
                undone.tables.append((table, reverted))
                reverting.apply_images(table, images, by=by, into=reverted, save=save)
        undone.activity = operation.finish(_detail(wanted, undone, began), undone.only)
    return undone


def _existing(account: Account, counts: dict[int, int]) -> list[Table]:
    tables = Table.objects.filter(pk__in=counts, account=account, deleted_at=None).select_related("account")
    found = list(tables.order_by("pk"))
    for table in found:
        table_relations.refuse_distributed(table)
    return found


def _images(account: Account, table: Table, wanted: ChangeFilter) -> Images | None:
    selection = changes.select(account, replace(wanted, table="", table_id=table.pk))
    record = recorded_changes(account.pk, wanted.since)
    return None if selection is None or not record else statements.undoing(table.pk, record, selection)


def _detail(wanted: ChangeFilter, undone: Undone, began: datetime) -> dict[str, object]:
    """What the activity log remembers; nothing if no entity was written."""
    total = undone.total
    if not total.written:
        return {}
    return {
        "changed": total.changed,
        "inserted": total.inserted,
        "deleted": total.deleted,
        "skipped": total.skipped,
        "rows": total.written,
        "tables": len(undone.written),
        "began": began.isoformat(),
        "selection": _describe(wanted),
    }


def _describe(wanted: ChangeFilter) -> dict[str, object]:
    """What was selected, as the activity remembers it."""
    described: dict[str, object] = {
        "from": wanted.since and wanted.since.isoformat(),
        "to": wanted.until and wanted.until.isoformat(),
        "who": wanted.actor or wanted.caller or ", ".join(name for _, name in wanted.actors),
        "request": ", ".join(wanted.requests[:10]),
        "key": wanted.key,
    }
    return {name: value for name, value in described.items() if value}
