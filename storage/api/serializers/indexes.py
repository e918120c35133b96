"""Property indexes of a table."""

from datetime import datetime
from typing import Annotated

from storage.rest.answers import TypedSerializer
from storage.rest.fields import StrictCharField, StrictSerializer
from storage.tables.index_rules import IndexOrigin, IndexReason, IndexState


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
