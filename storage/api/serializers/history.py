"""The versions of an entity."""

import json
from typing import Annotated, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from storage.api.serializers.changes import ChangeActorSerializer
from storage.domain.entities.entity import StoredEntity, write_document
from storage.domain.entities.moments import read_moment
from storage.domain.history.recorded import Op
from storage.domain.values.edm import write_datetime
from storage.domain.values.names import LONGEST_KEY
from storage.history.versions import TOP
from storage.rest.answers import TypedSerializer
from storage.rest.fields import StrictCharField
from storage.rest.paging import PageParameters


@extend_schema_field({"type": "string", "format": "date-time"})
class AsOfField(StrictCharField):
    """A time as Timestamps are written."""

    def to_internal_value(self, data: Any) -> Any:
        found = read_moment(super().to_internal_value(data))
        if found is None:
            raise serializers.ValidationError("Give a time such as 2026-11-30T18:00:00Z.")
        return found


class VersionParameters(PageParameters):
    pk = serializers.CharField(
        max_length=LONGEST_KEY, allow_blank=True, trim_whitespace=False, help_text="The PartitionKey."
    )
    rk = serializers.CharField(
        max_length=LONGEST_KEY, allow_blank=True, trim_whitespace=False, help_text="The RowKey."
    )
    as_of = AsOfField(
        required=False,
        help_text="Take the table that had the name at this time. Default: the table that has the name now, "
        "or else the last one that had it.",
    )
    limit = serializers.IntegerField(
        min_value=1, max_value=TOP, default=TOP, help_text="Maximum number of items."
    )


class VersionActorSerializer(ChangeActorSerializer):
    names = (*ChangeActorSerializer.names, "address", "agent")


class StoredEntityField(serializers.DictField):
    """An entity as the Table service writes it."""

    def to_representation(self, value: StoredEntity) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(write_document(value))
        return found


class VersionSerializer(TypedSerializer):
    sequence: Annotated[int, "Grows with each change of the entity."]
    operation: str = serializers.ChoiceField(choices=[op.word for op in Op], source="kind")
    timestamp: Annotated[str, "The new Timestamp; of a deletion, when it was made."]
    request_id: Annotated[str, {"source": "actor.request_id"}, "Shared by all changes of a request."]
    actor: VersionActorSerializer
    before: StoredEntity | None = StoredEntityField(
        allow_null=True, help_text="The entity before, as the Table service writes it; null for an insertion."
    )
    after: StoredEntity | None = StoredEntityField(
        allow_null=True, help_text="The entity after; null for a deletion."
    )

    def get_timestamp(self, version: Any) -> str:
        return write_datetime(version.ticks)
