"""Administration of users; at least one admin always stays active."""

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from console.models import User
from console.people import sessions
from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.models import Activity
from storage.people import api_tokens
from storage.people.subject import PeopleVerb
from storage.transfer import import_drafts

_TEMPORARY: Final = timedelta(days=7)  # a generated password


class LastAdmin(Exception):
    """The change would leave the server without an active admin."""


def all_users() -> QuerySet[User]:
    """Return active users first, then admins, then by name, with their memberships."""
    return User.objects.prefetch_related("memberships__account").order_by(
        "-is_active", "-is_admin", "username"
    )


@transaction.atomic
def add(user: User, *, by: Actor) -> Activity:
    """Save a new user."""
    user.save()
    return activity.record(PeopleVerb.USER_CREATE, by, detail={"user": user.username})


def generate_password() -> tuple[str, datetime]:
    """Return a password that its user must change at the next sign-in, and the end of the time for that."""
    return secrets.token_urlsafe(16), timezone.now() + _TEMPORARY


@transaction.atomic
def set_password(user: User, password: str, *, until: datetime | None = None, by: Actor) -> Activity:
    """Set a user's password and end all sessions; one with an end must be changed at the next sign-in."""
    user.set_password(password)
    user.temporary_password_until = until
    user.save(update_fields=("password", "temporary_password_until"))
    sessions.end_all(user)
    return activity.record(PeopleVerb.USER_CHANGE, by, detail={"user": user.username, "changed": "password"})


@transaction.atomic
def remove(user: User, *, by: Actor) -> Activity:
    """Delete a user with their memberships and imports in preparation; their activities stay in the log."""
    user.delete()
    import_drafts.forget_user(user.username)
    return activity.record(PeopleVerb.USER_REMOVE, by, detail={"user": user.username})


@transaction.atomic
def set_admin(user: User, *, is_admin: bool, by: Actor) -> Activity | None:
    """Grant or remove admin rights; return None if nothing changes. Raises LastAdmin."""
    if not is_admin:
        _check_other_admin(user)
    return _set(user, by, is_admin=is_admin)


@transaction.atomic
def change(user: User, *, is_admin: bool | None = None, is_active: bool | None = None, by: Actor) -> None:
    """Apply the given changes of admin rights and activity; raises LastAdmin."""
    if is_admin is not None:
        set_admin(user, is_admin=is_admin, by=by)
    if is_active is not None:
        set_active(user, is_active=is_active, by=by)


@transaction.atomic
def set_given_admin(user: User, *, is_admin: bool, given_by: str, by: Actor) -> Activity | None:
    """Grant admin rights by a provider's groups, or revoke those it granted; raises LastAdmin."""
    if user.is_admin == is_admin or (user.is_admin and user.admin_given_by != given_by):
        return None
    if not is_admin:
        _check_other_admin(user)
    return _set(user, by, given_by=given_by if is_admin else "", is_admin=is_admin)


@transaction.atomic
def set_active(user: User, *, is_active: bool, by: Actor) -> Activity | None:
    """Enable or disable a user; a disabled user is signed out and keeps their roles. Raises LastAdmin."""
    if not is_active:
        _check_other_admin(user)
        _revoke_access(user, by)
    return _set(user, by, is_active=is_active)


def _revoke_access(user: User, by: Actor) -> None:
    # enabling the user again must revive neither
    sessions.end_all(user)
    api_tokens.revoke_all(user, by=by)


@transaction.atomic
def undo(done: Activity, *, by: Actor) -> Activity:
    """Undo a change of a user. Raises ChangedSince and LastAdmin."""
    user = User.objects.select_for_update().filter(username=done.detail.get("user")).first()
    before, after = done.before, done.after
    if user is None or not before or not after or any(getattr(user, name) != after[name] for name in after):
        raise activity.ChangedSince
    if user.created_at > done.at:  # another user, who has the name now
        raise activity.ChangedSince
    if before.get("is_admin") is False or before.get("is_active") is False:
        _check_other_admin(user)
    if before.get("is_active") is False:
        _revoke_access(user, by)
    undone = _set(user, by, undoes=done, **before)
    if undone is None:
        raise activity.ChangedSince
    return undone


def _set(
    user: User, by: Actor, undoes: Activity | None = None, given_by: str = "", **values: bool
) -> Activity | None:
    fresh = User.objects.select_for_update().get(pk=user.pk)
    before = {name: getattr(fresh, name) for name in values}
    if before == values:
        return None
    for name, value in values.items():
        setattr(fresh, name, value)
        setattr(user, name, value)
    if "is_admin" in values:
        fresh.admin_given_by = given_by
    fresh.save(update_fields=(*values, "admin_given_by"))
    detail = {"user": user.username}
    return activity.record(
        PeopleVerb.USER_CHANGE, by, detail=detail, before=before, after=values, undoes=undoes
    )


def _check_other_admin(user: User) -> None:
    # lock all admins, so that two of them cannot disable each other at once
    admins = User.objects.select_for_update().filter(is_admin=True, is_active=True).order_by("pk")
    if [admin.pk for admin in admins] == [user.pk]:
        raise LastAdmin


def second_factors(people: Iterable[User]) -> dict[int, list[str]]:
    """Return the kinds of second factors, "passkey" and "totp", by user id."""
    kinds_of: dict[int, set[str]] = {}
    factors = Authenticator.objects.filter(user__in=[person.pk for person in people])
    for user_id, kind in factors.values_list("user_id", "type"):
        if kind in _KINDS:
            kinds_of.setdefault(user_id, set()).add(_KINDS[kind])
    return {user_id: sorted(kinds) for user_id, kinds in kinds_of.items()}


_KINDS = {Authenticator.Type.WEBAUTHN: "passkey", Authenticator.Type.TOTP: "totp"}


@transaction.atomic
def reset_factors(user: User, *, by: Actor) -> None:
    """Remove all second factors of a user who lost their device; this cannot be undone."""
    Authenticator.objects.filter(user=user).delete()
    activity.record(PeopleVerb.USER_CHANGE, by, detail={"user": user.username, "removed": "second factors"})


@transaction.atomic
def sign_out_everywhere(user: User, *, by: Actor) -> None:
    sessions.end_all(user)
    activity.record(PeopleVerb.USER_CHANGE, by, detail={"user": user.username, "removed": "sessions"})
