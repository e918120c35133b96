"""Property indexes of a table."""

from typing import Any

from rest_framework import serializers

from storage.api.serializers.fields import InstantField, StrictCharField, StrictSerializer
from storage.domain.service.indexes import IndexOrigin, IndexState


class NewIndexSerializer(StrictSerializer):
    property = StrictCharField(
        max_length=255, help_text="Name of the property, or `Timestamp`; case-sensitive."
    )


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
