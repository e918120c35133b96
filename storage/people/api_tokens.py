"""API tokens of the management API; the secret is shown once, and only its hash is stored."""

import hashlib
import math
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from storage.accounts import quotas
from storage.accounts.quotas import Allowance
from storage.activity import activity
from storage.core.quotas import API_TOKENS
from storage.core.verbs import Verb
from storage.domain.access import api_tokens
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Scope, may
from storage.domain.refusals import Reason, Refused
from storage.models import Account, Activity, ApiToken, IdempotencyRecord
from storage.people import members
from storage.people.members import Person
from storage.people.subject import PeopleVerb

IDEMPOTENCY_RETENTION: Final = timedelta(hours=24)  # how long an Idempotency-Key is valid
_LAST_USE_PRECISION: Final = timedelta(minutes=1)
_WINDOW: Final = timedelta(minutes=1)


class TokenError(Refused):
    """A token cannot be issued."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """Fields of a new API token."""

    name: str
    scope: Scope
    account: Account | None = None  # the only accessible one; None for all that the user can see
    expires_at: datetime | None = None  # None for a token that does not expire


@transaction.atomic
def issue(user: Person, request: TokenRequest, *, by: Actor) -> tuple[str, ApiToken]:
    """Issue a token; return its secret, which cannot be read again, and its record."""
    quotas.lock_user(user.pk)
    if allowance(user).is_used_up:
        raise TokenError(Reason.TOO_MANY_TOKENS, most=allowance(user).most)
    characters = (secrets.choice(api_tokens.ALPHABET) for _ in range(api_tokens.RANDOM_LENGTH))
    secret = api_tokens.write_token("".join(characters))
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=request.name,
        scope=request.scope,
        account=request.account,
        digest=_digest(secret),
        prefix=api_tokens.visible_prefix(secret),
        expires_at=request.expires_at,
    )
    _record(PeopleVerb.API_TOKEN_ISSUE, token, user, by)
    return secret, token


def allowance(user: Person) -> Allowance:
    return Allowance(for_user(user).count(), quotas.limit(API_TOKENS))


def for_user(user: Person) -> QuerySet[ApiToken]:
    """Return the tokens of a user that are not revoked, newest first."""
    found = ApiToken.objects.filter(user_id=user.pk, revoked_at=None)
    return found.select_related("account").order_by("-pk")


def listed() -> QuerySet[ApiToken]:
    """Select the tokens of all users that are not revoked, oldest first."""
    return ApiToken.objects.filter(revoked_at=None).select_related("user", "account").order_by("pk")


def authenticate(secret: str, now: datetime, address: str) -> ApiToken | None:
    """Return the valid token of a secret with its user; record its use at most once a minute."""
    if not api_tokens.is_token(secret):
        return None
    working = ApiToken.objects.filter(digest=_digest(secret), revoked_at=None, user__is_active=True)
    is_unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
    token = working.filter(is_unexpired).select_related("user", "account").first()
    if token is not None:
        _record_use(token, now, address)
    return token


def user_of_valid(token: ApiToken) -> Person | None:
    """Return the current user of a token authenticated earlier; None if the token is no longer valid."""
    is_unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    working = ApiToken.objects.filter(pk=token.pk, revoked_at=None, user__is_active=True)
    valid = working.filter(is_unexpired).select_related("user").first()
    return None if valid is None else valid.user


def may_still(token: ApiToken, account: Account, capability: Capability) -> bool:
    """Return whether a token authenticated earlier is valid and its user still has a capability."""
    user = user_of_valid(token)
    role = None if user is None else members.role_in(user, account)
    return role is not None and may(role, capability)


def _record_use(token: ApiToken, now: datetime, address: str) -> None:
    long_ago = now - _LAST_USE_PRECISION
    if token.last_used_at is None or token.last_used_at <= long_ago:
        unseen = ApiToken.objects.filter(Q(last_used_at=None) | Q(last_used_at__lte=long_ago), pk=token.pk)
        unseen.update(last_used_at=now, last_used_from=address[:64])


def seconds_to_wait(token: ApiToken, limit: int, now: datetime) -> int:
    """Count a request; return 0, or the seconds to wait if all processes have used up ``limit`` for this minute."""
    since = now - _WINDOW
    is_new = Q(window_started_at=None) | Q(window_started_at__lte=since)
    is_new |= Q(window_started_at__gt=now + _WINDOW)  # the clock was set back
    counted = ApiToken.objects.filter(is_new | Q(window_requests__lt=limit), pk=token.pk).update(
        window_requests=Case(When(is_new, then=1), default=F("window_requests") + 1),
        window_started_at=Case(When(is_new, then=now), default=F("window_started_at")),
    )
    if counted:
        return 0
    started = ApiToken.objects.values_list("window_started_at", flat=True).filter(pk=token.pk).first()
    return 1 if started is None else max(1, math.ceil((started + _WINDOW - now).total_seconds()))


@transaction.atomic
def revoke(token: ApiToken, *, by: Actor) -> Activity | None:
    """Revoke a token permanently, effective immediately; return None if it was revoked already."""
    revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    return _record(PeopleVerb.API_TOKEN_REVOKE, token, token.user, by) if revoked else None


def revoke_all(user: Person, *, by: Actor) -> int:
    """Revoke all tokens of a deactivated user, so that reactivation does not revive them."""
    found: Iterable[ApiToken] = for_user(user).select_related("user")
    return sum(revoke(token, by=by) is not None for token in found)


def tidy(now: datetime) -> None:
    """Delete tokens 90 days after their end, and expired idempotency records."""
    IdempotencyRecord.objects.filter(created_at__lte=now - IDEMPOTENCY_RETENTION).delete()
    long_ago = now - timedelta(days=90)
    ApiToken.objects.filter(Q(revoked_at__lt=long_ago) | Q(expires_at__lt=long_ago)).delete()


def is_expired(token: ApiToken, now: datetime) -> bool:
    return token.expires_at is not None and token.expires_at <= now


def _digest(secret: str) -> str:
    # a plain hash is enough: the secret is random and too long to guess
    return hashlib.sha256(secret.encode()).hexdigest()


def _record(verb: Verb, token: ApiToken, user: Person, by: Actor) -> Activity:
    detail = {"token": token.name, "user": user.username, "scope": token.scope}
    return activity.record(verb, by, account=token.account, detail=detail)
