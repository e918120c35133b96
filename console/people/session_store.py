"""Sessions in the database; the former key of a session leads to the session for a minute."""

import hashlib
from typing import Final

from allauth.usersessions.models import UserSession
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import transaction

GRACE: Final = 60  # seconds, for requests under way when the key is replaced


class SessionStore(DatabaseSessionStore):
    """Session whose key is replaced when its user confirms their identity.

    A request with the former key keeps its sign-in, but is not confirmed, and is not told the new key, because
    a thief of the former one would learn it.
    """

    has_former_key = False  # whether the request was sent with the former key

    @transaction.atomic
    def replace_key(self) -> None:
        former = self.session_key
        assert former is not None
        self.cycle_key()
        self.has_former_key = False
        UserSession.objects.filter(session_key=former).update(session_key=self.session_key)
        cache.set(_name(former), self.session_key, GRACE)

    def save(self, must_create: bool = False) -> None:
        """Save the session; what a request changes that began before the key was replaced is dropped."""
        try:
            super().save(must_create)
        except UpdateError:
            if _successor(self.session_key) is None:
                raise
            self.has_former_key = True

    def _get_session_from_db(self) -> Session | None:
        former = self.session_key
        session: Session | None = super()._get_session_from_db()  # type: ignore[misc]
        successor = None if session else _successor(former)
        if successor is None:
            return session
        self._session_key, self.has_former_key = successor, True
        return super()._get_session_from_db()  # type: ignore[misc,no-any-return]


def _successor(key: str | None) -> str | None:
    return cache.get(_name(key)) if key else None


def _name(key: str) -> str:
    return f"session-after:{hashlib.sha256(key.encode()).hexdigest()}"
