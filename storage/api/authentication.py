"""Who asks: the user of a token in the Authorization header, and nothing else; cookies count for nothing here."""

from typing import Final

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from storage.domain.access.actor import Actor, ActorKind
from storage.models import ApiToken
from storage.operations import api_tokens
from storage.operations.members import Person

REALM: Final = 'Bearer realm="Tablero"'


class Bearer(BaseAuthentication):
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
    """Who does what a request asks for."""
    token: ApiToken = request.auth
    return Actor(
        ActorKind.TOKEN,
        token.user.get_username(),
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("User-Agent", "")[:256],
        getattr(request, "number", ""),
        token=token.name,
    )
