"""Access to pages: decorators of views that check the user's role."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.models import User
from console.site import roles
from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, may
from storage.domain.entities.moments import read_moment
from storage.domain.errors import StorageError
from storage.domain.values.kinds import AccountKind
from storage.history import past
from storage.models import Account, Table
from storage.people.members import role_in
from storage.tables import tables

P = ParamSpec("P")
AccountView = Callable[Concatenate[HttpRequest, Account, P], HttpResponseBase]
TableView = Callable[Concatenate[HttpRequest, Table, P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


@dataclass(frozen=True, slots=True)
class AccountContext:
    """Account of a page, with the user's role in it."""

    account: Account
    role: Role


AS_OF: Final = "asof"  # the field of forms and addresses with the moment that they are of
_MOST_SHOWN: Final = 10  # people to ask
ADMIN: Final[Promise] = gettext_lazy("Admin")


def user_of(request: HttpRequest) -> User:
    """Return the user; requires one of the view decorators."""
    return cast("User", request.user)


def account_context(request: HttpRequest) -> AccountContext | None:
    """Return the account context set by account_required; None without it."""
    return getattr(request, "account_context", None)


def role_of(request: HttpRequest) -> Role:
    """Return the user's role; requires account_required."""
    current = account_context(request)
    assert current is not None
    return current.role


def actor_of(request: HttpRequest) -> Actor:
    """Return the request's user as an actor."""
    return actor_named(request, user_of(request).get_username())


def actor_named(request: HttpRequest, username: str) -> Actor:
    """Return an actor for a user who is not signed in yet."""
    return Actor(
        ActorKind.USER,
        username,
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("User-Agent", "")[:256],
        getattr(request, "number", ""),
    )


def account_required(capability: Capability) -> Callable[[AccountView[P]], View[P]]:
    """Pass the account in the URL to the view if the user has the capability there.

    An account the user is not a member of is answered with 404.
    """

    def decorate(view: AccountView[P]) -> View[P]:
        @wraps(view)
        def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            account = accounts.find(cast("str", kwargs.pop("account")))
            role = None if account is None else role_in(user_of(request), account)
            if account is None:
                raise Http404
            if role is None:
                raise AccountNotShown(account)
            request.account_context = AccountContext(account, role)  # type: ignore[attr-defined]
            if not may(role, capability):
                raise RoleNeeded(capability, account)
            return view(request, account, *args, **kwargs)

        return cast("View[P]", login_required(check))

    return decorate


def require_storage(account: Account) -> None:
    """Raise Http404 for a Cosmos account, which has no policies and service properties."""
    if account.kind != AccountKind.STORAGE:
        raise Http404


def table_of(request: HttpRequest) -> Table:
    """Return the table in the URL, cached; requires account_required, raises Http404."""
    table: Table | None = getattr(request, "table", None)
    if table is None:
        current, match = account_context(request), request.resolver_match
        assert current is not None
        assert match is not None
        name = match.kwargs["table"]
        table = _find_then(request, current.account, name) or find_table(current.account, name)
        request.table = table  # type: ignore[attr-defined]
    return table


def _find_then(request: HttpRequest, account: Account, name: str) -> Table | None:
    moment = read_moment(request.GET.get(AS_OF) or request.POST.get(AS_OF, ""))
    if moment is None:
        return None
    try:
        table = past.find_table(account, name, moment)
    except StorageError:
        return None
    table.account = account
    return table


def find_table(account: Account, name: str) -> Table:
    """Return a table by name in any letter case; raises Http404."""
    try:
        table = tables.get(account, name)
    except StorageError:
        raise Http404 from None
    table.account = account
    return table


def table_required(capability: Capability) -> Callable[[TableView[P]], View[P]]:
    """Pass the table in the URL to the view, with its account, if the user has the capability there."""

    def decorate(view: TableView[P]) -> View[P]:
        @wraps(view)
        def find(
            request: HttpRequest, account: Account, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            del kwargs["table"]
            return view(request, table_of(request), *args, **kwargs)

        return account_required(capability)(find)

    return decorate


def table_page(capability: Capability) -> Callable[[TableView[P]], View[P]]:
    """Pass the table in the URL to its page, redirecting names in other letter case."""

    def decorate(view: TableView[P]) -> View[P]:
        @wraps(view)
        def find(
            request: HttpRequest, table: Table, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            match = request.resolver_match
            assert match is not None
            if match.kwargs["table"] != table.name:
                names = match.kwargs | {"account": table.account.name, "table": table.name}
                return redirect(reverse(match.view_name, kwargs=names, query=request.GET), permanent=True)
            return view(request, table, *args, **kwargs)

        return table_required(capability)(find)

    return decorate


def admin_required(view: View[P]) -> View[P]:
    @wraps(view)
    def check(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not user_of(request).is_admin:
            raise RoleNeeded(None)
        return view(request, *args, **kwargs)

    return cast("View[P]", login_required(check))


class AccountNotShown(Http404):
    """The user is not a member of the account, whose existence must not be revealed."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self.account = account


class RoleNeeded(PermissionDenied):
    """A page needs a higher role.

    ``role`` is the lowest role with the capability; None if only an admin of the server may open it.
    """

    def __init__(self, capability: Capability | None, account: Account | None = None) -> None:
        self.role = None if capability is None else LEAST_ROLE[capability]
        self.account = account
        label = ADMIN if self.role is None else roles.label(self.role)
        super().__init__(_("This requires the %(role)s role.") % {"role": label})


def users_with_role(needed: RoleNeeded) -> list[User]:
    """Return the members with a required role in the account, or else the admins."""
    active = User.objects.filter(is_active=True).order_by("username")
    members = active.filter(
        memberships__account=needed.account,
        memberships__role__in=[role for role in Role if role >= (needed.role or 0)],
    )
    return list((members if needed.account else active.none())[:_MOST_SHOWN]) or list(
        active.filter(is_admin=True)[:_MOST_SHOWN]
    )
