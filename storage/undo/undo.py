"""Undo of recorded activities whose result is unchanged."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import transaction
from django.utils.module_loading import import_string

from storage.accounts.refusals import AccountError
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.activity.undoing import CannotUndo, Reason
from storage.core import registry
from storage.domain.access.actor import Actor
from storage.domain.errors import (
    InsufficientAccountPermissions,
    ResourceNotFound,
)
from storage.history import versions
from storage.jobs import running
from storage.jobs.kinds import JobRequest
from storage.models import Activity, Job
from storage.relations.record import kept_history
from storage.tables.subject import TableVerb


def is_undoable(done: Activity) -> bool:
    """Return whether this kind of activity can be undone, though the undo may still fail."""
    undo = registry.undo_of(done.effective_verb)
    return undo is not None and not undo.is_alone


def superseded(several: Sequence[Activity]) -> set[int]:
    """Return the ids of activities whose undo would fail: the table was deleted or restored, or an entity changed.

    The activities come from ``activity.page``. Large changes, and changes missing from the history, are not
    checked.
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
    """Undo an activity completely; the returned activity can be undone, too. Raises CannotUndo."""
    return undo_all([done], by)[0]


def undo_all(several: Sequence[Activity], by: Actor) -> list[Activity]:
    """Undo activities in one transaction, latest first; raises CannotUndo for the first failure."""
    with ExitStack() as stack:
        if len(several) > 1:
            # invalidating_catalogs cannot begin inside another transaction
            invalidates = any(_changes_catalog(done) for done in several)
            stack.enter_context(invalidating_catalogs() if invalidates else transaction.atomic())
        return [_undo(done, by) for done in sorted(several, key=lambda done: done.pk, reverse=True)]


def _changes_catalog(done: Activity) -> bool:
    undo = registry.undo_of(done.effective_verb)
    return undo is not None and undo.changes_catalog


def request(done: Activity) -> JobRequest[Any, Any] | None:
    """Return the job that undoes an activity with many changes; None if no job is needed. Raises CannotUndo."""
    undo = registry.undo_of(done.effective_verb)
    if undo is None or not undo.request:
        return None
    with _explaining_refusals(done):
        requested: JobRequest[Any, Any] = import_string(undo.request)(done)
        return requested


def undone_by(job: Job, done: Activity) -> Activity:
    """Return the activity with which a job has undone another; raises CannotUndo if nothing could be undone."""
    if job.activity is None:  # everything has newer work
        raise CannotUndo(Reason.CHANGED_SINCE, done)
    return job.activity


def _undo(done: Activity, by: Actor) -> Activity:
    undo = registry.undo_of(done.effective_verb)
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
