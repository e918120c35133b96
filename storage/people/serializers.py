"""Members and tokens as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated

from storage.domain.access.roles import Role, Scope
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    ROLES,
    StrictChoiceField,
    StrictSerializer,
)


class MemberRoleSerializer(StrictSerializer):
    role = StrictChoiceField(choices=ROLES)


class MemberSerializer(TypedSerializer):
    user: Annotated[str, {"source": "user.username"}]
    role: Role
    since: Annotated[datetime, {"source": "created_at"}]


class TokenSerializer(TypedSerializer):
    name: str
    user: Annotated[str, {"source": "user.username"}]
    is_admin: Annotated[bool, {"source": "user.is_admin"}, "Whether the user is an admin of the server."]
    scope: Scope
    account: Annotated[
        str | None, {"source": "account.name"}, "The only account it gives access to; null: all."
    ]
    created_at: datetime
    expires_at: datetime | None
