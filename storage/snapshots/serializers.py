"""Snapshots and schedules as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated, Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    LifetimeField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from storage.snapshots.schedule import (
    NAME_LIMIT,
    Schedule,
    SnapshotReason,
    is_snapshot_name,
)

_TABLES_LIMIT: Final = 10_000


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"})
class SnapshotNameField(StrictCharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=NAME_LIMIT, **options)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if not is_snapshot_name(name):
            raise ValidationError(
                "The name of a snapshot has up to 64 letters, digits, periods, hyphens and underscores."
            )
        return name


def table_names_field(**options: Any) -> serializers.ListField:
    child = StrictCharField(max_length=255)
    return serializers.ListField(
        child=child, min_length=1, max_length=_TABLES_LIMIT, required=False, **options
    )


class SnapshotTableSerializer(TypedSerializer):
    name: str
    entities: Annotated[int, "An estimate unless `is_copied`."]
    size: Annotated[int, "Bytes of the table on disk when the snapshot was taken."]
    is_copied: Annotated[bool, "Whether its entities are stored apart from the history of the account."]


class SnapshotSerializer(TypedSerializer):
    # fields of a Snapshot

    id: int
    name: str
    reason: SnapshotReason = serializers.ChoiceField(
        choices=[it.value for it in SnapshotReason if it is not SnapshotReason.BRANCH],
        help_text="`user`: on request; `schedule`; `restore`, `deletion`: taken before one.",
    )
    taken_at: datetime
    taken_by: Annotated[str, {"source": "actor"}, "Empty for the server."]
    expires_at: Annotated[datetime | None, "When it is deleted; null if it is kept."]
    tables: Annotated[list[SnapshotTableSerializer], {"source": "tables.all"}]


class NewSnapshotSerializer(StrictSerializer):
    name = SnapshotNameField()
    tables = table_names_field(help_text="Names; by default all tables.")
    ttl = LifetimeField(
        required=False, help_text="When it is deleted: `8h`, `2d`, `1w`; by default it is kept."
    )


class SnapshotChangeSerializer(StrictSerializer):
    name = SnapshotNameField(required=False)
    ttl = LifetimeField(required=False, help_text="When it is deleted, from now.")
    keep = StrictBooleanField(required=False, help_text="If true, it is not deleted by the server.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("keep") and "ttl" in attrs:
            raise ValidationError({"ttl": ["Send either ttl or keep, not both."]})
        if attrs.get("keep") is False and "ttl" not in attrs:
            raise ValidationError({"ttl": ["Send how long the snapshot is kept."]})
        return attrs


class ScheduleAnswerSerializer(TypedSerializer):
    schedule: Schedule | None


class NewScheduleSerializer(StrictSerializer):
    hour = StrictIntegerField(min_value=0, max_value=23)
    weekday = StrictIntegerField(min_value=0, max_value=6, allow_null=True, default=None)
    keep = StrictIntegerField(min_value=1, max_value=366, default=7)
