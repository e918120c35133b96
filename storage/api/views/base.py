"""What all views have in common: who asks, what for, and by which right."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils import timezone, translation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from storage.api import permissions
from storage.api.authentication import Bearer, actor_of
from storage.api.permissions import TokenMay
from storage.api.reading import Json, Negotiation, Written
from storage.api.serializers.fields import Parameters, Strict
from storage.api.throttling import PerToken
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability, Role
from storage.domain.errors import StorageError
from storage.models import Account, ApiToken, Table
from storage.operations import tables

M = TypeVar("M", bound=Model)


class Views(ViewSet):
    """``capabilities``: what each action takes; the table of roles says who has it."""

    authentication_classes = (Bearer,)
    permission_classes = (TokenMay,)
    throttle_classes = (PerToken,)
    parser_classes = (Json,)
    renderer_classes = (Written,)
    content_negotiation_class = Negotiation
    metadata_class = None
    http_method_names = ("get", "post", "put", "patch", "delete", "head")
    capabilities: ClassVar[Mapping[str, Capability]]
    tag = ""  # under what it stands in the document

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.META.get("CONTENT_LENGTH"):
            # of a body that comes in chunks, which REST framework would take for none
            request.META["CONTENT_LENGTH"] = str(len(request.body))
        # scripts read the sentences of errors, in one language and one zone
        with translation.override("en"), timezone.override("UTC"):
            response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            response.headers["Content-Language"] = "en"
            response.headers["Cache-Control"] = "no-store"
            return response

    def check_permissions(self, request: Request) -> None:
        """What is refused counts too."""
        if isinstance(request.auth, ApiToken):
            super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """They were, with the permissions."""

    def look(self, token: ApiToken, capability: Capability) -> None:
        """Finds what the address names; raises what refuses it."""

    @property
    def token(self) -> ApiToken:
        token: ApiToken = self.request.auth
        return token

    @property
    def by(self) -> Actor:
        return actor_of(self.request)

    def body(self, serializer: type[Strict]) -> dict[str, Any]:
        return valid(serializer, self.request)

    def parameters(self, serializer: type[Parameters]) -> dict[str, Any]:
        return serializer.read(self.request.query_params)


class ServerViews(Views):
    """Of the server, not of an account."""


class AdminViews(Views):
    """For admins, with a token that is for all accounts."""

    def look(self, token: ApiToken, capability: Capability) -> None:
        permissions.check_server(token)


class AccountViews(Views):
    """Of the account that the address names."""

    account: Account
    role: Role

    def look(self, token: ApiToken, capability: Capability) -> None:
        self.account, self.role = permissions.find_account(token, self.kwargs["account"], capability)

    def table(self) -> Table:
        """The one that the address names in any letter case."""
        return find_table(self.account, self.kwargs["table"])

    def endpoint(self) -> str:
        return endpoint(self.request, self.account)


def find_table(account: Account, name: str) -> Table:
    try:
        return tables.get(account.pk, name)
    except StorageError:
        raise Http404 from None


def valid(serializer: type[Strict], request: Request) -> dict[str, Any]:
    read = serializer(data=request.data)
    read.is_valid(raise_exception=True)
    found: dict[str, Any] = read.validated_data
    return found


def endpoint(request: Request, account: Account) -> str:
    """Where this request found the server is where an SDK finds it."""
    return f"{request.scheme}://{request.get_host()}/{account.name}"


def made(content: Any, *, is_new: bool) -> Response:
    """201 for what was made, 200 for what was there as it was asked for."""
    return Response(content, status=201 if is_new else 200)
