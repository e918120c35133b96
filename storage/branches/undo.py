"""Undo of the restoration of a snapshot."""

from typing import Any

from storage.activity.undoing import CannotUndo, Reason, check_first, find_account
from storage.branches import snapshot_restores
from storage.jobs.kinds import JobRequest
from storage.models import Activity
from storage.snapshots.snapshots import SnapshotNotFound


def request_restore(done: Activity) -> JobRequest[Any, Any]:
    check_first(done)
    try:
        return snapshot_restores.request_undo(find_account(done), done)
    except SnapshotNotFound:
        raise CannotUndo(Reason.TOO_OLD, done) from None
