"""Bulk edits of entities."""

from typing import Any, Final

from rest_framework import serializers

from storage.api.serializers.fields import (
    InstantField,
    OptionalCharField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)
from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.domain.values.edm import Edm
from storage.editing.bulk_edit import OPERATION_LIMIT, OPERATIONS, ObstacleKind, Presence
from storage.editing.conversions import Loss
from storage.editing.expressions.parser import LENGTH_LIMIT

_NAME_LIMIT: Final = 255


class OperationSerializer(StrictSerializer):
    """One operation; which members it has depends on `op`."""

    op = StrictChoiceField(choices=OPERATIONS)
    property = StrictCharField(
        required=False,
        max_length=_NAME_LIMIT,
        help_text="Of `set`, `remove`, `rename`, `copy` and `convert`.",
    )
    expression = StrictCharField(
        required=False,
        max_length=LENGTH_LIMIT,
        help_text="Of `set`: the value, such as `round(Price * 1.2, 2)`.",
    )
    presence = StrictChoiceField(
        required=False,
        choices=[it.value for it in Presence],
        help_text="Of `set`: only entities without the property, or only those with it.",
    )
    to = StrictCharField(
        required=False, max_length=_NAME_LIMIT, help_text="Of `rename` and `copy`: the other name."
    )
    replace = StrictBooleanField(
        required=False, help_text="Of `rename` and `copy`: replace a property of the other name."
    )
    type = StrictChoiceField(
        required=False,
        choices=[name for it in Edm for name in (it.value, it.short_name)],
        help_text="Of `convert`: the new type.",
    )
    partition_key = StrictCharField(
        required=False, max_length=LENGTH_LIMIT, help_text="Of `key`: an expression for the new PartitionKey."
    )
    row_key = StrictCharField(
        required=False, max_length=LENGTH_LIMIT, help_text="Of `key`: an expression for the new RowKey."
    )


class BulkEditSerializer(StrictSerializer):
    filter = OptionalCharField(
        max_length=CONSOLE_LIMIT, help_text="A `$filter`; all entities of the table without one."
    )
    operations = serializers.ListField(
        child=OperationSerializer(),
        min_length=1,
        max_length=OPERATION_LIMIT,
        help_text="Applied in order to each entity, all of them or none.",
    )
    allow_loss = StrictBooleanField(
        default=False, help_text="Convert values that lose digits or their spelling, too."
    )
    number = StrictIntegerField(
        default=None,
        allow_null=True,
        min_value=0,
        help_text="How many entities the query must find; required if the account is protected.",
    )
    read_at = InstantField(
        default=None,
        allow_null=True,
        help_text="That of a dry run: entities that were written since are skipped.",
    )
    dry_run = StrictBooleanField(default=False, help_text="Only say what would be done.")


class EditedKeySerializer(serializers.Serializer[Any]):
    partition_key = serializers.CharField()
    row_key = serializers.CharField()


class ObstacleSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(
        choices=[it.value for it in ObstacleKind],
        help_text="`changed`: it was written since; `gone`: it was deleted; `key-exists`, `property-exists`: what the"
        " edit would make is there; the others: an operation has no result.",
    )
    property = serializers.CharField(
        help_text="Whose operation has no result; empty if it is not that of one."
    )
    detail = serializers.CharField()
    entities = serializers.IntegerField()
    examples = EditedKeySerializer(many=True)


class LossSerializer(serializers.Serializer[Any]):
    property = serializers.CharField()
    loss = serializers.ChoiceField(choices=[it.value for it in Loss])
    entities = serializers.IntegerField()


class TypeChangeSerializer(serializers.Serializer[Any]):
    property = serializers.CharField()
    before = serializers.ChoiceField(
        choices=[it.value for it in Edm], allow_null=True, help_text="null: without the property."
    )
    after = serializers.ChoiceField(choices=[it.value for it in Edm], allow_null=True)
    entities = serializers.IntegerField()


class SampleSerializer(serializers.Serializer[Any]):
    before = serializers.DictField(help_text="As the Table service writes it, with its keys.")
    after = serializers.DictField(allow_null=True, help_text="null: it is deleted.")


class BulkEditResultSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField()
    matches = serializers.IntegerField(
        allow_null=True, help_text="How many entities the query finds; null if it takes too long to say."
    )
    exact = serializers.BooleanField(help_text="Whether `matches` is counted, not estimated.")
    examined = serializers.IntegerField(
        help_text="How many of them were looked at; a dry run ends after ten seconds. The numbers are of these."
    )
    complete = serializers.BooleanField(help_text="Whether all were looked at.")
    changed = serializers.IntegerField()
    moved = serializers.IntegerField(help_text="To other keys.")
    deleted = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Entities that are as the edit would make them.")
    skipped = serializers.IntegerField(help_text="Entities that are left alone because of an obstacle.")
    obstacles = ObstacleSerializer(many=True)
    losses = LossSerializer(many=True, help_text="Of a dry run that allows them.")
    types = TypeChangeSerializer(
        many=True, help_text="Of a dry run: the types of the properties that are edited."
    )
    samples = SampleSerializer(
        many=True, help_text="Of a dry run: the first entities, some others, one of each kind."
    )
    can_undo = serializers.BooleanField(help_text="Whether the account keeps the history that an undo needs.")
    read_at = InstantField(help_text="Send it with the run to skip what is written in between.")
    activity = serializers.IntegerField(
        allow_null=True, help_text="ID of the activity, null if nothing was written."
    )
    request = serializers.CharField(
        allow_null=True, help_text="Request ID of all changes of the edit; send it to `undo`."
    )
