"""Serializers of users, tokens, invitations and saved queries."""

from datetime import datetime
from typing import Annotated, Any, Final

from rest_framework import serializers

from console.models import Invitation, SavedQuery, User
from console.people import invitations, users
from console.queries.saved import GRID_FIELDS
from storage.accounts.serializers import AccountNameField
from storage.domain.access.roles import Role, Scope
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    ROLES,
    OptionalCharField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
    StringMapField,
)
from storage.rest.paging import PageParameters

_LONGEST: Final = 30  # days, as in the console
VIEW_FIELDS: Final = tuple(name for name in GRID_FIELDS if name != "f")


class UserParameters(PageParameters):
    state = serializers.ChoiceField(choices=["active", "disabled"], default="", help_text="By default all.")


class UserRoleSerializer(TypedSerializer):
    account: Annotated[str, {"source": "account.name"}]
    role: Role


class UserSerializer(TypedSerializer):
    name: Annotated[str, {"source": "username"}]
    is_admin: Annotated[bool, "An admin of the server is an owner of every account."]
    is_active: Annotated[bool, "A disabled user cannot sign in, and has no tokens."]
    created_at: datetime
    factors: Annotated[list[str], "Second factors: `passkey`, `totp`."]
    roles: Annotated[list[UserRoleSerializer], {"source": "memberships.all"}]

    def get_factors(self, user: User) -> list[str]:
        known: dict[int, list[str]] | None = self.context.get("factors")
        return (users.second_factors([user]) if known is None else known).get(user.pk, [])


class UserChangeSerializer(StrictSerializer):
    is_admin = StrictBooleanField(required=False)
    is_active = StrictBooleanField(
        required=False, help_text="False signs the user out and revokes their tokens; roles are kept."
    )


class UserTokenSerializer(TypedSerializer):
    id: int
    name: str
    scope: Scope
    account: Annotated[str | None, "The only account it gives access to; null: all."]
    created_at: datetime
    expires_at: datetime | None

    def get_account(self, token: Any) -> str | None:
        return None if token.account is None else str(token.account.name)


class NewInvitationSerializer(StrictSerializer):
    note = OptionalCharField(max_length=150, help_text="To recognize the invitation by.")
    role = StrictChoiceField(choices=ROLES, default="editor")
    days = StrictIntegerField(min_value=1, max_value=_LONGEST, default=7, help_text="When its link expires.")


class NewServerInvitationSerializer(NewInvitationSerializer):
    account = AccountNameField(required=False, help_text="Where the user gets the role; by default nowhere.")
    is_admin = StrictBooleanField(default=False, help_text="The user becomes an admin of the server.")


class InvitationSerializer(TypedSerializer):
    id: int
    note: str
    account: Annotated[str | None, "Null: of no account."]
    role: Role
    is_admin: bool
    invited_by: Annotated[str, {"source": "invited_by.username"}]
    created_at: datetime
    expires_at: datetime

    def get_account(self, invitation: Invitation) -> str | None:
        return None if invitation.account is None else invitation.account.name


class IssuedInvitationSerializer(InvitationSerializer):
    link: Annotated[str, "Works once; it cannot be shown again."]

    def get_link(self, invitation: Invitation) -> str:
        return invitations.link(self.context["request"], self.context["token"])


class QueryFieldsSerializer(StrictSerializer):
    name = StrictCharField(max_length=64)
    description = StrictCharField(max_length=2000, allow_blank=True, required=False)
    filter = StrictCharField(
        max_length=32_000,
        allow_blank=True,
        required=False,
        help_text="An OData filter. `{{name}}` is asked for at each run; `datetime'{{now-24h}}'` is relative.",
    )
    view = StringMapField(
        required=False,
        help_text="How the console shows it, as in the address of its grid: " + ", ".join(VIEW_FIELDS) + ".",
    )
    is_shared = StrictBooleanField(required=False, help_text="With all members of the account.")

    def validate_view(self, view: dict[str, str]) -> dict[str, str]:
        unknown = {name: ["Unknown member."] for name in view if name not in VIEW_FIELDS}
        if unknown:
            raise serializers.ValidationError(unknown)
        return view


class QueryChangeSerializer(QueryFieldsSerializer):
    name = StrictCharField(max_length=64, required=False)


class QuerySerializer(TypedSerializer):
    id: Annotated[str, {"source": "slug"}, "In the path; it stays when the name changes."]
    name: str
    description: str
    filter: str
    view: dict[str, str]
    is_shared: bool
    owner: Annotated[str | None, "Null: the user was removed."]
    updated_at: datetime

    def get_filter(self, query: SavedQuery) -> str:
        return str(query.content.get("f", ""))

    def get_view(self, query: SavedQuery) -> dict[str, str]:
        return {name: str(query.content[name]) for name in VIEW_FIELDS if name in query.content}

    def get_owner(self, query: SavedQuery) -> str | None:
        return None if query.owner is None else query.owner.username
