"""Who may open a page: the decorators by which views ask the table of permissions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.models import User
from console.site import roles
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, may
from storage.domain.errors import StorageError
from storage.models import Account, Table
from storage.operations import accounts, tables
from storage.operations.members import role_in

P = ParamSpec("P")
AccountView = Callable[Concatenate[HttpRequest, Account, P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


@dataclass(frozen=True, slots=True)
class Place:
    """The account that a page is in, and what its reader is there."""

    account: Account
    role: Role


_SHOWN: Final = 10  # people, of those who may
ADMIN: Final[Promise] = gettext_lazy("Admin")


def user_of(request: HttpRequest) -> User:
    """The user of a request that has passed one of the decorators."""
    return cast("User", request.user)


def place_of(request: HttpRequest) -> Place | None:
    """The account of a request that has passed account_required."""
    return getattr(request, "place", None)


def role_of(request: HttpRequest) -> Role:
    """The role of the user in the account of a request that has passed account_required."""
    place = place_of(request)
    assert place is not None  # account_required has passed
    return place.role


def actor_of(request: HttpRequest) -> Actor:
    """Who does what a request asks for."""
    return actor_named(request, user_of(request).get_username())


def actor_named(request: HttpRequest, username: str) -> Actor:
    """Somebody who is not signed in yet."""
    return Actor(
        ActorKind.USER,
        username,
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("User-Agent", "")[:256],
    )


def account_required(capability: Capability) -> Callable[[AccountView[P]], View[P]]:
    """The view gets the account that the address names, if the user may do this there.

    An account that the user may not see does not exist for them.
    """

    def decorate(view: AccountView[P]) -> View[P]:
        @wraps(view)
        def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            account = accounts.find(cast("str", kwargs.pop("account")))
            role = None if account is None else role_in(user_of(request), account)
            if account is None or role is None:
                raise Http404
            if not may(role, capability):
                raise RoleNeeded(LEAST_ROLE[capability], account)
            request.place = Place(account, role)  # type: ignore[attr-defined]
            return view(request, account, *args, **kwargs)

        return cast("View[P]", login_required(check))

    return decorate


def find_table(account: Account, name: str) -> Table:
    """The table that an address names in any letter case; one that is not there has no page."""
    try:
        return tables.get(account.pk, name)
    except StorageError:
        raise Http404 from None


def admin_required(view: View[P]) -> View[P]:
    @wraps(view)
    def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not user_of(request).is_admin:
            raise RoleNeeded(None)
        return view(request, *args, **kwargs)

    return cast("View[P]", login_required(check))


class RoleNeeded(PermissionDenied):
    """``role``: the least that would do in the account; None: that of an admin of the server."""

    def __init__(self, role: Role | None, account: Account | None = None) -> None:
        label = ADMIN if role is None else roles.label(role)
        super().__init__(_("This needs the role %(role)s.") % {"role": label})
        self.role = role
        self.account = account


def who_may(needed: RoleNeeded) -> list[User]:
    """Whom to ask: those in the account who have the role, else the admins."""
    active = User.objects.filter(is_active=True).order_by("username")
    members = active.filter(memberships__account=needed.account, memberships__role__gte=needed.role or 0)
    return list((members if needed.account else active.none())[:_SHOWN]) or list(
        active.filter(is_admin=True)[:_SHOWN]
    )
