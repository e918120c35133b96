"""The way back from what the record of activity says: who may take it, and where it leads."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.utils import timezone

from console.models import User
from console.people import users
from console.queries import saved as saved_queries
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Capability, Role, may
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Membership
from storage.operations import activity, members
from storage.operations.undo import CannotUndo, Reason, effect, is_undoable, undo_all

Roles = Mapping[int, Role]  # of one user, by the number of the account

# what it takes, whoever did it; of entities, everybody who may write undoes their own changes
_NEEDS: Final[Mapping[Verb, Capability]] = {
    Verb.ENTITY_INSERT: Capability.MANAGE_TABLES,
    Verb.ENTITY_CHANGE: Capability.MANAGE_TABLES,
    Verb.ENTITY_DELETE: Capability.MANAGE_TABLES,
    Verb.ENTITY_REKEY: Capability.MANAGE_TABLES,
    Verb.TABLE_CREATE: Capability.MANAGE_TABLES,
    Verb.TABLE_CHANGE: Capability.MANAGE_TABLES,
    Verb.TABLE_DELETE: Capability.MANAGE_TABLES,
    Verb.TABLE_RESTORE: Capability.MANAGE_TABLES,
    Verb.POLICIES_SET: Capability.MANAGE_ACCESS,
    Verb.SAS_CHANGE: Capability.MANAGE_ACCESS,
    Verb.SAS_BLOCK: Capability.MANAGE_ACCESS,
    Verb.SAS_UNBLOCK: Capability.MANAGE_ACCESS,
    Verb.PROPERTIES_SET: Capability.MANAGE_ACCESS,
    Verb.ACCOUNT_CHANGE: Capability.OWN,
    Verb.MEMBER_SET: Capability.OWN,
    Verb.MEMBER_REMOVE: Capability.OWN,
    Verb.QUERY_CREATE: Capability.WRITE,
    Verb.QUERY_CHANGE: Capability.WRITE,
    Verb.QUERY_DELETE: Capability.WRITE,
}
# what only the console knows; one at a time
_WAYS: Final[Mapping[Verb, Callable[[Activity, Actor], Activity]]] = {
    Verb.MEMBER_SET: lambda done, by: members.undo(done, by=by),
    Verb.MEMBER_REMOVE: lambda done, by: members.undo(done, by=by),
    Verb.USER_CHANGE: lambda done, by: users.undo(done, by=by),
    Verb.QUERY_CREATE: lambda done, by: saved_queries.undo(done, by=by),
    Verb.QUERY_CHANGE: lambda done, by: saved_queries.undo(done, by=by),
    Verb.QUERY_DELETE: lambda done, by: saved_queries.undo(done, by=by),
}


# what a read-only account refuses
_WRITES: Final = frozenset({"entity", "table", "policies", "properties"})


def roles_of(user: User) -> Roles:
    if user.is_admin:
        return dict.fromkeys(Account.objects.values_list("pk", flat=True), Role.OWNER)
    found = Membership.objects.filter(user=user).values_list("account_id", "role")
    return {account_id: Role(role) for account_id, role in found}


def may_see(user: User, done: Activity, roles: Roles) -> bool:
    """What was done in an account is for its members to see, the rest for admins."""
    return user.is_admin or done.account_id in roles


def may_undo(user: User, done: Activity, roles: Roles) -> bool:
    """Whether this user may; not whether the way is still open."""
    verb = effect(done)
    if verb is Verb.USER_CHANGE:
        return user.is_admin and done.before is not None
    role = roles.get(done.account_id or 0)
    if role is None or verb not in _NEEDS:
        return False
    if verb.startswith("query.") and not done.detail.get("query"):
        return _is_own(user, done)  # a private query is its owner's business, who may be a viewer
    needed = Capability.WRITE if _is_own_change(user, done, verb) else _NEEDS[verb]
    return may(role, needed)


def _is_own_change(user: User, done: Activity, verb: Verb) -> bool:
    return verb.startswith("entity.") and _is_own(user, done)


def _is_own(user: User, done: Activity) -> bool:
    return done.actor_kind == ActorKind.USER and done.actor == user.get_username()


def locked_accounts() -> set[int]:
    """Those that may only be read."""
    return set(Account.objects.filter(read_only=True).values_list("pk", flat=True))


def is_open(done: Activity, locked: Collection[int]) -> bool:
    """Whether it is worth offering; what was changed since is only found by trying."""
    if not (is_undoable(done) or effect(done) in _WAYS):
        return False
    if done.account_id in locked and effect(done).partition(".")[0] in _WRITES:
        return False
    if effect(done) is Verb.QUERY_CHANGE and not (done.before and done.after):
        return False  # whether to share it is its owner's choice
    days = done.detail.get("kept_days")
    if effect(done) is Verb.TABLE_DELETE:
        return isinstance(days, int) and timezone.now() < done.at + timedelta(days=days)
    return True


def undo(several: Sequence[Activity], by: Actor) -> list[Activity]:
    """All of them or none; raises CannotUndo."""
    way = _WAYS.get(effect(several[0]))
    if way is None or len(several) > 1:
        return undo_all(several, by)
    (done,) = several
    try:
        return [way(done, by)]
    except activity.UndoneAlready:
        raise CannotUndo(Reason.ALREADY_UNDONE, done) from None
    except activity.ChangedSince:
        raise CannotUndo(Reason.CHANGED_SINCE, done) from None
    except (members.LastOwner, users.LastAdmin):
        raise CannotUndo(Reason.LAST, done) from None
