"""Serializers of comparisons and their application."""

import base64
import binascii
import json
from typing import Annotated, Any, Final, Literal

from rest_framework import serializers

from storage.compare.applying import Target
from storage.compare.side_names import SideName
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.fits import Misfit
from storage.domain.entities.moments import read_moment_token
from storage.domain.entities.restoring import Skip
from storage.domain.values.dialects import LONGEST_KEY
from storage.domain.values.edm import Edm
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    IntegerParameterField,
    QueryParameters,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
)
from storage.rest.paging import LIMIT_DEFAULT, LIMIT_MAXIMUM

SIDE_LIMIT: Final = 400  # characters
ENTITY_LIMIT: Final = 1000  # entities that a request can name
_SIDE: Final = (
    "An account or a table, as `account` or `account/table`; append `@` and a time, such as"
    " `@2026-11-30T18:00:00Z`, or the name of a snapshot for what it was."
)


class SideField(StrictCharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=SIDE_LIMIT, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if SideName.read(text) is None:
            raise serializers.ValidationError(
                "Write account, account/table, or either with @time or @snapshot."
            )
        return text


class MomentField(StrictCharField):
    """Opaque token for the moment of a comparison; a plain time would not identify the writes that it had seen."""

    def to_internal_value(self, data: Any) -> Any:
        found = read_moment_token(super().to_internal_value(data))
        if found is None:
            raise serializers.ValidationError("Send the `read_at` that a comparison answered, unchanged.")
        return found


class AfterField(serializers.CharField):
    """Opaque token for the last entity of the previous page."""

    def to_internal_value(self, data: Any) -> tuple[str, EntityKey]:
        text = super().to_internal_value(data)
        try:
            table, partition_key, row_key = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, TypeError, RecursionError):
            raise serializers.ValidationError("The cursor is not valid.") from None
        if not all(isinstance(it, str) and "\0" not in it for it in (table, partition_key, row_key)):
            raise serializers.ValidationError("The cursor is not valid.")
        return table, EntityKey(partition_key, row_key)


def encode_after(table: str, key: EntityKey) -> str:
    return base64.urlsafe_b64encode(json.dumps([table, *key]).encode()).decode()


class DiffParameters(QueryParameters):
    left = SideField(help_text=_SIDE)
    right = SideField(required=False, help_text="Likewise; by default the account of the path.")
    timestamps = serializers.BooleanField(
        default=False, help_text="Whether an entity with another Timestamp counts as changed."
    )


class DifferenceParameters(DiffParameters):
    table = serializers.CharField(default="", help_text="Only entities of this table.")
    kind = serializers.MultipleChoiceField(
        choices=[it.value for it in DifferenceKind],
        default=list,
        help_text="Only entities that differ like this; repeat it for several.",
    )
    limit = IntegerParameterField(
        min_value=1, max_value=LIMIT_MAXIMUM, default=LIMIT_DEFAULT, help_text="Maximum number of items."
    )
    cursor = AfterField(default=None, help_text="The cursor in `next` of the previous page.")


class DescriptionSerializer(TypedSerializer):
    description: str
    tags: list[str]


class DescriptionsSerializer(TypedSerializer):
    left: DescriptionSerializer
    right: DescriptionSerializer


class ObjectsSerializer(TypedSerializer):
    left: list[dict[str, Any]]
    right: list[dict[str, Any]]


class SettingsSerializer(TypedSerializer):
    left: dict[str, Any]
    right: dict[str, Any]


class ComparedTableSerializer(TypedSerializer):
    name: str
    state: Annotated[Literal["left", "right", "both"], "Which sides have the table."]
    only_left: Annotated[int, "Entities that only the left side has."]
    only_right: int
    changed: Annotated[int, "Entities with another value."]
    type_only: Annotated[int, "Entities whose values read the same but have other types."]
    identical: int
    descriptions: Annotated[DescriptionsSerializer | None, "If they differ."]
    policies: Annotated[ObjectsSerializer | None, "The stored access policies if they differ."]


class DiffSerializer(TypedSerializer):
    left: str
    right: str
    read_at: Annotated[
        str, "Send it unchanged when you apply the comparison, to protect newer work. Do not interpret it."
    ]
    tables: list[ComparedTableSerializer]
    not_compared: Annotated[
        list[str],
        "Tables of one side that the other, a snapshot or a branch of some tables, was made without. They are"
        " left alone.",
    ]
    service_properties: Annotated[SettingsSerializer | None, "Of two accounts, if they differ."]


class ValueSerializer(TypedSerializer):
    type: Edm
    value: Annotated[Any, "As the Table service writes it."]


class PropertyDifferenceSerializer(TypedSerializer):
    name: str
    left: Annotated[ValueSerializer | None, "null: the property is not set."]
    right: ValueSerializer | None


class DifferenceSerializer(TypedSerializer):
    table: str
    partition_key: str
    row_key: str
    kind: DifferenceKind
    left_timestamp: Annotated[str | None, "null: the left side has no such entity."]
    right_timestamp: str | None
    properties: list[PropertyDifferenceSerializer]


class ChosenEntitySerializer(StrictSerializer):
    table = StrictCharField(max_length=255)
    partition_key = StrictCharField(max_length=LONGEST_KEY, allow_blank=True)
    row_key = StrictCharField(max_length=LONGEST_KEY, allow_blank=True)


class ApplySerializer(StrictSerializer):
    left = SideField()
    right = SideField()
    target = StrictChoiceField(
        choices=[it.value for it in Target], default=Target.RIGHT.value, help_text="The side that is changed."
    )
    tables = serializers.ListField(
        child=StrictCharField(max_length=255),
        default=None,
        allow_null=True,
        max_length=ENTITY_LIMIT,
        help_text="Only these tables. One that the other side lacks is deleted only if it is named here.",
    )
    entities = serializers.ListField(
        child=ChosenEntitySerializer(),
        default=list,
        max_length=ENTITY_LIMIT,
        help_text="Only these entities.",
    )
    kinds = serializers.ListField(
        child=StrictChoiceField(choices=[it.value for it in DifferenceKind]),
        default=lambda: list(DifferenceKind),
        help_text="Only entities that differ like this.",
    )
    policies = StrictBooleanField(default=False, help_text="Apply stored access policies too.")
    service_properties = StrictBooleanField(default=False, help_text="Apply service properties too.")
    read_at = MomentField(
        default=None,
        help_text="The `read_at` of a comparison: skip entities whose last change on either side it had not seen, and"
        " do not delete tables with such changes.",
    )
    dry_run = StrictBooleanField(default=False, help_text="Only say what would be done.")


class SkippedSerializer(TypedSerializer):
    partition_key: Annotated[
        str | None, {"source": "key.partition_key", "read_only": True}, "null: the table was skipped."
    ]
    row_key: Annotated[str | None, {"source": "key.row_key", "read_only": True}]
    reason: Annotated[
        Literal[Skip.CHANGED, Skip.ONLY_TARGET, Skip.MISFIT],
        "`changed`: it, or anything in the table to delete, was changed since; `only-target`: the table must"
        " be named to be deleted; `misfit`: it does not fit into an account of the other kind.",
    ]
    misfit: Misfit | None


class AppliedTableSerializer(TypedSerializer):
    name: str
    created: Annotated[bool, {"source": "is_created"}]
    dropped: Annotated[bool, {"source": "is_deleted"}]
    inserted: int
    changed: int
    deleted: int
    skipped: int
    policies: bool
    examples: Annotated[list[SkippedSerializer], "Of what was skipped."]


class AppliedSerializer(TypedSerializer):
    tables: list[AppliedTableSerializer]
    service_properties: bool
    activity: Annotated[
        int | None,
        {"source": "activity.pk", "read_only": True},
        "ID of the activity that can be undone; null if no entity was written.",
    ]
