"""The sessions of users: in how many browsers somebody is signed in, and how all of them end."""

from collections.abc import Iterator

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone

from console.models import User


def count(user: User) -> int:
    return sum(1 for _ in _of(user))


def end_all(user: User, *, but: str | None = None) -> int:
    """Signs somebody out everywhere, but for the session of this key; the number of sessions that ended."""
    ended = 0
    for session in _of(user):
        if session.session_key != but:
            session.delete()
            ended += 1
    return ended


def _of(user: User) -> Iterator[Session]:
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            yield session
