"""Undo recorded activities whose result was not changed since."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils.module_loading import import_string

from storage.branches import snapshot_restores
from storage.domain.access.actor import Actor
from storage.domain.entities.changes import Change, Delete, Insert, Update
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    InsufficientAccountPermissions,
    ResourceNotFound,
    TableAlreadyExists,
    UpdateConditionNotSatisfied,
)
from storage.domain.service.indexes import IndexOrigin
from storage.domain.service.recorded import Op, RecordedChange
from storage.domain.values.etag import Precondition
from storage.domain.values.stored import read_member
from storage.entities.subject import EntityVerb
from storage.models import Account, Activity, Job, Table
from storage.operations.access import policies, sas
from storage.operations.access.sas import SasDescription
from storage.operations.accounts import account_settings, service_properties
from storage.operations.accounts.refusals import AccountError
from storage.operations.activity import activity
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.changes import changes, key_changes, versions
from storage.operations.entities import edits
from storage.operations.jobs import running
from storage.operations.jobs.kinds import JobRequest
from storage.operations.relations import history
from storage.operations.relations.record import kept_history
from storage.operations.tables import indexes, tables
from storage.snapshots.snapshots import SnapshotNotFound
from storage.sql.background import has_rows
from storage.tables.subject import TableVerb
from storage.undo import data_undo


class Reason(StrEnum):
    """Why an activity cannot be undone."""

    NEVER = "never"  # this kind of activity is final
    ALREADY_UNDONE = "already undone"
    CHANGED_SINCE = "changed since"
    GONE = "gone"  # its target was deleted
    NAME_TAKEN = "name taken"
    TOO_OLD = "too old"
    NOT_KEPT = "not kept"  # by the history
    NO_HISTORY = "no history"  # the account keeps none
    READ_ONLY = "read-only"
    NOT_YOURS = "not yours"
    LAST = "last"  # an account would have no owner, or the server no admin


class CannotUndo(Exception):
    """``key``: the entity that prevents the undo."""

    def __init__(self, reason: Reason, done: Activity, key: EntityKey | None = None) -> None:
        self.reason = reason
        self.done = done
        self.key = key
        super().__init__(reason)


def is_undoable(done: Activity) -> bool:
    """Return whether this kind of activity can be undone; it may still fail."""
    undo = done.effective_verb.act.undo
    return undo is not None and not undo.is_alone


def superseded(several: Sequence[Activity]) -> set[int]:
    """Return the ids of those whose undo would fail: their table was deleted or restored, or an entity changed again.

    The activities come from ``activity.page``. Of large changes, and of those that the history does not have, it is
    found by trying only.
    """
    ids = {
        done.pk
        for done in several
        if done.table_id and getattr(done, "has_table", True) == (done.effective_verb is TableVerb.DELETE)
    }
    edited = [done for done in several if done.entities and done.account_id and done.pk not in ids]
    for account_id in {done.account_id for done in edited if done.account_id}:
        ids |= _changed_again(account_id, [done for done in edited if done.account_id == account_id])
    return ids


def _changed_again(account_id: int, edited: Sequence[Activity]) -> set[int]:
    since = kept_history(account_id).since
    kept = [done for done in edited if done.recorded is not None and since is not None and since <= done.at]
    small = [done for done in kept if done.recorded and done.entities <= activity.KEYS]
    keys = {done.pk: [(done.table_id or 0, key) for key in activity.keys_of(done)] for done in small}
    latest = versions.newest_of(account_id, {key for several in keys.values() for key in several})
    again = {
        done.pk for done in small if not all(activity.made(done, latest.get(it)) for it in keys[done.pk])
    }
    return again | {done.pk for done in edited if done not in kept}


def undo(done: Activity, by: Actor) -> Activity:
    """Undo an activity as a whole; the returned activity can be undone too. Raises CannotUndo."""
    return undo_all([done], by)[0]


def undo_all(several: Sequence[Activity], by: Actor) -> list[Activity]:
    """Undo activities in one transaction, latest first; raises CannotUndo for the first that fails."""
    with ExitStack() as stack:
        if len(several) > 1:
            # invalidating_catalogs cannot begin inside another transaction
            invalidates = any(_changes_catalog(done) for done in several)
            stack.enter_context(invalidating_catalogs() if invalidates else transaction.atomic())
        return [_undo(done, by) for done in sorted(several, key=lambda done: done.pk, reverse=True)]


def _changes_catalog(done: Activity) -> bool:
    undo = done.effective_verb.act.undo
    return undo is not None and undo.changes_catalog


def request(done: Activity) -> JobRequest[Any, Any] | None:
    """Return the job that undoes an activity of many changes, None for any other; raises CannotUndo."""
    undo = done.effective_verb.act.undo
    if undo is None or not undo.request:
        return None
    with _explaining_refusals(done):
        requested: JobRequest[Any, Any] = import_string(undo.request)(done)
        return requested


def undone_by(job: Job, done: Activity) -> Activity:
    """Return the activity of a job that has undone another; raises CannotUndo if it could not."""
    if job.activity is None:  # everything has newer work
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    return job.activity


def _undo(done: Activity, by: Actor) -> Activity:
    undo = done.effective_verb.act.undo
    if undo is None or undo.is_alone:
        raise CannotUndo(Reason.NEVER, done)
    requested = request(done)
    if requested is not None:  # as far as there is no newer work, in several transactions
        with _explaining_refusals(done):
            return undone_by(running.complete(requested, by=by), done)
    with _explaining_refusals(done):
        undone: Activity | None = import_string(undo.do)(done, by)
    if undone is None:  # another activity had the same effect
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    return undone


@contextmanager
def _explaining_refusals(done: Activity) -> Iterator[None]:
    try:
        yield
    except activity.UndoneAlready:
        raise CannotUndo(Reason.ALREADY_UNDONE, done) from None
    except activity.ChangedSince:
        raise CannotUndo(Reason.CHANGED_SINCE, done) from None
    except (ResourceNotFound, AccountError):
        raise CannotUndo(Reason.GONE, done) from None
    except InsufficientAccountPermissions:
        raise CannotUndo(Reason.READ_ONLY, done) from None


# entities


def undo_entities(done: Activity, by: Actor) -> Activity:
    table = _table(done)
    _check_first(done)
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
    """Let comments follow an entity back to its former key."""
    current = [it.key for it in changed if it.op is Op.INSERT]
    former = [it.key for it in changed if it.op is Op.DELETE]
    if len(current) == len(former) == 1:
        key_changes.move(table, [(current[0], former[0])])


def _table(done: Activity) -> Table:
    table = Table.objects.filter(pk=done.table_id or 0, deleted_at=None).select_related("account").first()
    if table is None:
        raise CannotUndo(Reason.GONE, done)
    return table


def _check_first(done: Activity) -> None:
    """Raise UndoneAlready early: the undo has changed its target too, but this reason is clearer."""
    if activity.is_undone(done):
        raise activity.UndoneAlready


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


def request_revert(done: Activity) -> JobRequest[Any, Any]:
    _check_first(done)
    return data_undo.request(_account(done), changes.selection_of(done), undoes=done)


def request_restore(done: Activity) -> JobRequest[Any, Any]:
    _check_first(done)
    try:
        return snapshot_restores.request_undo(_account(done), done)
    except SnapshotNotFound:
        raise CannotUndo(Reason.TOO_OLD, done) from None


# tables and settings


def undo_creation(done: Activity, by: Actor) -> Activity:
    _check_first(done)
    table = _table(done)
    # a restored table had its entities before, and keeps them
    if done.effective_verb is TableVerb.CREATE and has_rows(table):
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    return tables.delete(table.account, table.name, by=by, keep=tables.DELETED_TABLE_RETENTION, undoes=done)


def undo_deletion(done: Activity, by: Actor) -> Activity:
    assert done.table_id is not None
    _check_first(done)
    try:
        return tables.restore(Table.objects.get(pk=done.table_id), by=by, undoes=done)
    except TableAlreadyExists:
        raise CannotUndo(Reason.NAME_TAKEN, done) from None
    except (Table.DoesNotExist, ResourceNotFound):
        # it may have been restored, so that it exists
        present = Table.objects.filter(pk=done.table_id, deleted_at=None).exists()
        raise CannotUndo(Reason.CHANGED_SINCE if present else Reason.TOO_OLD, done) from None


def undo_table_change(done: Activity, by: Actor) -> Activity | None:
    table = _table(done)
    _check_first(done)
    return tables.change(table, by=by, **(done.before or {}), undoes=done)


def undo_new_index(done: Activity, by: Actor) -> Activity:
    table = _table(done)
    _check_first(done)
    return indexes.drop(table, done.detail["property"], by=by, undoes=done)


def undo_dropped_index(done: Activity, by: Actor) -> Activity:
    table = _table(done)
    _check_first(done)
    origin = read_member(IndexOrigin, done.detail["origin"])
    return indexes.add(table, done.detail["property"], by=by, origin=origin, undoes=done)


def undo_kept_index(done: Activity, by: Actor) -> Activity:
    table = _table(done)
    _check_first(done)
    name = done.detail["property"]
    if done.detail["origin"] == IndexOrigin.ADAPTIVE:  # it was undone, and is again
        return indexes.add(table, name, by=by, undoes=done)
    return indexes.release(table, name, by=by, undoes=done)


def undo_policies(done: Activity, by: Actor) -> Activity | None:
    table = _table(done)
    _check_first(done)
    return policies.replace(table, policies.read(done.before or []), by=by, undoes=done)


def undo_properties(done: Activity, by: Actor) -> Activity | None:
    account = _account(done)
    _check_first(done)
    before = service_properties.read(done.before)
    return service_properties.replace(account, lambda _: before, by=by, undoes=done)


def undo_account_change(done: Activity, by: Actor) -> Activity | None:
    account = _account(done)
    _check_first(done)
    before = account_settings.from_json(done.before or {})
    return account_settings.change(account, by=by, undoes=done, **before)


def _account(done: Activity) -> Account:
    account = Account.objects.filter(pk=done.account_id or 0).first()
    if account is None:
        raise CannotUndo(Reason.GONE, done)
    return account


def undo_description(done: Activity, by: Actor) -> Activity | None:
    _check_first(done)
    before = None if done.before is None else SasDescription(**done.before)
    return sas.describe(_account(done), done.detail["fingerprint"], before, by=by, undoes=done)


def undo_block(done: Activity, by: Actor) -> Activity | None:
    _check_first(done)
    blocked = bool((done.before or {}).get("blocked"))
    return sas.set_blocked(_account(done), done.detail["fingerprint"], blocked=blocked, by=by, undoes=done)
