"""Service properties, members, the activity log and the token of the request."""

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import service_properties
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.api.serializers import service as serializers
from storage.backups import backups
from storage.backups.backups import BackupState
from storage.core import registry
from storage.domain.access.roles import Capability, Role
from storage.domain.service_properties.properties import ServiceProperties
from storage.models import ApiToken, Membership
from storage.people import members
from storage.people.members import LastOwner, Person
from storage.rest import access, etags, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IF_MATCH, operation
from storage.rest.paging import Page
from storage.rest.problems import Problem
from storage.rest.views import AccountScopedViewSet, ApiViewSet
from storage.runtime import replicas


class ServicePropertiesViewSet(AccountScopedViewSet):
    tag = "Service properties"
    capabilities = {"retrieve": Capability.READ, "update": Capability.MANAGE_ACCESS}

    @operation(
        "get_service_properties",
        "Get the service properties",
        answer=serializers.ServicePropertiesSerializer,
        has_etag=True,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return self.answer_with_etag(service_properties.for_account(self.account))

    @operation(
        "set_service_properties",
        "Set the service properties",
        "Replaces logging, metrics and all CORS rules. Logging and metrics are only stored.",
        body=serializers.ServicePropertiesSerializer,
        answer=serializers.ServicePropertiesSerializer,
        headers=[IF_MATCH],
        problems=[problems.PRECONDITION, problems.NO_METHOD],
        has_etag=True,
        example={
            "logging": {"write": True, "delete": True, "retention": 7},
            "hour_metrics": {"enabled": True, "include_apis": True, "retention": 7},
            "minute_metrics": {"enabled": False},
            "cors": [
                {
                    "origins": ["http://localhost:5173"],
                    "methods": ["GET"],
                    "allowed_headers": ["*"],
                    "max_age": 60,
                }
            ],
        },
    )
    def update(self, request: Request, account: str) -> Response:
        wanted: ServiceProperties = self.read_body()["properties"]

        def replace(former: ServiceProperties) -> ServiceProperties:
            etags.check_match(request, self.serialize(former))
            return wanted

        service_properties.replace(self.account, replace, by=self.by)
        return self.answer_with_etag(wanted)


class MemberViewSet(AccountScopedViewSet):
    tag = "Members"
    capabilities = {"index": Capability.READ, "update": Capability.OWN, "destroy": Capability.OWN}

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
    found = members.find_person(name.lower()) if name.isascii() and name.isprintable() else None
    if found is None:
        raise Http404
    return found


def _last_owner_problem(person: Person) -> Problem:
    detail = f"{person.username} is the last owner of the account; add another owner first."
    return Problem(problems.CONFLICT, detail)


class ActivityViewSet(AccountScopedViewSet):
    tag = "Activity"
    capabilities = {"index": Capability.READ}

    @operation(
        "list_activity",
        "List the activity in an account",
        "Returns what users, scripts, commands and the server did, newest first.",
        answer=page_of(serializers.ActivitySerializer),
        query=serializers.ActivityParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        return _answer_activity(self, [self.account.pk])


class ServerActivityViewSet(ApiViewSet):
    tag = "Activity"
    capabilities = {"index": Capability.OWN}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "list_server_activity",
        "List the activity on the server",
        "Returns the activity in all accounts, and that which concerns none, such as sign-ins and users. For admins of"
        " the server.",
        answer=page_of(serializers.ActivitySerializer),
        query=serializers.ActivityParameters,
    )
    def index(self, request: Request) -> Response:
        return _answer_activity(self, None)


def _answer_activity(view: ApiViewSet, account_ids: list[int] | None) -> Response:
    wanted = view.read_query()
    found = activity.page(
        ActivityFilter(
            account_ids=account_ids,
            actor=wanted["user"],
            verbs=[registry.verbs()[wanted["verb"]]] if wanted["verb"] else (),
            table=wanted["table"],
            since=wanted["since"],
            until=wanted["until"],
        ),
        before=view.read_number_cursor(wanted["cursor"]),
        top=wanted["limit"],
    )
    return view.answer_page(Page(found.activities, None if found.older is None else str(found.older)))


class ReplicaViewSet(ApiViewSet):
    tag = "Replicas"
    capabilities = {"index": Capability.READ}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "list_replicas",
        "List the replicas",
        "Returns the replicas that this server reads from, in the order of `TABLERO_REPLICAS`, as it sees them now. For"
        " admins of the server.",
        answer=page_of(serializers.ReplicaSerializer),
    )
    def index(self, request: Request) -> Response:
        return self.answer_page(Page(replicas.states()))


class BackupViewSet(ApiViewSet):
    tag = "Backups"
    capabilities = {"retrieve": Capability.READ}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        access.check_server(token)

    @operation(
        "get_backup",
        "Get the state of backups",
        "Returns the last good backup of this server, the last failure, and whether backups are overdue. For admins of"
        " the server.",
        answer=BackupState,
    )
    def retrieve(self, request: Request) -> Response:
        return self.answer(backups.state())


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
