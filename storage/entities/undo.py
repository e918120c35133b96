"""Undo of changes to entities."""

from collections.abc import Sequence

from django.db import transaction

from storage.activity import activity
from storage.activity.undoing import CannotUndo, Reason, check_first, find_table
from storage.domain.access.actor import Actor
from storage.domain.entities.changes import Change, Delete, Insert, Update
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    ResourceNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.etag import Precondition
from storage.entities import edits
from storage.entities.subject import EntityVerb
from storage.history import changes, key_changes
from storage.models import Activity, Table
from storage.relations import history


def undo_entities(done: Activity, by: Actor) -> Activity:
    table = find_table(done)
    check_first(done)
    changed = [*done.unrecorded] or changes.made_by(done)
    if len(changed) < activity.count_changes(done) or not changed:
        raise CannotUndo(Reason.NOT_KEPT if history.is_recorded(table.account) else Reason.NO_HISTORY, done)
    changed.reverse()  # after a change of key, the entity that exists again is the first one of the activity
    verb = EntityVerb.REKEY if done.effective_verb is EntityVerb.REKEY else None
    try:
        with transaction.atomic():
            undone = edits.apply(
                table, [_inverse(it) for it in changed], by=by, verb=verb, undoes=done
            ).activity
            if verb is EntityVerb.REKEY:
                _move_comments(table, changed)
            return undone
    except ChangeSetError as failure:
        raise _entity_refused(done, changed[failure.index].key, failure) from None


def _move_comments(table: Table, changed: Sequence[RecordedChange]) -> None:
    """Move comments back to an entity's former key."""
    current = [it.key for it in changed if it.op is Op.INSERT]
    former = [it.key for it in changed if it.op is Op.DELETE]
    if len(current) == len(former) == 1:
        key_changes.move(table, [(current[0], former[0])])


def _inverse(change: RecordedChange) -> Change:
    condition = Precondition(change.ticks)
    if change.before is None:
        return Delete(change.key, condition)
    before = read_stored(change.before)
    return Insert(before) if change.op is Op.DELETE else Update(before, condition, merge=False)


def _entity_refused(done: Activity, key: EntityKey, failure: ChangeSetError) -> Exception:
    match failure.error:
        case EntityAlreadyExists() | UpdateConditionNotSatisfied():
            return CannotUndo(Reason.CHANGED_SINCE, done, key)
        case ResourceNotFound():
            return CannotUndo(Reason.GONE, done, key)
    return failure.error
