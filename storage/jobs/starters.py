"""Current permissions of the users who started jobs, checked before each step together with the users' wishes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet, Value
from django.utils import timezone

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import LEAST_ROLE, Capability
from storage.models import ApiToken, Job, Membership

OF_USERS = (ActorKind.USER, ActorKind.TOKEN)


class NeededAccess(NamedTuple):
    """Access that a user needs in an account, given by its id."""

    account: int
    capability: Capability


class Outlook(NamedTuple):
    """Requested action for a job, and whether its starter still has access."""

    wish: str
    is_allowed: bool


def find_user(by: Actor) -> int | None:
    """Return the user who starts a job; None for the server, a command or an unknown name."""
    if by.kind not in OF_USERS:
        return None
    user_id: int | None = _users().filter(username=by.name).values_list("pk", flat=True).first()
    return user_id


def look(job: Job, needed: Iterable[NeededAccess] | None) -> Outlook | None:
    """Return the requested action and the starter's access, in one query; None if the job was deleted."""
    found = Job.objects.filter(pk=job.pk).annotate(is_allowed=_is_allowed(job, needed))
    row = found.values_list("wish", "is_allowed").first()
    return None if row is None else Outlook(*row)


def _is_allowed(job: Job, needed: Iterable[NeededAccess] | None) -> Exists | Value:
    if job.starter is None or needed is None:
        return Value(True, output_field=BooleanField())
    allowed = _users().filter(pk=job.starter, is_active=True)
    for account, capability in needed:
        member = Membership.objects.filter(
            user_id=OuterRef("pk"), account=account, role__gte=LEAST_ROLE[capability]
        )
        allowed = allowed.filter(Q(is_admin=True) | Exists(member))
    if job.starter_token is not None:
        is_unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
        allowed = allowed.filter(
            Exists(ApiToken.objects.filter(is_unexpired, pk=job.starter_token, revoked_at=None))
        )
    return Exists(allowed)


def _users() -> QuerySet[Any]:
    found: QuerySet[Any] = apps.get_model(settings.AUTH_USER_MODEL)._default_manager.all()
    return found
