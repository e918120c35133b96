"""Common parts of undo functions: see Undo in storage.core.verbs."""

from enum import StrEnum

from storage.activity import activity
from storage.domain.entities.entity import EntityKey
from storage.models import Account, Activity, Table


class Reason(StrEnum):
    """Reason why an activity cannot be undone."""

    NEVER = "never"  # this kind of activity is final
    ALREADY_UNDONE = "already undone"
    CHANGED_SINCE = "changed since"
    GONE = "gone"  # its target was deleted
    NAME_TAKEN = "name taken"
    TOO_OLD = "too old"
    NOT_KEPT = "not kept"  # by the history
    NO_HISTORY = "no history"  # the account keeps none
    READ_ONLY = "read-only"
    LAST = "last"  # an account would have no owner, or the server no admin


class CannotUndo(Exception):
    """The activity cannot be undone; ``key`` is the entity that prevents it, if any."""

    def __init__(self, reason: Reason, done: Activity, key: EntityKey | None = None) -> None:
        self.reason = reason
        self.done = done
        self.key = key
        super().__init__(reason)


def find_table(done: Activity) -> Table:
    """Return the table of an activity; raises CannotUndo."""
    table = Table.objects.filter(pk=done.table_id or 0, deleted_at=None).select_related("account").first()
    if table is None:
        raise CannotUndo(Reason.GONE, done)
    return table


def find_account(done: Activity) -> Account:
    """Return the account of an activity; raises CannotUndo."""
    account = Account.objects.filter(pk=done.account_id or 0).first()
    if account is None:
        raise CannotUndo(Reason.GONE, done)
    return account


def check_first(done: Activity) -> None:
    """Raise UndoneAlready before the target is checked, as that reason is clearer than ChangedSince."""
    if activity.is_undone(done):
        raise activity.UndoneAlready
