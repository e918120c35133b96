"""Serializers for the undo of recorded changes."""

from typing import Annotated, Any, Literal

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.domain.entities.restoring import Effect, Skip
from storage.rest.answers import ActivityId, TypedSerializer
from storage.rest.fields import (
    InstantField,
    OptionalCharField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)

_SELECTION = ("ids", "from", "to", "actor", "request", "table")
_KEYS = ("PartitionKey", "RowKey")


class UndoSerializer(StrictSerializer):
    """Conditions on the changes to undo; all must match."""

    ids = serializers.ListField(
        child=StrictIntegerField(min_value=1, max_value=2**63 - 1),
        default=list,
        max_length=1000,
        help_text="Numbers of single changes, as in the change feed.",
    )
    to = InstantField(default=None, help_text="Changes before this time.")
    actor = OptionalCharField(
        max_length=256,
        help_text="Who made the changes: the name of a user, of an API token, of a key, or of the subject of a bearer"
        " token, or the label or fingerprint of a SAS token.",
    )
    request = serializers.UUIDField(default=None, help_text="Changes of the request with this ID.")
    table = OptionalCharField(max_length=255, help_text="Changes of this table only.")
    dry_run = StrictBooleanField(default=False, help_text="Only say what would be done.")

    def get_fields(self) -> dict[str, Any]:
        since = InstantField(default=None, help_text="Changes at or after this time.")
        keys = {
            name: StrictCharField(
                default=None,
                allow_blank=True,
                help_text="Changes of the entity with these keys; both are needed.",
            )
            for name in _KEYS
        }
        return {"from": since, **super().get_fields(), **keys}  # a keyword

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        keys = [data[name] is not None for name in _KEYS]
        if not any(data[name] for name in _SELECTION) and not any(keys):
            raise ValidationError(
                "Select the changes to undo: ids, from, to, actor, request, table or the keys of an entity."
            )
        if any(keys) and not all(keys):
            missing = _KEYS[keys.index(False)]
            raise ValidationError({missing: ["PartitionKey and RowKey are given together."]})
        if data["from"] and data["to"] and data["from"] >= data["to"]:
            raise ValidationError({"to": ["The time must be after from."]})
        return data


class UndoneEntitySerializer(TypedSerializer):
    PartitionKey: Annotated[str, {"source": "key.partition_key"}]
    RowKey: Annotated[str, {"source": "key.row_key"}]
    effect: Effect
    reason: Annotated[
        Literal[Skip.CHANGED, Skip.GONE, Skip.EXISTS, Skip.MOVED] | None,
        "Why it is skipped. `changed`: it has newer work; `gone`: it was deleted since;"
        " `exists`: it was to be inserted again, but is there; `moved`: its key was changed, and what now has its"
        " former key, or its new one, is skipped.",
    ]


class UndoneTableSerializer(TypedSerializer):
    table: str
    changed: Annotated[int, "Entities that get back their former properties."]
    inserted: Annotated[int, "Deleted entities that are inserted again."]
    deleted: Annotated[int, "Inserted entities that are deleted."]
    skipped: Annotated[int, "Entities with newer work, which are left as they are."]
    unchanged: Annotated[int, "Entities that are as they were before."]
    sample: Annotated[
        list[UndoneEntitySerializer],
        "Of a dry run some of each kind; otherwise the first of those that were skipped.",
    ]


class UndoResultSerializer(TypedSerializer):
    dry_run: Annotated[bool, {"source": "is_preview"}]
    tables: list[UndoneTableSerializer]
    activity: ActivityId
    request: Annotated[
        str | None,
        {"source": "activity.request_id"},
        "Request ID of the changes that the undo made; send it to undo the undo.",
    ]
