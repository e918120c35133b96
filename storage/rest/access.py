"""Authentication by bearer token, permissions by role and scope, and the rate limit of a token.

A view set names the capability that each of its actions needs; storage.domain.access.roles says who has it.
"""

from typing import Any, Final

from django.conf import settings
from django.http import Http404
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from storage.accounts import accounts
from storage.core.quotas import API_REQUESTS
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, Scope, may, reaches
from storage.domain.values.stored import read_member
from storage.models import Account, ApiToken
from storage.people import api_tokens, members
from storage.people.members import Person
from storage.rest import problems
from storage.rest.problems import Problem

REALM: Final = 'Bearer realm="Tablero"'


class BearerAuthentication(BaseAuthentication):
    """Authentication by the bearer token in the Authorization header; cookies are ignored."""

    def authenticate(self, request: Request) -> tuple[Person, ApiToken] | None:
        scheme, _, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        address = request.META.get("REMOTE_ADDR", "")
        token = api_tokens.authenticate(secret.strip(), timezone.now(), address)
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return REALM


def actor_of(request: Request) -> Actor:
    """Return the token's user as an actor for the activity log."""
    token: ApiToken = request.auth
    return Actor(
        ActorKind.TOKEN,
        token.user.get_username(),
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("User-Agent", "")[:256],
        getattr(request, "number", ""),
        token=token.name,
        token_id=token.pk,
    )


class TokenPermission(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        token = request.auth
        if not isinstance(token, ApiToken):
            return False
        capability = view.capabilities.get(view.action)
        if capability is not None:  # without one the method does not exist, which the dispatch answers next
            check_scope(token, capability)
            view.resolve_target(token, capability)
        return True


def check_scope(token: ApiToken, capability: Capability) -> None:
    scope = read_member(Scope, token.scope)
    if not reaches(scope, capability):
        needed = least_scope(capability)
        header = f'{REALM}, error="insufficient_scope", scope="{needed}"'
        detail = f"This operation needs a token with the scope {needed}; this token has {scope}."
        raise Problem(problems.OUT_OF_SCOPE, detail, headers={"WWW-Authenticate": header})


def least_scope(capability: Capability) -> Scope:
    return next(scope for scope in Scope if reaches(scope, capability))


def find_account(token: ApiToken, name: str, capability: Capability) -> tuple[Account, Role]:
    """Return an account and the user's role in it; raises 404 for an unknown or inaccessible account."""
    account = accounts.find(name)
    if account is None or (token.account_id is not None and token.account_id != account.pk):
        raise Http404
    role = members.role_in(token.user, account)
    if role is None:
        raise Http404
    if not may(role, capability):
        least = LEAST_ROLE[capability].name.lower()
        detail = f"This operation needs the role {least} in the account {account.name}."
        raise Problem(problems.FORBIDDEN, detail)
    return account, role


def check_server(token: ApiToken) -> None:
    """Require the rights for server-wide operations."""
    if not token.user.is_admin:
        raise Problem(problems.FORBIDDEN, "Only admins of the server can do this.")
    check_all_accounts(token)


def check_all_accounts(token: ApiToken) -> None:
    """Require a token for operations beyond one account, such as creating another."""
    if token.account_id is not None:
        raise Problem(problems.FORBIDDEN, "This operation needs a token that is not limited to one account.")


class TokenThrottle(BaseThrottle):
    """Rate limit per token and minute, counted over all processes."""

    seconds = 0

    def allow_request(self, request: Request, view: APIView) -> bool:
        limit = settings.QUOTAS[API_REQUESTS.name]
        self.seconds = api_tokens.seconds_to_wait(request.auth, limit, timezone.now())
        return self.seconds == 0

    def wait(self) -> float:
        return self.seconds
