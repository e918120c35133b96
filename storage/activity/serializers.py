"""Activities as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated, Any

from rest_framework import serializers

from storage.activity.actors import actor_of
from storage.core import registry
from storage.domain.access.actor import ActorKind
from storage.domain.values.names import TABLE_NAME_LIMIT
from storage.models import Activity
from storage.rest.answers import TypedSerializer
from storage.rest.fields import PeriodField
from storage.rest.paging import PageParameters


class ActivityParameters(PageParameters):
    verb = serializers.ChoiceField(
        choices=list(registry.verbs()), default="", help_text="Only this kind of activity."
    )
    table = serializers.CharField(
        default="", max_length=TABLE_NAME_LIMIT, help_text="Only activity on this table."
    )
    user = serializers.CharField(default="", max_length=150, help_text="Part of the user's name.")
    since = PeriodField(default=None, help_text="At or after this time.")
    until = PeriodField(default=None, help_text="Before this time.")


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
    """Details of an activity, without the token, which is part of ``actor``."""

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
