"""Undo in the console: permissions, whether to offer it, and the undo of console-only data."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.utils import timezone
from django.utils.module_loading import import_string

from console.models import User
from console.people import users
from storage.activity import activity
from storage.activity.undoing import CannotUndo, Reason
from storage.core import registry
from storage.core.verbs import Group
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Capability, Role, may
from storage.models import Activity
from storage.people import members
from storage.people.subject import PeopleVerb
from storage.queries.subject import QueryVerb
from storage.tables.subject import TableVerb
from storage.undo.undo import undo_all

Roles = Mapping[int, Role]  # the roles of one user, by the id of the account

# refused by a read-only account
_WRITES: Final = frozenset({"entity", "table", "index", "policies", "properties", "snapshot"})


def may_see(user: User, done: Activity, roles: Roles) -> bool:
    """Return whether a user may see an activity: members in their accounts, admins all."""
    return user.is_admin or done.account_id in roles


def may_undo(user: User, done: Activity, roles: Roles) -> bool:
    """Return whether a user has permission to undo; the undo may still fail."""
    if done.effective_verb is PeopleVerb.USER_CHANGE:
        return user.is_admin and done.before is not None
    role, needed = roles.get(done.account_id or 0), needed_capability(user, done)
    return role is not None and needed is not None and may(role, needed)


def needed_capability(user: User, done: Activity) -> Capability | None:
    """Return what a user must be able to do in the account to undo an activity; None if no role is enough."""
    verb = done.effective_verb
    group, undo = verb.act.group, registry.undo_of(verb)
    if undo is None or undo.capability is None:
        return None
    is_private = group is Group.QUERIES and not done.detail.get("query")
    if is_private or group is Group.COMMENTS:  # these concern their owner only, who may be a viewer
        return Capability.READ if _is_own(user, done) else None
    is_own_change = group is Group.ENTITIES and _is_own(user, done)
    return Capability.WRITE if is_own_change else undo.capability


def gives_power(done: Activity) -> bool:
    """Return whether the undo restores the role of an owner or admin, or enables a user."""
    verb = done.effective_verb
    if verb is PeopleVerb.USER_CHANGE:
        return any((done.before or {}).values())
    return verb in (PeopleVerb.MEMBER_SET, PeopleVerb.MEMBER_REMOVE) and done.before == Role.OWNER


def _is_own(user: User, done: Activity) -> bool:
    """Return whether the activity is by this user, not by an earlier one of the same name."""
    is_named = done.actor_kind == ActorKind.USER and done.actor == user.get_username()
    return is_named and user.created_at <= done.at


def is_open(done: Activity, read_only: Collection[int]) -> bool:
    """Return whether to offer an undo, without checking for later changes."""
    verb = done.effective_verb
    if registry.undo_of(verb) is None:
        return False
    if done.account_id in read_only and verb.subject in _WRITES:
        return False
    if verb is QueryVerb.CHANGE and not (done.before and done.after):
        return False  # only its owner chooses whether to share it
    if verb is TableVerb.DELETE:
        days = done.detail.get("kept_days")
        return isinstance(days, int) and timezone.now() < done.at + timedelta(days=days)
    return True


def undo_several(several: Sequence[Activity], by: Actor) -> list[Activity]:
    """Undo all activities or none; raises CannotUndo."""
    undo = registry.undo_of(several[0].effective_verb)
    if undo is None or not undo.is_alone or len(several) > 1:
        return undo_all(several, by)
    (done,) = several
    try:
        return [import_string(undo.do)(done, by=by)]
    except activity.UndoneAlready:
        raise CannotUndo(Reason.ALREADY_UNDONE, done) from None
    except activity.ChangedSince:
        raise CannotUndo(Reason.CHANGED_SINCE, done) from None
    except (members.LastOwner, users.LastAdmin):
        raise CannotUndo(Reason.LAST, done) from None
