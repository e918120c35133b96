"""Invitation links: each works once, until it expires, and only its hash is stored."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from console.models import Invitation, User
from console.people import link_tokens
from console.site.access import actor_of, user_of
from console.site.addresses import public_url
from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Role, may, read_role
from storage.models import Account
from storage.people import members
from storage.people.members import role_in
from storage.people.subject import PeopleVerb

_KEPT: Final = timedelta(days=30)  # after an invitation has expired


@dataclass(frozen=True, slots=True)
class Offer:
    """Rights of an invitation: ``role`` in an optional ``account``, and admin rights if ``is_admin``."""

    note: str  # the recipient
    account: Account | None
    role: Role
    is_admin: bool
    days: int


class NoLongerOpen(Exception):
    """The invitation was used, withdrawn, or has expired."""


def issue_link(request: HttpRequest, offer: Offer) -> str:
    """Create an invitation and return its link."""
    return link(request, issue(offer, user_of(request), by=actor_of(request)))


def link(request: HttpRequest, token: str) -> str:
    """Return the link of an invitation."""
    return public_url(request, f"{reverse('people:join')}#token={token}")


@transaction.atomic
def issue(offer: Offer, invited_by: User, *, by: Actor) -> str:
    """Create an invitation and return its link token, which is not stored."""
    token = link_tokens.new()
    Invitation.objects.create(
        token_hash=link_tokens.hash_of(token),
        note=offer.note,
        is_admin=offer.is_admin,
        account=offer.account,
        role=offer.role,
        invited_by=invited_by,
        expires_at=timezone.now() + timedelta(days=offer.days),
    )
    detail = {"user": offer.note, "role": int(offer.role), "is_admin": offer.is_admin, "days": offer.days}
    activity.record(PeopleVerb.USER_INVITE, by, account=offer.account, detail=detail)
    return token


def pending(account: Account | None = None) -> QuerySet[Invitation]:
    """Return usable invitations, of one account or all."""
    unused = Invitation.objects.filter(used_at=None, expires_at__gt=timezone.now())
    if account is not None:
        unused = unused.filter(account=account)
    return unused.select_related("account", "invited_by").order_by("-created_at")


def find(token_hash: str) -> Invitation | None:
    """Return the pending invitation of a link, if its sender may still invite."""
    found = pending().filter(token_hash=token_hash).first()
    return found if found is not None and _may_still_invite(found) else None


def _may_still_invite(invitation: Invitation) -> bool:
    # a link must not restore rights that its sender has lost
    inviter = invitation.invited_by
    if not inviter.is_active or inviter.is_admin:
        return inviter.is_active
    if invitation.is_admin or invitation.account is None:
        return False
    role = role_in(inviter, invitation.account)
    return role is not None and may(role, Capability.GRANT)


@transaction.atomic
def withdraw(invitation: Invitation, *, by: Actor) -> None:
    """Delete an invitation, which invalidates its link."""
    Invitation.objects.filter(pk=invitation.pk, used_at=None).delete()
    detail = {"user": invitation.note, "withdrawn": True}
    activity.record(PeopleVerb.USER_INVITE, by, account=invitation.account, detail=detail)


@transaction.atomic
def join(invitation: Invitation, user: User, *, by: Actor) -> None:
    """Apply an invitation to an existing user, keeping a higher role; raises NoLongerOpen."""
    _use(invitation, user)
    if invitation.is_admin and not user.is_admin:
        user.is_admin = True
        user.save(update_fields=("is_admin",))
        activity.record(
            PeopleVerb.USER_CHANGE,
            by,
            detail={"user": user.username},
            before={"is_admin": False},
            after={"is_admin": True},
        )
    if invitation.account is not None:
        present = members.given_role(user, invitation.account)
        role = read_role(invitation.role)
        if role is not None and (present is None or present < role):
            inviter = invitation.invited_by.username
            members.set_role(invitation.account, user, role, by=by, invited_by=inviter)


@transaction.atomic
def accept(invitation: Invitation, username: str, password: str, language: str, *, by: Actor) -> User:
    """Create the invited user. Raises NoLongerOpen."""
    user = User.objects.create_user(username, password, language=language)
    activity.record(PeopleVerb.USER_CREATE, by, detail={"user": user.username})
    join(invitation, user, by=by)
    return user


def tidy(now: datetime) -> None:
    """Delete invitations that expired long ago, used or not; the activity log has them."""
    Invitation.objects.filter(expires_at__lt=now - _KEPT).delete()


def _use(invitation: Invitation, user: User) -> None:
    """Mark the invitation as used; raises NoLongerOpen for the second of concurrent requests."""
    now: datetime = timezone.now()
    used = Invitation.objects.filter(pk=invitation.pk, used_at=None, expires_at__gt=now)
    if not used.update(used_at=now, user=user):
        raise NoLongerOpen
