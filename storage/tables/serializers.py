"""Tables and property indexes as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.core import registry
from storage.models import Table
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    OptionalCharField,
    QueryParameters,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    endpoint,
)
from storage.rest.paging import PageParameters
from storage.tables.index_rules import IndexOrigin, IndexReason, IndexState

TAG_LIMIT = 20


class TableNameField(StrictCharField):
    """Table name; the operation refuses an invalid one with the service's own message."""


class NewTableSerializer(StrictSerializer):
    name = TableNameField(
        max_length=255,
        help_text="3 to 63 letters and digits, starting with a letter; case-insensitive. In accounts of the kind"
        r" `cosmos` up to 254 characters except `/ \ # ?`.",
    )
    description = OptionalCharField(max_length=2000)
    tags = serializers.ListField(child=StrictCharField(max_length=40), max_length=TAG_LIMIT, default=list)

    def validate_tags(self, tags: list[str]) -> list[str]:
        if len({tag.casefold() for tag in tags}) != len(tags):
            raise ValidationError("Each tag can occur only once.")
        return tags


class NewNameSerializer(StrictSerializer):
    name = TableNameField(max_length=255, help_text="The other name, by the same rules as for a new table.")


class TableChangeSerializer(NewTableSerializer):
    name = None  # type: ignore[assignment]
    throughput = StrictIntegerField(
        min_value=0,
        max_value=1_000_000,
        required=False,
        help_text="Request units per second, only in accounts of the kind `cosmos`: a point read takes one, a write"
        " five. Beyond them requests answer 429. 0 for no limit.",
    )
    description = StrictCharField(max_length=2000, allow_blank=True, required=False)
    tags = serializers.ListField(child=StrictCharField(max_length=40), max_length=TAG_LIMIT, required=False)


class TableListParameters(PageParameters):
    name = serializers.CharField(default="", max_length=255, help_text="Prefix of the name, in any case.")
    tag = serializers.CharField(default="", max_length=40, help_text="Only tables with this tag.")
    state = serializers.ChoiceField(
        choices=["present", "deleted"],
        default="present",
        help_text="`deleted`: deleted tables that can be restored.",
    )


class TableDeletionParameters(QueryParameters):
    confirm = serializers.CharField(
        default="", max_length=24, help_text="Name of the account; required if the account is protected."
    )


class TableSerializer(TypedSerializer):
    more = {form.column: Annotated[bool, form.description] for form in registry.relation_forms()}
    name: str
    description: str
    tags: list[str]
    throughput: Annotated[int, "Request units per second; 0 for no limit."]
    created_at: datetime
    deleted_at: datetime | None
    kept_until: Annotated[datetime | None, "Until when a deleted table can be restored."]
    url: Annotated[str, "URL for SDKs and tokens."]

    def get_url(self, table: Table) -> str:
        return f"{endpoint(self.context['request'], self.context['account'].name)}/{table.name}"


class NewIndexSerializer(StrictSerializer):
    property = StrictCharField(
        max_length=255, help_text="Name of the property, or `Timestamp`; case-sensitive."
    )


class IndexSerializer(TypedSerializer):
    property: Annotated[str, {"source": "index.name"}]
    state: Annotated[IndexState, {"source": "index.state"}, "Queries use the index when it is `ready`."]
    origin: Annotated[
        IndexOrigin,
        {"source": "index.origin"},
        "`hand`: asked for; `advice`: added from what a query was told; `adaptive`: added by the server.",
    ]
    error: Annotated[str, {"source": "index.error"}, "Why it could not be made; else empty."]
    size: Annotated[int, "Bytes on disk."]
    created_at: Annotated[datetime, {"source": "index.created_at"}]
    last_used_at: Annotated[
        datetime | None, {"source": "index.last_used_at"}, "When a query was last seen to use it."
    ]
    scans: Annotated[int, {"source": "index.scans"}, "How often queries were seen to use it."]
    reason: Annotated[
        IndexReason | None,
        {"source": "index.reason"},
        "Why the server added it; null: it was asked for.",
    ]
