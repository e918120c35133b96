"""Service properties, members, activity, and the token that asks."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api import etags, problems
from storage.api.documentation import IF_MATCH, operation
from storage.api.paging import Page, respond
from storage.api.problems import Problem
from storage.api.serializers import service as serializers
from storage.api.views.base import AccountViews, Views
from storage.domain.access.roles import Capability, Role
from storage.domain.service.activity import Verb
from storage.domain.service.service_properties import ServiceProperties
from storage.models import Activity, Membership
from storage.operations import activity, members, service_properties
from storage.operations.activity import ActivityFilter
from storage.operations.members import LastOwner, Person


class ServicePropertiesViews(AccountViews):
    capabilities = {"retrieve": Capability.READ, "update": Capability.MANAGE_ACCESS}

    @operation(
        "get_service_properties",
        "Get the service properties",
        answer=serializers.ServiceProperties,
        has_etag=True,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return _answer(service_properties.get(self.account.pk))

    @operation(
        "set_service_properties",
        "Set the service properties",
        "Logging, metrics and CORS rules, all of them.",
        body=serializers.ServiceProperties,
        answer=serializers.ServiceProperties,
        parameters=[IF_MATCH],
        problems=[problems.PRECONDITION],
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
        wanted: ServiceProperties = self.body(serializers.ServiceProperties)["properties"]

        def replace(former: ServiceProperties) -> ServiceProperties:
            etags.check(request, service_properties.write(former))
            return wanted

        service_properties.replace(self.account.pk, replace, by=self.by)
        return _answer(wanted)


def _answer(properties: ServiceProperties) -> Response:
    content = service_properties.write(properties)
    return Response(content, headers={"ETag": etags.of(content)})


class MembersViews(AccountViews):
    capabilities = {"index": Capability.READ, "update": Capability.OWN, "destroy": Capability.OWN}

    @operation(
        "list_members",
        "List the members of an account",
        "Owners first, then by name.",
        answer=serializers.Members,
    )
    def index(self, request: Request, account: str) -> Response:
        return Response({"items": [_member(found) for found in members.members(self.account)]})

    @operation(
        "set_member",
        "Make somebody a member, or give them another role",
        "Somebody who is a user of this server. The last owner stays one.",
        body=serializers.Membership,
        answer=serializers.Member,
        problems=[problems.CONFLICT],
        example={"role": "editor"},
    )
    def update(self, request: Request, account: str, user: str) -> Response:
        person = _person(user)
        role = Role[self.body(serializers.Membership)["role"].upper()]
        try:
            members.set_role(self.account, person, role, by=self.by)
        except LastOwner:
            raise _last_owner(person) from None
        return Response(_member(self._membership(person)))

    @operation("remove_member", "Remove a member", "The last owner stays.", problems=[problems.CONFLICT])
    def destroy(self, request: Request, account: str, user: str) -> Response:
        person = _person(user)
        self._membership(person)
        try:
            members.remove(self.account, person, by=self.by)
        except LastOwner:
            raise _last_owner(person) from None
        return Response(status=204)

    def _membership(self, person: Person) -> Membership:
        found = [one for one in members.members(self.account) if one.user_id == person.pk]
        if not found:
            raise Http404
        return found[0]


def _member(found: Membership) -> dict[str, Any]:
    return {
        "user": found.user.username,
        "role": Role(found.role).name.lower(),
        "since": found.created_at,
    }


def _person(name: str) -> Person:
    found = members.find_person(name.lower()) if name.isascii() and name.isprintable() else None
    if found is None:
        raise Http404
    return found


def _last_owner(person: Person) -> Problem:
    return Problem(problems.CONFLICT, f"{person.username} is the last owner; make somebody else one first.")


class ActivityViews(AccountViews):
    capabilities = {"index": Capability.READ}

    @operation(
        "list_activity",
        "List what was done in an account",
        "By whomever and through whatever door, the newest first.",
        answer=serializers.Activities,
        parameters=[serializers.ActivityParameters],
    )
    def index(self, request: Request, account: str) -> Response:
        wanted = self.parameters(serializers.ActivityParameters)
        before = wanted["cursor"]
        if before and not (before.isascii() and before.isdigit() and len(before) < 19):
            raise Http404
        found = activity.page(
            ActivityFilter(
                account_ids=[self.account.pk],
                actor=wanted["user"],
                verbs=[Verb(wanted["verb"])] if wanted["verb"] else (),
                table=wanted["table"],
                since=wanted["since"],
                until=wanted["until"],
            ),
            before=int(before) if before else None,
            top=wanted["limit"],
        )
        end = None if found.older is None else str(found.older)
        return respond(request, Page([_write(done) for done in found.activities], end))


def _write(done: Activity) -> dict[str, Any]:
    return {
        "id": done.pk,
        "at": done.at,
        "verb": done.verb,
        "actor": {
            "kind": done.actor_kind,
            "name": done.actor,
            "token": done.detail.get("by_token", ""),
            "address": done.address,
            "agent": done.agent,
        },
        "account": done.account_name,
        "table": done.table_name,
        "detail": {name: value for name, value in done.detail.items() if name != "by_token"},
        "before": done.before,
        "after": done.after,
        "undoes": done.undoes_id,
        "entities": getattr(done, "changed", 0),
    }


class TokenViews(Views):
    capabilities = {"retrieve": Capability.READ}

    @operation(
        "get_token", "Get the token that asks", "What it is for, and until when.", answer=serializers.Token
    )
    def retrieve(self, request: Request) -> Response:
        token = self.token
        return Response(
            {
                "name": token.name,
                "user": token.user.username,
                "is_admin": token.user.is_admin,
                "scope": token.scope,
                "account": None if token.account is None else token.account.name,
                "created_at": token.created_at,
                "expires_at": token.expires_at,
            }
        )
