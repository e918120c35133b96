"""Snapshots, their restore and their schedule, and branches."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.api.serializers.accounts import AccountNameField, CopiedSerializer, LabelsField
from storage.api.serializers.answers import TypedSerializer
from storage.api.serializers.fields import (
    InstantField,
    LifetimeField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StringMapField,
)
from storage.domain.entities.masking import Mask, MaskingError, MaskingRule, read_rules
from storage.domain.entities.restoring import TableAction
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.filters.parser import parse
from storage.domain.service.snapshots import NAME_LIMIT, Schedule, SnapshotReason, is_snapshot_name
from storage.operations.snapshots.account_building import Original

_KEYS_LIMIT: Final = 1000
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


def _table_names(**options: Any) -> serializers.ListField:
    child = StrictCharField(max_length=255)
    return serializers.ListField(
        child=child, min_length=1, max_length=_TABLES_LIMIT, required=False, **options
    )


class SnapshotTableSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    entities = serializers.IntegerField(help_text="An estimate unless `is_copied`.")
    size = serializers.IntegerField(help_text="Bytes of the table on disk when the snapshot was taken.")
    is_copied = serializers.BooleanField(
        help_text="Whether its entities are stored apart from the history of the account."
    )


class SnapshotSerializer(serializers.Serializer[Any]):
    # of a Snapshot

    id = serializers.IntegerField()
    name = serializers.CharField()
    reason = serializers.ChoiceField(
        choices=[it.value for it in SnapshotReason if it is not SnapshotReason.BRANCH],
        help_text="`user`: on request; `schedule`; `restore`, `deletion`: taken before one.",
    )
    taken_at = InstantField()
    taken_by = serializers.CharField(source="actor", help_text="Empty for the server.")
    expires_at = InstantField(allow_null=True, help_text="When it is deleted; null if it is kept.")
    tables = SnapshotTableSerializer(many=True, source="tables.all")


class NewSnapshotSerializer(StrictSerializer):
    name = SnapshotNameField()
    tables = _table_names(help_text="Names; by default all tables.")
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


class EntityKeySerializer(StrictSerializer):
    partition_key = StrictCharField(allow_blank=True, max_length=2048)
    row_key = StrictCharField(allow_blank=True, max_length=2048)


class RestoreSerializer(StrictSerializer):
    tables = _table_names(help_text="Names; by default all tables of the snapshot.")
    entities = EntityKeySerializer(
        many=True,
        required=False,
        max_length=_KEYS_LIMIT,
        help_text="Only these entities, of the one table that is named.",
    )
    policies = StrictBooleanField(default=False, help_text="Restore the stored access policies, too.")
    service_properties = StrictBooleanField(default=False, help_text="Restore the service properties, too.")
    delete_new_tables = StrictBooleanField(
        default=False,
        help_text="Delete tables that were created after the snapshot; they can be restored. Not with `tables`, nor for"
        " a snapshot of some tables.",
    )
    dry_run = StrictBooleanField(default=False, help_text="Only return what would change.")


class RestoredTableSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    action = serializers.ChoiceField(
        choices=[it.value for it in TableAction],
        help_text="What becomes of the table itself: `keep`, `create`, `restore` (it was deleted) or `delete`.",
    )
    inserts = serializers.IntegerField(source="inserted")
    changes = serializers.IntegerField(source="changed")
    deletions = serializers.IntegerField(source="deleted")
    skipped = serializers.IntegerField(help_text="Entities that somebody changed during the restore.")
    policies = serializers.BooleanField(help_text="Whether its policies change.")


class RestoredSerializer(serializers.Serializer[Any]):
    # of an Outcome

    dry_run = serializers.BooleanField(source="is_preview")
    entities = serializers.IntegerField(
        source="written", help_text="Inserts, changes and deletions of all tables."
    )
    tables = RestoredTableSerializer(many=True, source="changed_tables", help_text="Only those that change.")
    service_properties = serializers.BooleanField(help_text="Whether they change.")
    before = serializers.CharField(
        source="before.name",
        allow_null=True,
        help_text="Name of the snapshot of the state before the restore.",
    )
    seconds = serializers.FloatField(allow_null=True)


class ScheduleSerializer(TypedSerializer):
    of = Schedule
    help = {
        "hour": "In UTC.",
        "weekday": "0 is Monday; null: every day.",
        "keep": "How many snapshots of the schedule are kept.",
    }


class ScheduleAnswerSerializer(serializers.Serializer[Any]):
    schedule = ScheduleSerializer(allow_null=True)


class NewScheduleSerializer(StrictSerializer):
    hour = StrictIntegerField(min_value=0, max_value=23)
    weekday = StrictIntegerField(min_value=0, max_value=6, allow_null=True, default=None)
    keep = StrictIntegerField(min_value=1, max_value=366, default=7)


class BranchTableField(serializers.DictField):
    """Filters by the name of a table."""

    def __init__(self, **options: Any) -> None:
        child = StrictCharField(allow_blank=True, allow_null=True, max_length=32_768)
        super().__init__(child=child, allow_empty=False, **options)

    def to_internal_value(self, data: Any) -> dict[str, Filter | None]:
        found = super().to_internal_value(data)
        return {name: _read_filter(text) if text else None for name, text in found.items()}


def _read_filter(text: str) -> Filter | None:
    try:
        return parse(text)
    except StorageError as error:
        raise ValidationError(error.text) from None


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
    }
)
class MaskingField(serializers.DictField):
    """Rules by table and property."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=StringMapField(), **options)

    def to_internal_value(self, data: Any) -> dict[str, dict[str, MaskingRule]]:
        try:
            return {name: read_rules(rules) for name, rules in super().to_internal_value(data).items()}
        except MaskingError as error:
            raise ValidationError(str(error)) from None


class NewBranchSerializer(StrictSerializer):
    name = AccountNameField(help_text="Of the new account.")
    snapshot = SnapshotNameField(required=False, help_text="Made of this snapshot instead of the present.")
    at = InstantField(required=False, help_text="Made of this time instead of the present.")
    tables = BranchTableField(
        required=False,
        help_text="Which tables to copy, each with a filter or null: `{"
        '"customers": "PartitionKey eq \'se\'", "orders": null}`; by default all.',
    )
    masking = MaskingField(
        required=False,
        help_text='Rules by table and property: `{"customers": {"Email": "email", "Note": "constant:(masked)"}}`. A'
        f" rule is one of {', '.join(f'`{mask}`' for mask in Mask)}.",
    )
    policies = StrictBooleanField(default=True, help_text="Copy the stored access policies.")
    service_properties = StrictBooleanField(default=True, help_text="Copy the service properties.")
    labels = LabelsField(required=False, help_text="Added to those of the account.")
    ttl = LifetimeField(
        required=False, help_text="Lifetime of the branch: `8h`, `2d`; by default it has none."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "snapshot" in attrs and "at" in attrs:
            raise ValidationError({"at": ["Send either snapshot or at, not both."]})
        return attrs


class BranchSerializer(serializers.Serializer[Any]):
    # of a Branch

    name = serializers.CharField(source="account.name")
    source = serializers.CharField(source="source_name")
    snapshot = serializers.CharField(source="snapshot_name", help_text="Empty if it was made of a time.")
    at = InstantField(help_text="The time of the source that it was made of.")
    created_at = InstantField()
    created_by = serializers.CharField(source="actor", help_text="Empty for the server.")
    expires_at = InstantField(source="account.expires_at", allow_null=True)
    state = serializers.CharField(source="account.stage.value")
    reset_at = InstantField(allow_null=True, help_text="When it was last reset.")


class OriginalSerializer(TypedSerializer):
    of = Original


class CreatedBranchSerializer(CopiedSerializer):
    # of a BuiltAccount

    branch = BranchSerializer()
    originals = OriginalSerializer(
        many=True,
        help_text="Properties with original values that should be masked; then the branch stays frozen.",
    )

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        return {name: fields[name] for name in ("account", "branch", "tables", "entities", "originals")}


class ResetSerializer(StrictSerializer):
    snapshot = SnapshotNameField(
        required=False, help_text="By default what the branch was made of; another account needs one."
    )
