"""Who may do what: the role of the token's user, the scope of the token, and the account that it is for.

The table of roles is the pages' own; a view names the capability of each of its actions.
"""

from typing import Any

from django.http import Http404
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from storage.api import problems
from storage.api.authentication import REALM
from storage.api.problems import Problem
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, Scope, may, reaches
from storage.models import Account, ApiToken
from storage.operations import accounts, members


class TokenMay(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        token = request.auth
        if not isinstance(token, ApiToken):
            return False
        capability = view.capabilities.get(view.action)
        if capability is not None:  # else there is no such method, which is said next
            check_scope(token, capability)
            view.look(token, capability)
        return True


def check_scope(token: ApiToken, capability: Capability) -> None:
    scope = Scope(token.scope)
    if not reaches(scope, capability):
        needed = least_scope(capability)
        header = f'{REALM}, error="insufficient_scope", scope="{needed}"'
        detail = f"This needs a token of the scope {needed}; this one has {scope}."
        raise Problem(problems.OUT_OF_SCOPE, detail, headers={"WWW-Authenticate": header})


def least_scope(capability: Capability) -> Scope:
    return next(scope for scope in Scope if reaches(scope, capability))


def find_account(token: ApiToken, name: str, capability: Capability) -> tuple[Account, Role]:
    """The account of an address and the user's role in it; one that is not for the token is not there."""
    account = accounts.find(name)
    if account is None or (token.account_id is not None and token.account_id != account.pk):
        raise Http404
    role = members.role_in(token.user, account)
    if role is None:
        raise Http404
    if not may(role, capability):
        raise role_needed(LEAST_ROLE[capability].name.lower(), account.name)
    return account, role


def check_server(token: ApiToken) -> None:
    """For what concerns no account, or makes one."""
    if not token.user.is_admin:
        raise Problem(problems.FORBIDDEN, "This is for admins of the server.")
    if token.account_id is not None:
        raise Problem(problems.FORBIDDEN, "This needs a token for the whole server.")


def role_needed(role: str, account: str) -> Problem:
    return Problem(problems.FORBIDDEN, f"This needs the role {role} in the account {account}.")
