"""Members of accounts and their roles; the last owner cannot be removed."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from storage.accounts import accounts, locking
from storage.activity import activity
from storage.activity.subject import ActivityVerb
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Role, read_role, roles_with
from storage.models import Account, Activity, Branch, Membership
from storage.people.subject import PeopleVerb


class Person(Protocol):
    """Protocol of a user, the model in settings.AUTH_USER_MODEL."""

    pk: int
    username: str
    is_admin: bool
    is_active: bool
    created_at: datetime


class LastOwner(Exception):
    """The change would leave the account without an owner."""


def role_in(user: Person, account: Account) -> Role | None:
    """Return the user's role, None without access; server admins are owners of every account."""
    return Role.OWNER if user.is_admin else _role(account, user)


def roles(user: Person) -> dict[int, Role]:
    """Return the user's role in each account, by its primary key."""
    if user.is_admin:
        return dict.fromkeys(Account.objects.values_list("pk", flat=True), Role.OWNER)
    memberships = Membership.objects.filter(user_id=user.pk).values_list("account_id", "role")
    known = ((account_id, read_role(role)) for account_id, role in memberships)
    return {account_id: role for account_id, role in known if role is not None}


def visible_accounts(user: Person, capability: Capability = Capability.READ) -> QuerySet[Account]:
    """Select, by name, the accounts in which a user has a capability; page them, as there may be thousands."""
    shown = accounts.usable().order_by("name")
    if user.is_admin:
        return shown
    own = Membership.objects.filter(user_id=user.pk, role__in=roles_with(capability))
    return shown.filter(pk__in=own.values("account_id"))


def with_roles(user: Person, shown: Iterable[Account]) -> list[tuple[Account, Role]]:
    """Return visible accounts with the user's role in each."""
    listed = list(shown)
    if user.is_admin:
        return [(account, Role.OWNER) for account in listed]
    own = roles(user)
    return [(account, own[account.pk]) for account in listed if account.pk in own]


def was_removed(user: Person, account: Account) -> bool:
    """Return whether the activity log shows that the user was removed from the account."""
    removed = Q(verb=PeopleVerb.MEMBER_REMOVE) | Q(
        verb=ActivityVerb.UNDO, detail__verb=PeopleVerb.MEMBER_REMOVE
    )
    # records of an older server have names only; those before the user's creation are of another user
    named = Q(detail__user_id__isnull=True, detail__user=user.username, at__gte=user.created_at)
    removals = Activity.objects.filter(removed, account=account)
    return removals.filter(Q(detail__user_id=user.pk) | named).exists()


def find_person(username: str) -> Person | None:
    people = apps.get_model(settings.AUTH_USER_MODEL)
    found: Person | None = people._default_manager.filter(username=username).first()
    return found


def members(account: Account) -> list[Membership]:
    """Return the members, owners first, then by name."""
    found = Membership.objects.filter(account=account).select_related("user")
    return list(found.order_by("-role", "user__username"))


def memberships(user: Person) -> list[Membership]:
    """Return the memberships of a user by account name."""
    own = Membership.objects.filter(user_id=user.pk)
    return list(own.select_related("account").order_by("account__name"))


def all_memberships() -> dict[int, list[Membership]]:
    """Return all memberships by user id and account name."""
    by_user: dict[int, list[Membership]] = {}
    for membership in Membership.objects.select_related("account").order_by("account__name"):
        by_user.setdefault(membership.user_id, []).append(membership)
    return by_user


def given_role(user: Person, account: Account) -> Role | None:
    """Return the role of a membership, ignoring server admin rights."""
    return _role(account, user)


@transaction.atomic
def set_role(
    account: Account,
    user: Person,
    role: Role,
    *,
    by: Actor,
    undoes: Activity | None = None,
    keeps_owner: bool = True,
    invited_by: str = "",
    given_by: str = "",
) -> Activity | None:
    """Add a member or change their role; return None if it is unchanged."""
    locking.lock(account)
    before = _role(account, user)
    if before == role:
        Membership.objects.filter(account=account, user_id=user.pk).update(given_by=given_by)
        return None
    if before == Role.OWNER and keeps_owner:
        _check_other_owner(account, user)
    Membership.objects.update_or_create(
        user_id=user.pk, account=account, defaults={"role": role, "given_by": given_by}
    )
    return _record(PeopleVerb.MEMBER_SET, account, user, (before, role), by, undoes, invited_by)


@transaction.atomic
def remove(
    account: Account, user: Person, *, by: Actor, undoes: Activity | None = None, keeps_owner: bool = True
) -> Activity | None:
    """Remove a member; return None if the user is not one."""
    locking.lock(account)
    held = Membership.objects.filter(account=account, user_id=user.pk).first()
    if held is None:
        return None
    before = read_role(held.role)
    if before == Role.OWNER and keeps_owner:
        _check_other_owner(account, user)
    Membership.objects.filter(account=account, user_id=user.pk).delete()
    return _record(PeopleVerb.MEMBER_REMOVE, account, user, (before, None), by, undoes)


@transaction.atomic
def set_given_roles(user: Person, roles: Mapping[str, Role], *, given_by: str, by: Actor) -> None:
    """Apply the roles that an identity provider assigns by account, and revoke its earlier ones.

    A role given by a person stays, as does one from another provider unless this role is higher. An account
    may be left without an owner: a user who is no longer in a group must not keep its role.
    """
    given = Membership.objects.filter(user_id=user.pk, given_by=given_by).values_list(
        "account__name", flat=True
    )
    concerned = accounts.usable().filter(name__in={*given, *roles}).order_by("name")
    sources = dict(Branch.objects.filter(account__in=concerned).values_list("account_id", "source_name"))
    for account in concerned:
        locking.lock(account)
        held = Membership.objects.filter(account=account, user_id=user.pk).first()
        # a branch has begun with the members of its source
        role = roles.get(account.name) or roles.get(sources.get(account.pk, ""))
        if role is None:
            if held is not None and held.given_by == given_by:
                remove(account, user, by=by, keeps_owner=False)
        elif held is None or held.given_by == given_by or (held.given_by and held.role < role):
            set_role(account, user, role, by=by, keeps_owner=False, given_by=given_by)


@transaction.atomic
def undo(done: Activity, *, by: Actor) -> Activity:
    """Restore the previous role; raises ChangedSince or LastOwner."""
    account = Account.objects.filter(name=done.account_name).first()
    user = find_person(str(done.detail.get("user")))
    # another user may have the name now
    if account is None or user is None or user.created_at > done.at:
        raise activity.ChangedSince
    locking.lock(account)
    if _role(account, user) != done.after:
        raise activity.ChangedSince
    if done.before is None:
        undone = remove(account, user, by=by, undoes=done)
    else:
        role = read_role(done.before)
        undone = None if role is None else set_role(account, user, role, by=by, undoes=done)
    if undone is None:
        raise activity.ChangedSince
    return undone


def _role(account: Account, user: Person) -> Role | None:
    found = Membership.objects.filter(account=account, user_id=user.pk).values_list("role", flat=True).first()
    return None if found is None else read_role(found)


def _check_other_owner(account: Account, user: Person) -> None:
    others = Membership.objects.filter(account=account, role=Role.OWNER, user__is_active=True)
    if not others.exclude(user_id=user.pk).exists():
        raise LastOwner


def _record(
    verb: Verb,
    account: Account,
    user: Person,
    roles: tuple[Role | None, Role | None],
    by: Actor,
    undoes: Activity | None,
    invited_by: str = "",
) -> Activity:
    before, after = (None if role is None else int(role) for role in roles)
    detail: dict[str, object] = {"user": user.username}
    if invited_by:
        detail["invited_by"] = invited_by
    if verb is PeopleVerb.MEMBER_REMOVE:
        detail["user_id"] = user.pk  # by which the user is known, whatever the name becomes
    return activity.record(
        verb, by, account=account, detail=detail, before=before, after=after, undoes=undoes
    )
