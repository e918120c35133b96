"""The activity log as a file: CSV, or NDJSON with the entities before and after."""

import json
from typing import Any, Final

from console.site.exports import export_formats
from storage.models import Activity, EntityChange

_COLUMNS: Final = (
    "id", "at", "verb", "account", "table", "actor_kind", "actor", "address", "agent", "request_id", "entities",
    "undoes", "detail", "before", "after",
)  # fmt: skip


def write_row(done: Activity) -> dict[str, Any]:
    return {
        "id": done.pk,
        "at": done.at.isoformat(),
        "verb": done.verb,
        "account": done.account_name,
        "table": done.table_name,
        "actor_kind": done.actor_kind,
        "actor": done.actor,
        "address": done.address,
        "agent": done.agent,
        "request_id": done.request_id,
        "entities": getattr(done, "changed", 0),
        "undoes": done.undoes_id,
        "detail": done.detail,
        "before": done.before,
        "after": done.after,
    }


def write_row_with_entities(done: Activity) -> dict[str, Any]:
    row = write_row(done)
    if row["entities"]:
        row["changes"] = [_write_change(change) for change in done.changes.order_by("place")]
    return row


def _write_change(change: EntityChange) -> dict[str, Any]:
    return {
        "PartitionKey": change.partition_key,
        "RowKey": change.row_key,
        "before": _read_document(change.before),
        "after": _read_document(change.after),
    }


def _read_document(content: str | None) -> dict[str, Any] | None:
    if content is None:
        return None
    document: dict[str, Any] = json.loads("{" + content.lstrip("\n,") + "}")
    return document


FORMATS: Final = export_formats(_COLUMNS, write_row, write_row_with_entities)
