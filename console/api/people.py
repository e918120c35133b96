"""Users, their tokens and invitations in the API; only server admins manage users."""

from typing import Any, ClassVar

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import serializers
from console.models import Invitation, User
from console.people import invitations, link_tokens, users
from console.people.invitations import Offer
from console.people.users import LastAdmin
from storage.domain.access.roles import Capability, Role
from storage.models import Account, ApiToken
from storage.people import api_tokens
from storage.rest import access, problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.paging import Page, take_page
from storage.rest.problems import Problem
from storage.rest.views import AccountScopedViewSet, ApiViewSet


class ServerViewSet(ApiViewSet):
    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    def user(self) -> User:
        name = self.kwargs["user"].lower()
        user = users.all_users().filter(username=name).first() if "\0" not in name else None
        if user is None:
            raise Http404
        return user


class UserViewSet(ServerViewSet):
    tag = "Users"
    capabilities = dict.fromkeys(
        ("index", "retrieve", "partial_update", "sign_out", "reset_factors"), Capability.GRANT
    )

    @operation(
        "list_users",
        "List users",
        "By name, with their roles.",
        answer=page_of(serializers.UserSerializer),
        query=serializers.UserParameters,
    )
    def index(self, request: Request) -> Response:
        query = self.read_query()
        users_after = users.all_users().filter(username__gt=query["cursor"]).order_by("username")
        if query["state"]:
            users_after = users_after.filter(is_active=query["state"] == "active")
        page = take_page(list(users_after[: query["limit"] + 1]), query["limit"], lambda it: it.username)
        self._factors = users.second_factors(page.items)
        return self.answer_page(page)

    @operation("get_user", "Get a user", answer=serializers.UserSerializer)
    def retrieve(self, request: Request, user: str) -> Response:
        return self.answer(self.user())

    @operation(
        "update_user",
        "Enable, disable, promote or demote a user",
        "A user who is disabled is signed out and loses their tokens. The last active admin stays one.",
        body=serializers.UserChangeSerializer,
        answer=serializers.UserSerializer,
        problems=[problems.CONFLICT],
        example={"is_active": False},
    )
    def partial_update(self, request: Request, user: str) -> Response:
        person, changes = self.user(), self.read_body()
        try:
            users.change(person, by=self.by, **changes)
        except LastAdmin:
            detail = f"{person.username} is the last active admin; make another user an admin first."
            raise Problem(problems.CONFLICT, detail) from None
        return self.answer(self.user())

    @operation(
        "sign_out_user", "Sign a user out everywhere", "Ends all sessions of the console; tokens stay valid."
    )
    def sign_out(self, request: Request, user: str) -> Response:
        users.sign_out_everywhere(self.user(), by=self.by)
        return Response(status=204)

    @operation(
        "reset_factors",
        "Remove the second factors of a user",
        "For a user who has lost their device. It cannot be undone.",
    )
    def reset_factors(self, request: Request, user: str) -> Response:
        users.reset_factors(self.user(), by=self.by)
        return Response(status=204)

    def serializer_context(self) -> dict[str, Any]:
        return {**super().serializer_context(), "factors": getattr(self, "_factors", None)}


class UserTokenViewSet(ServerViewSet):
    tag = "Users"
    capabilities = dict.fromkeys(("index", "destroy"), Capability.GRANT)

    @operation(
        "list_user_tokens", "List the tokens of a user", answer=page_of(serializers.UserTokenSerializer)
    )
    def index(self, request: Request, user: str) -> Response:
        return self.answer_page(Page(list(api_tokens.for_user(self.user()))))

    @operation("revoke_user_token", "Revoke a token of a user", "It is refused from the next request on.")
    def destroy(self, request: Request, user: str, token: int) -> Response:
        api_token = get_object_or_404(api_tokens.for_user(self.user()), pk=token)
        api_tokens.revoke(api_token, by=self.by)
        return Response(status=204)


class _InvitationViewSet(ApiViewSet):
    tag = "Invitations"

    def list(self, account: Account | None) -> Response:
        return self.answer_page(Page(list(invitations.pending(account))))

    def issue(self, account: Account | None, *, is_admin: bool = False) -> Response:
        data = self.read_body()
        offer = Offer(data["note"], account, Role[data["role"].upper()], is_admin, data["days"])
        inviter = self.token.user
        assert isinstance(inviter, User)
        self._token = invitations.issue(offer, inviter, by=self.by)
        return self.answer_created(invitations.find(link_tokens.hash_of(self._token)), is_new=True)

    def withdraw(self, account: Account | None, number: int) -> Response:
        invitation: Invitation = get_object_or_404(invitations.pending(account), pk=number)
        invitations.withdraw(invitation, by=self.by)
        return Response(status=204)

    def serializer_context(self) -> dict[str, Any]:
        return {**super().serializer_context(), "token": getattr(self, "_token", "")}


class InvitationViewSet(_InvitationViewSet, AccountScopedViewSet):
    capabilities = dict.fromkeys(("index", "create", "destroy"), Capability.GRANT)

    @operation(
        "list_invitations",
        "List the open invitations to an account",
        answer=page_of(serializers.InvitationSerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        return self.list(self.account)

    @operation(
        "invite",
        "Invite to an account",
        "The link is only shown in this response; the user who opens it gets the role.",
        body=serializers.NewInvitationSerializer,
        answer=serializers.IssuedInvitationSerializer,
        is_creation=True,
        example={"note": "Grace", "role": "editor"},
    )
    def create(self, request: Request, account: str) -> Response:
        return self.issue(self.account)

    @operation("withdraw_invitation", "Withdraw an invitation", "Its link no longer works.")
    def destroy(self, request: Request, account: str, invitation: int) -> Response:
        return self.withdraw(self.account, invitation)


class ServerInvitationViewSet(_InvitationViewSet, ServerViewSet):
    operation_suffix: ClassVar[str] = "_of_server"
    capabilities = dict.fromkeys(("index", "create", "destroy"), Capability.GRANT)

    @operation(
        "list_invitations",
        "List the open invitations to the server and all accounts",
        answer=page_of(serializers.InvitationSerializer),
    )
    def index(self, request: Request) -> Response:
        return self.list(None)

    @operation(
        "invite",
        "Invite to the server",
        "The link is only shown in this response; the user who opens it gets the role in the account, if one is named,"
        " and becomes an admin if you say so.",
        body=serializers.NewServerInvitationSerializer,
        answer=serializers.IssuedInvitationSerializer,
        is_creation=True,
        problems=[problems.NOT_FOUND],
        example={"note": "Grace", "account": "shop", "role": "owner"},
    )
    def create(self, request: Request) -> Response:
        data = self.read_body()
        name = data.get("account")
        account = access.find_account(self.token, name, Capability.GRANT)[0] if name else None
        return self.issue(account, is_admin=data["is_admin"])

    @operation("withdraw_invitation", "Withdraw an invitation", "Its link no longer works.")
    def destroy(self, request: Request, invitation: int) -> Response:
        return self.withdraw(None, invitation)
