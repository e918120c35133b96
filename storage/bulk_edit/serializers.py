"""Bulk edits of entities."""

from datetime import datetime
from typing import Annotated, Any, Final

from rest_framework import serializers

from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.domain.values.edm import Edm
from storage.editing.bulk_edit import OPERATION_LIMIT, OPERATIONS, ObstacleKind, Presence
from storage.editing.conversions import Loss
from storage.editing.expressions.parser import LENGTH_LIMIT
from storage.rest.answers import ActivityId, TypedSerializer
from storage.rest.fields import (
    InstantField,
    OptionalCharField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
)

_NAME_LIMIT: Final = 255


class OperationSerializer(StrictSerializer):
    """One operation of a bulk edit; ``op`` determines its other members."""

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
        required=False,
        help_text="Of `rename` and `copy`: replace a property of the other name. Of `second-copy`: replace copies that"
        " differ.",
    )
    type = StrictChoiceField(
        required=False,
        choices=[name for it in Edm for name in (it.value, it.short_name)],
        help_text="Of `convert`: the new type.",
    )
    partition_key = StrictCharField(
        required=False,
        max_length=LENGTH_LIMIT,
        help_text="Of `key` and `second-copy`: an expression for the new PartitionKey.",
    )
    row_key = StrictCharField(
        required=False,
        max_length=LENGTH_LIMIT,
        help_text="Of `key` and `second-copy`: an expression for the new RowKey.",
    )
    table = StrictCharField(
        required=False,
        max_length=_NAME_LIMIT,
        help_text="Of `second-copy`: another table of the account, which is created if there is none.",
    )
    delete_left_over = StrictBooleanField(
        required=False,
        help_text="Of `second-copy`: delete the entities that `copies` finds and that are the copy of no entity.",
    )
    copies = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=CONSOLE_LIMIT,
        help_text="Of `second-copy`: a `$filter` that finds the copies; all entities of another table without one.",
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


class EditedKeySerializer(TypedSerializer):
    partition_key: str
    row_key: str


class ObstacleSerializer(TypedSerializer):
    kind: Annotated[
        ObstacleKind,
        "`changed`: it was written since; `gone`: it was deleted; `key-exists`, `property-exists`: what the"
        " edit would make is there; `key-twice`: an earlier entity has a second copy of the same key; `original`: the"
        " query finds the entity that the copy would replace; the others: an operation has no result.",
    ]
    property: Annotated[str, "Whose operation has no result; empty if it is not that of one."]
    detail: str
    entities: int
    examples: list[EditedKeySerializer]


class LossSerializer(TypedSerializer):
    property: str
    loss: Loss
    entities: int


class TypeChangeSerializer(TypedSerializer):
    property: str
    before: Annotated[Edm | None, "null: without the property."]
    after: Edm | None
    entities: int


class SampleSerializer(TypedSerializer):
    before: Annotated[
        dict[str, Any],
        "As the Table service writes it, with its keys. For a second copy that is replaced, the copy; for a new one,"
        " its original.",
    ]
    after: Annotated[dict[str, Any] | None, "null: it is deleted."]


class BulkEditResultSerializer(TypedSerializer):
    dry_run: bool
    matches: Annotated[int | None, "How many entities the query finds; null if it takes too long to say."]
    exact: Annotated[bool, "Whether `matches` is counted, not estimated."]
    examined: Annotated[
        int, "How many of them were looked at; a dry run ends after ten seconds. The numbers are of these."
    ]
    complete: Annotated[bool, "Whether all were looked at."]
    changed: int
    moved: Annotated[int, "To other keys."]
    deleted: int
    copied: Annotated[int, "Second copies that are new."]
    replaced: Annotated[int, "Second copies that differed."]
    left_over: Annotated[int, "Second copies without an original, which are deleted."]
    unchanged: Annotated[int, "Entities that are as the edit would make them."]
    skipped: Annotated[int, "Entities that are left alone because of an obstacle."]
    obstacles: list[ObstacleSerializer]
    losses: Annotated[list[LossSerializer], "Of a dry run that allows them."]
    types: Annotated[list[TypeChangeSerializer], "Of a dry run: the types of the properties that are edited."]
    samples: Annotated[
        list[SampleSerializer], "Of a dry run: the first entities, some others, one of each kind."
    ]
    can_undo: Annotated[bool, "Whether the account keeps the history that an undo needs."]
    read_at: Annotated[datetime, "Send it with the run to skip what is written in between."]
    activity: ActivityId
    request: Annotated[
        str | None,
        {"source": "activity.request_id"},
        "Request ID of all changes of the edit; send it to `undo`.",
    ]


class CopiesCheckSerializer(StrictSerializer):
    filter = OptionalCharField(
        max_length=CONSOLE_LIMIT,
        help_text="A `$filter` of the originals; all entities of the table without one.",
    )
    operations = serializers.ListField(
        child=OperationSerializer(),
        min_length=1,
        max_length=OPERATION_LIMIT,
        help_text="The operations that make the copies; the last is `second-copy`.",
    )
    allow_loss = StrictBooleanField(default=False, help_text="As in the edit that makes the copies.")


class CopyPairSerializer(TypedSerializer):
    original: EditedKeySerializer
    copy: EditedKeySerializer


class CopiesCheckResultSerializer(TypedSerializer):
    in_step: Annotated[bool | None, "null: the check ended before all was examined, and found nothing."]
    complete: Annotated[bool, "Whether all was examined; a check ends after ten seconds."]
    examined: Annotated[int, "How many originals were examined."]
    up_to_date: int
    missing: Annotated[int, "Originals without a copy."]
    differing: Annotated[int, "Copies that differ from what the operations would write."]
    left_over: Annotated[int, "Entities that `copies` finds and that are the copy of no original."]
    obstacles: Annotated[list[ObstacleSerializer], "Originals that cannot have a copy."]
    missing_examples: list[CopyPairSerializer]
    differing_examples: list[CopyPairSerializer]
    left_over_examples: list[EditedKeySerializer]
    read_at: Annotated[datetime, "Send it with the repair to skip what is written in between."]
