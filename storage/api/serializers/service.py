"""Service properties, members, the activity log and the token of the request."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.accounts import service_properties as operations
from storage.activity.actors import actor_of
from storage.core import registry
from storage.domain.access.actor import ActorKind
from storage.domain.access.roles import Role, Scope
from storage.domain.service_properties.properties import DEFAULT_PROPERTIES, ServiceProperties, find_faults
from storage.models import Activity
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    ROLES,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from storage.rest.paging import PageParameters
from storage.runtime.replicas import ReplicaStatus


class RetentionField(StrictIntegerField):
    def __init__(self, **options: Any) -> None:
        defaults = {"allow_null": True, "default": None, "min_value": 1, "max_value": 365}
        super().__init__(**defaults, help_text="Days; null keeps everything.", **options)


class LoggingSerializer(StrictSerializer):
    read = StrictBooleanField(default=False)
    write = StrictBooleanField(default=False)
    delete = StrictBooleanField(default=False)
    retention = RetentionField()


class MetricsSerializer(StrictSerializer):
    enabled = StrictBooleanField(default=False)
    include_apis = StrictBooleanField(default=False)
    retention = RetentionField()


class CorsRuleSerializer(StrictSerializer):
    origins = serializers.ListField(child=StrictCharField(max_length=256), min_length=1, max_length=64)
    methods = serializers.ListField(child=StrictCharField(max_length=16), min_length=1, max_length=8)
    allowed_headers = serializers.ListField(
        child=StrictCharField(max_length=256), default=list, max_length=66
    )
    exposed_headers = serializers.ListField(
        child=StrictCharField(max_length=256), default=list, max_length=66
    )
    max_age = StrictIntegerField(min_value=0, max_value=2**31 - 1, help_text="Seconds.")


class ServicePropertiesSerializer(StrictSerializer):
    """All service properties; they replace the existing ones."""

    logging = LoggingSerializer()
    hour_metrics = MetricsSerializer()
    minute_metrics = MetricsSerializer()
    cors = CorsRuleSerializer(many=True, max_length=5)

    def validate(self, attrs: dict[str, Any]) -> Any:
        """Return the properties under the name ``properties``; serializers validate to a dict."""
        return {"properties": check_properties(attrs)}


def check_properties(attrs: Mapping[str, Any]) -> ServiceProperties:
    """Return properties, with defaults for those that are left out; raise a ValidationError for invalid values."""
    properties = operations.read({**operations.write(DEFAULT_PROPERTIES), **attrs})
    errors: dict[str, Any] = {}
    for fault in find_faults(properties):
        within: Any = errors
        for step in fault.where[:-1]:
            within = within.setdefault(step, {})
        within[fault.where[-1]] = [fault.error.text]
    if errors:
        raise ValidationError(errors)
    return properties


class MemberRoleSerializer(StrictSerializer):
    role = StrictChoiceField(choices=ROLES)


class MemberSerializer(TypedSerializer):
    user: Annotated[str, {"source": "user.username"}]
    role: Role
    since: Annotated[datetime, {"source": "created_at"}]


class ActivityParameters(PageParameters):
    verb = serializers.ChoiceField(
        choices=list(registry.verbs()), default="", help_text="Only this kind of activity."
    )
    table = serializers.CharField(default="", max_length=63, help_text="Only activity on this table.")
    user = serializers.CharField(default="", max_length=150, help_text="Part of the user's name.")
    since = serializers.DateTimeField(default=None, help_text="At or after this time.")
    until = serializers.DateTimeField(default=None, help_text="Before this time.")


class ActorSerializer(TypedSerializer):
    kind: Annotated[ActorKind, {"source": "actor_kind"}]
    name: Annotated[str, {"source": "actor"}]
    label: Annotated[str, "Label of the SAS token, whose name is its fingerprint; empty: none."]
    token: Annotated[
        str,
        {"source": "detail.by_token", "read_only": True, "default": ""},
        "Name of the API token that was used; empty: none.",
    ]
    address: str
    agent: str

    def get_label(self, done: Activity) -> str:
        return actor_of(done).label


class DetailField(serializers.DictField):
    """The details of an activity, without the token that ``actor`` names."""

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: member for name, member in value.items() if name != "by_token"}


class ActivitySerializer(TypedSerializer):
    id: int
    at: datetime
    verb: str
    actor: Annotated[ActorSerializer, {"source": "*"}]
    account: Annotated[str, {"source": "account_name"}]
    table: Annotated[str, {"source": "table_name"}]
    detail: dict[str, Any] = DetailField()
    before: Any | None
    after: Any | None
    undoes: Annotated[int | None, {"source": "undoes_id"}, "Id of the activity that this one undoes."]
    entities: Annotated[int, {"source": "changed"}, "Number of changed entities."]


class ReplicaSerializer(TypedSerializer):
    of = ReplicaStatus
    synchronized_at: Annotated[datetime | None, "The replica has everything that was acknowledged before."]

    def to_representation(self, instance: ReplicaStatus) -> Any:
        at = instance.synchronized_at
        moment = None if at is None else datetime.fromtimestamp(at, UTC)
        return super().to_representation({**asdict(instance), "synchronized_at": moment})


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
