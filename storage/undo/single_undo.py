"""Undo of one change in a table without images, by the function of its relation on the entity's node.

Several changes cannot be undone together there, because they have no common order.
"""

from dataclasses import dataclass
from typing import Final

from storage.domain.access.actor import Actor
from storage.domain.entities.changes import Change, Delete, Insert, Update
from storage.domain.entities.entity import StoredEntity, read_stored
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    ResourceNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.etag import Precondition
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.history import changes, versions
from storage.history.changes import ChangeFilter
from storage.metrics import table_use
from storage.models import Account, Table
from storage.relations import history
from storage.sql import batch
from storage.sql.django import run
from storage.sql.relations import relation_of
from storage.sql.restoring import Chunk
from storage.undo.outcomes import TableOutcome

_REFUSED: Final = {
    EntityAlreadyExists: Skip.EXISTS,
    ResourceNotFound: Skip.GONE,
    UpdateConditionNotSatisfied: Skip.CHANGED,
}


@dataclass(frozen=True, slots=True)
class _Undo:
    """Effect of undoing a change on its entity."""

    change: RecordedChange
    effect: Effect
    now: StoredEntity | None  # the entity before the undo
    reason: Skip | None = None

    def inverse(self, kind: AccountKind) -> Change:
        condition = Precondition(self.change.ticks)
        if self.change.before is None:
            return Delete(self.change.key, condition)
        before = read_stored(self.change.before)
        before.kind = kind
        return Insert(before) if self.change.op is Op.DELETE else Update(before, condition, merge=False)


def preview(account: Account, table: Table, criteria: ChangeFilter) -> TableOutcome:
    """Preview the undo of the only matching change of a table."""
    outcome = TableOutcome(table.name, table)
    undo = _find(account, table, criteria)
    if undo is not None:
        outcome.add(_chunk(undo.effect))
        if undo.effect is not Effect.UNCHANGED:
            outcome.samples = [
                Sample(undo.effect, undo.change.key, undo.now, undo.change.before, undo.reason)
            ]
    return outcome


def apply(
    account: Account, table: Table, criteria: ChangeFilter, outcome: TableOutcome, *, by: Actor
) -> None:
    """Undo the only matching change of a table, unless its entity changed again; in the caller's transaction."""
    undo = _find(account, table, criteria)
    outcome.table = table
    if undo is None:
        return
    effect, reason = undo.effect, undo.reason
    if effect not in (Effect.SKIPPED, Effect.UNCHANGED):
        change = undo.inverse(AccountKind(account.kind))
        try:
            run(batch.apply(relation_of(table), [change], history.recorder(account, by)))
        except ChangeSetError as failure:  # another request was faster
            reason = _REFUSED.get(type(failure.error))
            if reason is None:
                raise failure.error from None
            effect = Effect.SKIPPED
        else:
            table_use.record_write(table)
    outcome.add(_chunk(effect))
    if effect is Effect.SKIPPED and reason is not None:
        outcome.examples.append(Skipped(undo.change.key, reason))


def _find(account: Account, table: Table, criteria: ChangeFilter) -> _Undo | None:
    recorded = changes.recorded_apart(account, table, criteria, 2)
    if len(recorded) != 1:
        return None
    [change] = recorded
    now = next(iter(entities.get_many(table, [change.key])), None)
    newest = versions.newest(table, change.key)
    if newest is None or (newest.ticks, newest.op) != (change.ticks, change.op):
        return _Undo(change, Effect.SKIPPED, now, Skip.GONE if now is None else Skip.CHANGED)
    if change.op is Op.DELETE:
        return _Undo(change, Effect.INSERTED, now)
    if change.before is None:
        return _Undo(change, Effect.DELETED, now)
    is_same = now is not None and now.content == change.before.content
    return _Undo(change, Effect.UNCHANGED if is_same else Effect.CHANGED, now)


def _chunk(effect: Effect) -> Chunk:
    return Chunk(**{it.value: int(it is effect) for it in Effect}, examples=[])
