"""Undo recorded changes of entities, by any actor: those of a caller, of a request, of a time, or single ones.

An undo writes what the entities were before, as an ordinary recorded write with a request id of its own: it is in the
history like any other, and can be undone. An entity that was changed again since keeps its newer work.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Table
from storage.operations.accounts import accounts
from storage.operations.activity import long_operations
from storage.operations.changes import changes, reverting
from storage.operations.changes.changes import ChangeFilter
from storage.operations.changes.outcomes import Outcome, TableOutcome
from storage.operations.relations import table_relations
from storage.operations.relations.record import recorded_changes
from storage.sql import changes as statements
from storage.sql import restoring
from storage.sql.relations import relation_name
from storage.sql.restoring import Images

PREVIEW_LIMIT: Final = timedelta(seconds=20)


@dataclass(slots=True)
class UndoPreview(Outcome):
    """What an undo would do. ``dropped``: changes in tables that no longer exist."""

    changes: int = 0
    dropped: int = 0


def preview(account: Account, wanted: ChangeFilter, *, sample: int = 5) -> UndoPreview:
    """Say what undoing the matching changes would do now; raises OperationTimedOut."""
    counts = changes.count_by_table(account, wanted)
    existing = _existing(account, counts)
    total = sum(counts.values())
    return UndoPreview(
        [_preview_table(account, table, wanted, sample) for table in existing],
        is_preview=True,
        changes=total,
        dropped=total - sum(counts[table.pk] for table in existing),
    )


def _preview_table(account: Account, table: Table, wanted: ChangeFilter, sample: int) -> TableOutcome:
    images = _images(account, table, wanted)
    if images is None:
        return TableOutcome(table.name, table)
    counted, samples = changes.run_limited(
        restoring.preview(relation_name(table.pk), images, sample), limit=PREVIEW_LIMIT
    )
    outcome = TableOutcome(table.name, table, samples=samples)
    outcome.add(counted)
    return outcome


def undo(account: Account, wanted: ChangeFilter, *, by: Actor, undoes: Activity | None = None) -> Outcome:
    """Undo the matching changes of all tables, as far as there is no newer work; recorded as one activity.

    Tables are done one after another, each in chunks: a failure leaves done, and recorded, what was written before it,
    as does the death of the process.
    Raises InsufficientAccountPermissions, OperationTimedOut and ServerBusy.
    """
    accounts.check_writable(account)
    by = replace(by, request_id=str(uuid.uuid4()))
    undone, began = Outcome(), timezone.now()

    def save() -> None:
        operation.save(_detail(wanted, undone, began), undone.only_table)

    with long_operations.running(Verb.ENTITY_REVERT, account, by=by, undoes=undoes) as operation:
        for table in _existing(account, changes.count_by_table(account, wanted)):
            images = _images(account, table, wanted)
            if images is not None:
                outcome = TableOutcome(table.name, table)
                undone.tables.append(outcome)
                reverting.apply_images(table, images, by=by, into=outcome, save=save)
        undone.activity = operation.finish(_detail(wanted, undone, began), undone.only_table)
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


def _detail(wanted: ChangeFilter, undone: Outcome, began: datetime) -> dict[str, object]:
    """What the activity log remembers; nothing if no entity was written."""
    if not undone.written:
        return {}
    return {**undone.detail(), "began": began.isoformat(), "selection": _describe(wanted)}


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
