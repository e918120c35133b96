"""Sessions of users: listing, ending, tracking and browser names."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.auth import get_user, logout
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.models import User
from console.people.session_store import SessionStore
from storage.runtime import stream_access

LONGEST: Final = timedelta(days=30)  # from the sign-in, however often the session is used
_UPDATE_INTERVAL: Final = timedelta(minutes=1)
# the first match wins, because most browsers claim to be several
_BROWSERS: Final = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
    "curl/": "curl",
    "python-requests/": "Python",
}
_SYSTEMS: Final = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def for_user(user: User) -> QuerySet[UserSession]:
    """Return the active sessions of a user, most recently used first."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    found: QuerySet[UserSession] = UserSession.objects.filter(user=user, session_key__in=alive)
    return found.order_by("-last_seen_at")


def count(user: User) -> int:
    return for_user(user).count()


def end(user: User, number: int) -> bool:
    """End one session of a user; return False if it does not exist."""
    return _end(UserSession.objects.filter(user=user, pk=number)) > 0


def end_all(user: User, *, but: str | None = None) -> int:
    """End all sessions of a user except the key ``but``; return the number ended."""
    return _end(UserSession.objects.filter(user=user).exclude(session_key=but))


def user_of_session(key: str | None) -> User | None:
    """Return the active user of a session; None if it has ended."""
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request)
    return user if isinstance(user, User) else None


def _end(sessions: QuerySet[UserSession]) -> int:
    keys = list(sessions.values_list("session_key", flat=True))
    ended, _by_model = Session.objects.filter(session_key__in=keys).delete()
    UserSession.objects.filter(session_key__in=keys).delete()
    stream_access.announce_change()
    return ended


def record_use(request: HttpRequest) -> None:
    """Record time and client of the session's last use; end a session that exceeds its lifetime."""
    now = timezone.now()
    this = UserSession.objects.filter(session_key=request.session.session_key)
    if this.filter(last_seen_at__gt=now - _UPDATE_INTERVAL).exists():
        return
    if this.filter(created_at__lt=now - LONGEST).exists():
        _end(this)
        logout(request)
        return
    address = get_adapter(request).get_client_ip(request)
    agent = request.headers.get("User-Agent", "")[:200]
    if not this.update(last_seen_at=now, ip=address, user_agent=agent):
        UserSession.objects.create_from_request(request)


def track_sessions(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that records the use of sessions."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated and request.session.session_key:
            record_use(request)
        return get_response(request)

    return answer


def delete_expired(now: datetime) -> None:
    """Delete expired sessions."""
    Session.objects.filter(expire_date__lt=now).delete()
    UserSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()


def browser_name(agent: str) -> str:
    """Name the browser of a User-Agent, such as "Firefox on Linux"."""
    browser, system = _find_name(_BROWSERS, agent), _find_name(_SYSTEMS, agent)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")


def _find_name(names: dict[str, str], agent: str) -> str:
    return next((name for mark, name in names.items() if mark in agent), "")
