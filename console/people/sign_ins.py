"""Recording sign-ins, sign-outs, failed attempts and changes of sign-in methods."""

from typing import Any, Final

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import user_logged_in
from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import login
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from console.models import User
from console.site import appearance
from console.site.access import actor_named
from storage.activity import activity
from storage.core.verbs import Verb
from storage.people.subject import PeopleVerb

_NAMES: Final = {
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}


def sign_in(request: HttpRequest, user: User) -> None:
    """Sign in a user who was just created."""
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    _record(PeopleVerb.SIGN_IN, request, user.username)


@receiver(user_logged_in)
def _signed_in(request: HttpRequest, response: HttpResponse, user: User, **_: Any) -> None:
    appearance.remember(response, language=user.language, theme=user.theme, density=user.density)
    request.session.set_expiry(settings.SESSION_COOKIE_AGE)
    _record(PeopleVerb.SIGN_IN, request, user.username, by=_ways(request, user))


def _ways(request: HttpRequest, user: User) -> list[str]:
    records = get_authentication_records(request, user)
    return [_NAMES.get(record.get("type"), record["method"]) for record in records]


def signed_out(request: HttpRequest, user: User) -> None:
    _record(PeopleVerb.SIGN_OUT, request, user.username)


def failed(request: HttpRequest, username: str, by: str) -> None:
    """Record a failed sign-in; an unknown user name is not stored, as it may be a password."""
    known = User.objects.filter(username=User.normalize_username(username)).first()
    _record(PeopleVerb.SIGN_IN_FAILED, request, known.username if known is not None else "", by=[by])


@receiver(signals.authentication_failed)
def _code_failed(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    failed(request, user.username, _NAMES[Authenticator.Type(authenticator.type)])


@receiver(signals.authenticator_added)
@receiver(signals.authenticator_reset)
def _added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    changed(request, user, added=_NAMES[Authenticator.Type(authenticator.type)])


@receiver(signals.authenticator_removed)
def _removed(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    changed(request, user, removed=_NAMES[Authenticator.Type(authenticator.type)])


def changed(request: HttpRequest, user: User, **what: str) -> None:
    """Record that a user changed their own sign-in methods."""
    _record(PeopleVerb.USER_CHANGE, request, user.username, user=user.username, **what)


def _record(verb: Verb, request: HttpRequest, username: str, **detail: object) -> None:
    activity.record(verb, actor_named(request, username), detail=detail)
