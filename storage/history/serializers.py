"""Changes and versions as the management API shows and reads them."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.domain.access.actor import Actor
from storage.domain.entities.entity import StoredEntity, write_document
from storage.domain.entities.moments import read_moment
from storage.domain.history.recorded import Op
from storage.domain.values.dialects import LONGEST_KEY
from storage.domain.values.edm import write_datetime
from storage.history import versions
from storage.history.feed import (
    NOW,
    OLDEST,
    TOP,
    Start,
)
from storage.rest.answers import TypedSerializer
from storage.rest.fields import InstantField, IntegerParameterField, QueryParameters, StrictCharField
from storage.rest.paging import PageParameters

TABLE_LIMIT: Final = 100  # tables in one feed


TOKEN_LIMIT: Final = 8000  # characters


class StartField(InstantField):
    """`now`, `oldest`, or a time."""

    def to_internal_value(self, value: Any) -> Start:  # type: ignore[override]
        match value:
            case "now":
                return NOW
            case "oldest":
                return OLDEST
        return Start(is_now=False, since=super().to_internal_value(value))


class ChangeParameters(QueryParameters):
    table = serializers.ListField(
        child=serializers.CharField(max_length=255),
        max_length=TABLE_LIMIT,
        required=False,
        help_text="Only changes of this table; repeat it for several.",
    )
    after = serializers.CharField(
        max_length=TOKEN_LIMIT, required=False, help_text="The `token` of the previous page."
    )
    start = StartField(
        required=False,
        help_text="Where to start without a token: `now` (the default), `oldest` for all changes that are kept, or a"
        " time such as `2026-11-30T18:00:00Z`.",
    )
    top = IntegerParameterField(
        min_value=1, max_value=TOP, default=TOP, help_text="Maximum number of changes."
    )
    shape = serializers.ChoiceField(
        choices=["tablero", "cosmos"], default="tablero", help_text="`cosmos`: as Cosmos DB writes them."
    )

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        return {"from" if name == "start" else name: field for name, field in fields.items()}

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "from" in given and "after" in given:
            raise ValidationError({"from": ["Send either a token or a start, not both."]})
        return given


class ChangeActorSerializer(TypedSerializer):
    of = Actor
    names: ClassVar[Sequence[str]] = ("kind", "name", "token", "label")


class ChangeSerializer(TypedSerializer):
    sequence: Annotated[int, "Grows with each change of an entity."]
    operation: str = serializers.ChoiceField(choices=[op.word for op in Op])
    table: str
    partition_key: str
    row_key: str
    timestamp: Annotated[datetime, "The new Timestamp; of a deletion, when it was made."]
    request_id: Annotated[str, "Shared by all changes of a request."]
    actor: ChangeActorSerializer
    before: Annotated[
        dict[str, Any] | None, "The entity before, as the Table service writes it; null for an insertion."
    ]
    after: Annotated[dict[str, Any] | None, "The entity after; null for a deletion."]


class ChangeListSerializer(TypedSerializer):
    items: list[ChangeSerializer]
    token: Annotated[str, "Keep it to read what comes after these changes."]
    has_more: Annotated[bool, "Whether there may be more changes already."]
    next: str = serializers.URLField(help_text="The address of the next page, which contains the token.")


@extend_schema_field({"type": "string", "format": "date-time"})
class AsOfField(StrictCharField):
    """Time in the format of Timestamps."""

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
    limit = IntegerParameterField(
        min_value=1, max_value=versions.TOP, default=versions.TOP, help_text="Maximum number of items."
    )


class VersionActorSerializer(ChangeActorSerializer):
    names = (*ChangeActorSerializer.names, "address", "agent")


class StoredEntityField(serializers.DictField):
    """Entity in the Table service's format."""

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
