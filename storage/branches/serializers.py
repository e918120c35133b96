"""Branches, and restores of snapshots as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated, Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.account_files.account_building import Original
from storage.account_files.serializers import CopiedSerializer
from storage.accounts.serializers import AccountNameField, LabelsField
from storage.domain.entities.masking import Mask, MaskingError, MaskingRule, read_rules
from storage.domain.entities.restoring import TableAction
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.values import dialects
from storage.editing.filters.diagnosis import parse_filter
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    InstantField,
    LifetimeField,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    StringMapField,
)
from storage.snapshots.serializers import SnapshotNameField, table_names_field

_KEYS_LIMIT: Final = 1000


class EntityKeySerializer(StrictSerializer):
    partition_key = StrictCharField(allow_blank=True, max_length=2048)
    row_key = StrictCharField(allow_blank=True, max_length=2048)


class RestoreSerializer(StrictSerializer):
    tables = table_names_field(help_text="Names; by default all tables of the snapshot.")
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


class RestoredTableSerializer(TypedSerializer):
    name: str
    action: Annotated[
        TableAction,
        "What becomes of the table itself: `keep`, `create`, `restore` (it was deleted) or `delete`.",
    ]
    inserts: Annotated[int, {"source": "inserted"}]
    changes: Annotated[int, {"source": "changed"}]
    deletions: Annotated[int, {"source": "deleted"}]
    skipped: Annotated[int, "Entities that somebody changed during the restore."]
    policies: Annotated[bool, "Whether its policies change."]


class RestoredSerializer(TypedSerializer):
    # represents an Outcome

    dry_run: Annotated[bool, {"source": "is_preview"}]
    entities: Annotated[int, {"source": "written"}, "Inserts, changes and deletions of all tables."]
    tables: Annotated[list[RestoredTableSerializer], {"source": "changed_tables"}, "Only those that change."]
    service_properties: Annotated[bool, "Whether they change."]
    before: Annotated[
        str | None, {"source": "before.name"}, "Name of the snapshot of the state before the restore."
    ]
    seconds: float | None


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
        return parse_filter(text, None, dialects.STORAGE)
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


class BranchSerializer(TypedSerializer):
    # represents a Branch

    name: Annotated[str, {"source": "account.name"}]
    source: Annotated[str, {"source": "source_name"}]
    snapshot: Annotated[str, {"source": "snapshot_name"}, "Empty if it was made of a time."]
    at: Annotated[datetime, "The time of the source that it was made of."]
    created_at: datetime
    created_by: Annotated[str, {"source": "actor"}, "Empty for the server."]
    expires_at: Annotated[datetime | None, {"source": "account.expires_at"}]
    state: Annotated[str, {"source": "account.stage.value"}]
    reset_at: Annotated[datetime | None, "When it was last reset."]


class CreatedBranchSerializer(CopiedSerializer):
    # represents a BuiltAccount

    names = ("account", "branch", "tables", "entities", "originals")
    branch: BranchSerializer
    originals: Annotated[
        list[Original],
        "Properties with original values that should be masked; then the branch stays frozen.",
    ]


class ResetSerializer(StrictSerializer):
    snapshot = SnapshotNameField(
        required=False, help_text="By default what the branch was made of; another account needs one."
    )
