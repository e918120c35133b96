"""Undo of changes to tables and their indexes."""

from storage.activity.undoing import CannotUndo, Reason, check_first, find_table
from storage.domain.access.actor import Actor
from storage.domain.errors import ResourceNotFound, TableAlreadyExists
from storage.domain.values.stored import read_member
from storage.models import Activity, Table
from storage.sql.background import has_rows
from storage.tables import indexes, renaming, table_copies, tables
from storage.tables.index_rules import IndexOrigin
from storage.tables.subject import TableVerb


def undo_creation(done: Activity, by: Actor) -> Activity:
    check_first(done)
    table = find_table(done)
    # a restored table had its entities before, and keeps them
    if done.effective_verb is TableVerb.CREATE and has_rows(table):
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    if done.effective_verb is TableVerb.COPY and table_copies.has_changed(table, done):
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    return tables.delete(table.account, table.name, by=by, keep=tables.DELETED_TABLE_RETENTION, undoes=done)


def undo_deletion(done: Activity, by: Actor) -> Activity:
    assert done.table_id is not None
    check_first(done)
    try:
        return tables.restore(Table.objects.get(pk=done.table_id), by=by, undoes=done)
    except TableAlreadyExists:
        raise CannotUndo(Reason.NAME_TAKEN, done) from None
    except (Table.DoesNotExist, ResourceNotFound):
        # it may have been restored, so that it exists
        present = Table.objects.filter(pk=done.table_id, deleted_at=None).exists()
        raise CannotUndo(Reason.CHANGED_SINCE if present else Reason.TOO_OLD, done) from None


def undo_renaming(done: Activity, by: Actor) -> Activity:
    check_first(done)
    table = find_table(done)
    try:
        return renaming.rename(table, done.detail["from"], by=by, undoes=done)
    except TableAlreadyExists:
        raise CannotUndo(Reason.NAME_TAKEN, done) from None


def undo_table_change(done: Activity, by: Actor) -> Activity | None:
    table = find_table(done)
    check_first(done)
    return tables.change(table, by=by, **(done.before or {}), undoes=done)


def undo_new_index(done: Activity, by: Actor) -> Activity:
    table = find_table(done)
    check_first(done)
    return indexes.drop(table, done.detail["property"], by=by, undoes=done)


def undo_dropped_index(done: Activity, by: Actor) -> Activity:
    table = find_table(done)
    check_first(done)
    origin = read_member(IndexOrigin, done.detail["origin"])
    return indexes.add(table, done.detail["property"], by=by, origin=origin, undoes=done)


def undo_kept_index(done: Activity, by: Actor) -> Activity:
    table = find_table(done)
    check_first(done)
    name = done.detail["property"]
    if done.detail["origin"] == IndexOrigin.ADAPTIVE:  # it was undone, and is again
        return indexes.add(table, name, by=by, undoes=done)
    return indexes.release(table, name, by=by, undoes=done)
