"""Undo in the console: who may undo an activity, whether to offer it, and how to undo what only the console stores."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.utils import timezone

from console.activity.presentation import Group, presentation_of
from console.models import User
from console.people import users
from console.queries import saved_changes
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Capability, Role, may
from storage.domain.service.activity import Verb
from storage.models import Activity
from storage.operations.access import members
from storage.operations.activity import activity
from storage.operations.undo.undo import CannotUndo, Reason, is_undoable, undo_all

Roles = Mapping[int, Role]  # of one user, by the id of the account

# what storage.operations does not undo, one at a time
CONSOLE_UNDO: Final[Mapping[Verb, Callable[..., Activity]]] = {
    Verb.MEMBER_SET: members.undo,
    Verb.MEMBER_REMOVE: members.undo,
    Verb.USER_CHANGE: users.undo,
    Verb.QUERY_CREATE: saved_changes.undo,
    Verb.QUERY_CHANGE: saved_changes.undo,
    Verb.QUERY_DELETE: saved_changes.undo,
}
# refused by a read-only account
_WRITES: Final = frozenset({"entity", "table", "index", "policies", "properties", "snapshot"})


def may_see(user: User, done: Activity, roles: Roles) -> bool:
    """Members see the activities of their accounts, admins see all."""
    return user.is_admin or done.account_id in roles


def may_undo(user: User, done: Activity, roles: Roles) -> bool:
    """Check the user's permission, not whether an undo would succeed."""
    verb = done.effective_verb
    if verb is Verb.USER_CHANGE:
        return user.is_admin and done.before is not None
    shown, role = presentation_of(verb), roles.get(done.account_id or 0)
    if role is None or verb.undo_capability is None:
        return False
    if shown.group is Group.QUERIES and not done.detail.get("query"):
        return _is_own(user, done)  # a private query concerns its owner only, who may be a viewer
    if shown.group is Group.COMMENTS:
        return _is_own(user, done)
    is_own_change = shown.group is Group.ENTITIES and _is_own(user, done)
    return may(role, Capability.WRITE if is_own_change else verb.undo_capability)


def gives_power(done: Activity) -> bool:
    """Return whether undoing it makes a user an owner or an admin again, or enables one."""
    verb = done.effective_verb
    if verb is Verb.USER_CHANGE:
        return any((done.before or {}).values())
    return verb in (Verb.MEMBER_SET, Verb.MEMBER_REMOVE) and done.before == Role.OWNER


def _is_own(user: User, done: Activity) -> bool:
    """Return whether a user has done it, and not another one who had the name before."""
    is_named = done.actor_kind == ActorKind.USER and done.actor == user.get_username()
    return is_named and user.created_at <= done.at


def is_open(done: Activity, read_only: Collection[int]) -> bool:
    """Whether to offer an undo; later changes are found only when it is tried."""
    verb = done.effective_verb
    if not (is_undoable(done) or verb in CONSOLE_UNDO):
        return False
    if done.account_id in read_only and verb.subject in _WRITES:
        return False
    if verb is Verb.QUERY_CHANGE and not (done.before and done.after):
        return False  # only its owner chooses whether to share it
    if verb is Verb.TABLE_DELETE:
        days = done.detail.get("kept_days")
        return isinstance(days, int) and timezone.now() < done.at + timedelta(days=days)
    return True


def undo_several(several: Sequence[Activity], by: Actor) -> list[Activity]:
    """Undo all of them or none; raises CannotUndo."""
    undo = CONSOLE_UNDO.get(several[0].effective_verb)
    if undo is None or len(several) > 1:
        return undo_all(several, by)
    (done,) = several
    try:
        return [undo(done, by=by)]
    except activity.UndoneAlready:
        raise CannotUndo(Reason.ALREADY_UNDONE, done) from None
    except activity.ChangedSince:
        raise CannotUndo(Reason.CHANGED_SINCE, done) from None
    except (members.LastOwner, users.LastAdmin):
        raise CannotUndo(Reason.LAST, done) from None
