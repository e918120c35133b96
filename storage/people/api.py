"""Members of accounts, and the token of the request in the management API."""

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability, Role
from storage.models import Membership
from storage.people import members, serializers
from storage.people.members import LastOwner, Person
from storage.rest import problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page
from storage.rest.problems import Problem
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet, ApiViewSet


class MemberViewSet(AccountScopedViewSet):
    tag = "Members"
    capabilities = {"index": Capability.READ, "update": Capability.GRANT, "destroy": Capability.GRANT}

    @operation(
        "list_members",
        "List the members of an account",
        "Owners come first, then by name.",
        answer=page_of(serializers.MemberSerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        return self.answer_page(Page(members.members(self.account)))

    @operation(
        "set_member",
        "Add a member or change their role",
        "The user must exist on this server. The last owner must remain an owner.",
        body=serializers.MemberRoleSerializer,
        answer=serializers.MemberSerializer,
        problems=[problems.CONFLICT],
        example={"role": "editor"},
    )
    def update(self, request: Request, account: str, user: str) -> Response:
        person = _find_person(user)
        role = Role[self.read_body()["role"].upper()]
        try:
            members.set_role(self.account, person, role, by=self.by)
        except LastOwner:
            raise _last_owner_problem(person) from None
        return self.answer(self._membership(person))

    @operation(
        "remove_member",
        "Remove a member",
        "The last owner cannot be removed.",
        problems=[problems.CONFLICT],
    )
    def destroy(self, request: Request, account: str, user: str) -> Response:
        person = _find_person(user)
        self._membership(person)
        try:
            members.remove(self.account, person, by=self.by)
        except LastOwner:
            raise _last_owner_problem(person) from None
        return Response(status=204)

    def _membership(self, person: Person) -> Membership:
        found = [one for one in members.members(self.account) if one.user_id == person.pk]
        if not found:
            raise Http404
        return found[0]


def _find_person(name: str) -> Person:
    return or_404(members.find_person(name.lower()) if name.isascii() and name.isprintable() else None)


def _last_owner_problem(person: Person) -> Problem:
    detail = f"{person.username} is the last owner of the account; add another owner first."
    return Problem(problems.CONFLICT, detail)


class TokenViewSet(ApiViewSet):
    tag = "Token"
    capabilities = {"retrieve": Capability.READ}

    @operation(
        "get_token",
        "Get the token of this request",
        "Returns its user, scope, account and expiry.",
        answer=serializers.TokenSerializer,
    )
    def retrieve(self, request: Request) -> Response:
        return self.answer(self.token)


urlpatterns = [
    api_path("token", TokenViewSet, "token", get="retrieve"),
    api_path(f"{ACCOUNT}/members", MemberViewSet, "members", get="index"),
    api_path(f"{ACCOUNT}/members/<str:user>", MemberViewSet, "member", put="update", delete="destroy"),
]
