"""Service properties, members, activity, and the token itself."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.paging import PageParameters
from storage.api.serializers.accounts import ROLES
from storage.api.serializers.fields import Choice, Flag, Instant, Number, Strict, Text
from storage.domain.access.actor import ActorKind
from storage.domain.access.roles import Scope
from storage.domain.service import service_properties
from storage.domain.service.activity import Verb


class Logging(Strict):
    read = Flag(default=False)
    write = Flag(default=False)
    delete = Flag(default=False)
    retention = Number(
        allow_null=True, default=None, min_value=1, max_value=365, help_text="Days; null keeps all."
    )


class Metrics(Strict):
    enabled = Flag(default=False)
    include_apis = Flag(default=False, help_text="A row for each operation beside the one of all.")
    retention = Number(
        allow_null=True, default=None, min_value=1, max_value=365, help_text="Days; null keeps all."
    )


class CorsRule(Strict):
    origins = serializers.ListField(child=Text(max_length=256), min_length=1, max_length=64)
    methods = serializers.ListField(child=Text(max_length=16), min_length=1, max_length=8)
    allowed_headers = serializers.ListField(child=Text(max_length=256), default=list, max_length=66)
    exposed_headers = serializers.ListField(child=Text(max_length=256), default=list, max_length=66)
    max_age = Number(min_value=0, max_value=2**31 - 1, help_text="Seconds.")


class ServiceProperties(Strict):
    """All of them: they take the place of those there were."""

    logging = Logging()
    hour_metrics = Metrics()
    minute_metrics = Metrics()
    cors = CorsRule(many=True, max_length=5)

    def validate(self, attrs: dict[str, Any]) -> Any:
        properties = read_properties(attrs)
        wrong: dict[str, Any] = {}
        for fault in service_properties.find_faults(properties):
            within: Any = wrong
            for step in fault.where[:-1]:
                within = within.setdefault(step, {})
            within[fault.where[-1]] = [fault.error.text]
        if wrong:
            raise ValidationError(wrong)
        return {"properties": properties}


def read_properties(data: dict[str, Any]) -> service_properties.ServiceProperties:
    return service_properties.ServiceProperties(
        service_properties.Logging(**data["logging"]),
        service_properties.Metrics(**data["hour_metrics"]),
        service_properties.Metrics(**data["minute_metrics"]),
        tuple(_read_rule(rule) for rule in data["cors"]),
    )


def _read_rule(rule: dict[str, Any]) -> service_properties.CorsRule:
    return service_properties.CorsRule(
        tuple(rule["origins"]),
        tuple(rule["methods"]),
        tuple(rule["allowed_headers"]),
        tuple(rule["exposed_headers"]),
        rule["max_age"],
    )


class Membership(Strict):
    role = Choice(choices=ROLES)


class Member(serializers.Serializer[Any]):
    user = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    since = Instant()


class Members(serializers.Serializer[Any]):
    items = Member(many=True)


class ActivityParameters(PageParameters):
    verb = serializers.ChoiceField(choices=[verb.value for verb in Verb], default="", help_text="Only this.")
    table = serializers.CharField(default="", max_length=63, help_text="Only what was done to this table.")
    user = serializers.CharField(default="", max_length=150, help_text="A part of the name of who did it.")
    since = serializers.DateTimeField(default=None, help_text="Not before.")
    until = serializers.DateTimeField(default=None, help_text="Before.")


class Actor(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=[kind.value for kind in ActorKind])
    name = serializers.CharField()
    token = serializers.CharField(help_text="The name of the API token, if it was one.")
    address = serializers.CharField()
    agent = serializers.CharField()


class Activity(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = Instant()
    verb = serializers.CharField()
    actor = Actor()
    account = serializers.CharField()
    table = serializers.CharField()
    detail = serializers.DictField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    undoes = serializers.IntegerField(allow_null=True, help_text="What it took back.")
    entities = serializers.IntegerField(help_text="How many were changed.")


class Activities(serializers.Serializer[Any]):
    items = Activity(many=True)
    next = serializers.URLField(allow_null=True)


class Token(serializers.Serializer[Any]):
    name = serializers.CharField()
    user = serializers.CharField()
    is_admin = serializers.BooleanField(help_text="Whether the user is an admin of the server.")
    scope = serializers.ChoiceField(choices=[scope.value for scope in Scope])
    account = serializers.CharField(allow_null=True, help_text="The only one it is for; null: all.")
    created_at = Instant()
    expires_at = Instant(allow_null=True)
