"""What an admin does with users. There is always an admin who can sign in."""

from collections.abc import Iterable

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import QuerySet

from console.models import User
from console.people import sessions
from storage.domain.access.actor import Actor
from storage.domain.service.activity import Verb
from storage.models import Activity
from storage.operations import activity, api_tokens


class LastAdmin(Exception):
    """It is the only admin who can sign in that would go."""


def everybody() -> QuerySet[User]:
    """Admins first, then by name, with what they are where."""
    return User.objects.prefetch_related("memberships__account").order_by(
        "-is_active", "-is_admin", "username"
    )


@transaction.atomic
def add(user: User, *, by: Actor) -> Activity:
    """A user who has a name and a password."""
    user.save()
    return activity.record(Verb.USER_CREATE, by, detail={"user": user.username})


@transaction.atomic
def set_password(user: User, password: str, *, by: Actor) -> Activity:
    """Signs them out everywhere."""
    user.set_password(password)
    user.save(update_fields=("password",))
    sessions.end_all(user)
    return activity.record(Verb.USER_CHANGE, by, detail={"user": user.username, "changed": "password"})


@transaction.atomic
def remove(user: User, *, by: Actor) -> Activity:
    """For good, with what they are where; what they did stays in the record."""
    user.delete()
    return activity.record(Verb.USER_REMOVE, by, detail={"user": user.username})


@transaction.atomic
def set_admin(user: User, *, is_admin: bool, by: Actor) -> Activity | None:
    """None when it is so already."""
    if not is_admin:
        _check_other_admin(user)
    return _set(user, by, is_admin=is_admin)


@transaction.atomic
def set_active(user: User, *, is_active: bool, by: Actor) -> Activity | None:
    """Somebody who is switched off is signed out at once, and keeps what they are where."""
    if not is_active:
        _check_other_admin(user)
        _shut_out(user, by)
    return _set(user, by, is_active=is_active)


def _shut_out(user: User, by: Actor) -> None:
    # neither must come back to life with the user
    sessions.end_all(user)
    api_tokens.revoke_all(user, by=by)


@transaction.atomic
def undo(done: Activity, *, by: Actor) -> Activity:
    """Switch a user on or off again, or what else was changed; raises ChangedSince, LastAdmin."""
    user = User.objects.select_for_update().filter(username=done.detail.get("user")).first()
    before, after = done.before, done.after
    if user is None or not before or not after or any(getattr(user, name) != after[name] for name in after):
        raise activity.ChangedSince
    if before.get("is_admin") is False or before.get("is_active") is False:
        _check_other_admin(user)
    if before.get("is_active") is False:
        _shut_out(user, by)
    undone = _set(user, by, undoes=done, **before)
    if undone is None:
        raise activity.ChangedSince
    return undone


def _set(user: User, by: Actor, undoes: Activity | None = None, **values: bool) -> Activity | None:
    fresh = User.objects.select_for_update().get(pk=user.pk)
    before = {name: getattr(fresh, name) for name in values}
    if before == values:
        return None
    for name, value in values.items():
        setattr(fresh, name, value)
        setattr(user, name, value)
    fresh.save(update_fields=tuple(values))
    detail = {"user": user.username}
    return activity.record(Verb.USER_CHANGE, by, detail=detail, before=before, after=values, undoes=undoes)


def _check_other_admin(user: User) -> None:
    # all of them are locked, so that two admins cannot switch each other off at once
    admins = User.objects.select_for_update().filter(is_admin=True, is_active=True).order_by("pk")
    if [admin.pk for admin in admins] == [user.pk]:
        raise LastAdmin


def factors(people: Iterable[User]) -> dict[int, list[str]]:
    """The kinds of second factors by user: "passkey", "totp"."""
    found: dict[int, set[str]] = {}
    wanted = Authenticator.objects.filter(user__in=[person.pk for person in people])
    for user_id, kind in wanted.values_list("user_id", "type"):
        if kind in _KINDS:
            found.setdefault(user_id, set()).add(_KINDS[kind])
    return {user_id: sorted(kinds) for user_id, kinds in found.items()}


_KINDS = {Authenticator.Type.WEBAUTHN: "passkey", Authenticator.Type.TOTP: "totp"}


@transaction.atomic
def reset_factors(user: User, *, by: Actor) -> Activity:
    """For somebody who has lost their device; it cannot be brought back."""
    Authenticator.objects.filter(user=user).delete()
    return _record_removed(user, "second factors", by)


@transaction.atomic
def sign_out_everywhere(user: User, *, by: Actor) -> Activity:
    sessions.end_all(user)
    return _record_removed(user, "sessions", by)


def _record_removed(user: User, what: str, by: Actor) -> Activity:
    return activity.record(Verb.USER_CHANGE, by, detail={"user": user.username, "removed": what})
