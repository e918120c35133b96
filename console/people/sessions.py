"""The sessions of users: in which browsers somebody is signed in, and how all of them end."""

from datetime import datetime, timedelta
from typing import Final

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from console.models import User

_EXACT_TO: Final = timedelta(minutes=1)  # of when a session was seen last


def of(user: User) -> QuerySet[UserSession]:
    """Those that have not ended, the one that was seen last first."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    found: QuerySet[UserSession] = UserSession.objects.filter(user=user, session_key__in=alive)
    return found.order_by("-last_seen_at")


def count(user: User) -> int:
    return of(user).count()


def end(user: User, number: int) -> bool:
    """False when there is no such session of this user, or not any more."""
    return _end(UserSession.objects.filter(user=user, pk=number)) > 0


def end_all(user: User, *, but: str | None = None) -> int:
    """Signs somebody out everywhere, but for the session of this key; the number of sessions that ended."""
    return _end(UserSession.objects.filter(user=user).exclude(session_key=but))


def _end(found: QuerySet[UserSession]) -> int:
    keys = list(found.values_list("session_key", flat=True))
    ended, _ = Session.objects.filter(session_key__in=keys).delete()
    UserSession.objects.filter(session_key__in=keys).delete()
    return ended


def see(request: HttpRequest) -> None:
    """Keep in mind when, and from where, a session was used last."""
    now = timezone.now()
    this = UserSession.objects.filter(session_key=request.session.session_key)
    if this.filter(last_seen_at__gt=now - _EXACT_TO).exists():
        return
    address = get_adapter(request).get_client_ip(request)
    agent = request.headers.get("User-Agent", "")[:200]
    if not this.update(last_seen_at=now, ip=address, user_agent=agent):
        UserSession.objects.create_from_request(request)


def tidy(now: datetime) -> None:
    """What has expired goes."""
    Session.objects.filter(expire_date__lt=now).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
