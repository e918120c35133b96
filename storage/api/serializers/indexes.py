"""Property indexes of a table."""

from typing import Any

from rest_framework import serializers

from storage.api.serializers.fields import InstantField, StrictCharField, StrictSerializer
from storage.domain.service.indexes import IndexOrigin, IndexState


class NewIndexSerializer(StrictSerializer):
    property = StrictCharField(
        max_length=255, help_text="Name of the property, or `Timestamp`; case-sensitive."
    )


class IndexReasonSerializer(serializers.Serializer[Any]):
    filter = serializers.CharField(help_text="Of the last of these queries, without its values.")
    scans = serializers.IntegerField(help_text="Queries that had to read many entities.")
    seconds = serializers.FloatField(help_text="How long they took together.")


class IndexSerializer(serializers.Serializer[Any]):
    property = serializers.CharField(source="index.name")
    state = serializers.ChoiceField(
        choices=list(IndexState), source="index.state", help_text="Queries use the index when it is `ready`."
    )
    origin = serializers.ChoiceField(
        choices=list(IndexOrigin),
        source="index.origin",
        help_text="`hand`: asked for; `advice`: added from what a query was told; `adaptive`: added by the server.",
    )
    error = serializers.CharField(source="index.error", help_text="Why it could not be made; else empty.")
    size = serializers.IntegerField(help_text="Bytes on disk.")
    created_at = InstantField(source="index.created_at")
    last_used_at = InstantField(
        source="index.last_used_at", allow_null=True, help_text="When a query was last seen to use it."
    )
    scans = serializers.IntegerField(source="index.scans", help_text="How often queries were seen to use it.")
    reason = IndexReasonSerializer(
        source="index.reason", allow_null=True, help_text="Why the server added it; null: it was asked for."
    )
