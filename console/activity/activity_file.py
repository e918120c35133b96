"""The record of activity as a file: CSV for people and their spreadsheets, NDJSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.site.csv_files import write_csv
from storage.models import Activity, EntityChange

_COLUMNS: Final = (
    "id", "at", "verb", "account", "table", "actor_kind", "actor", "address", "agent", "request_id", "entities",
    "undoes", "detail", "before", "after",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    extension: str
    content_type: str
    write: Callable[[Iterable[Activity]], Iterator[str]]


def _write_csv(found: Iterable[Activity]) -> Iterator[str]:
    rows = map(_row, found)
    return write_csv(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))


def write_ndjson(found: Iterable[Activity]) -> Iterator[str]:
    """With the entities as they were and became."""
    for done in found:
        row = _row(done)
        if row["entities"]:
            row["changes"] = [_change(change) for change in done.changes.order_by("place")]
        # in ASCII: a String may hold what UTF-8 cannot
        yield json.dumps(row) + "\n"


def _row(done: Activity) -> dict[str, Any]:
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


def _change(change: EntityChange) -> dict[str, Any]:
    return {
        "PartitionKey": change.partition_key,
        "RowKey": change.row_key,
        "before": _document(change.before),
        "after": _document(change.after),
    }


def _document(content: str | None) -> dict[str, Any] | None:
    if content is None:
        return None
    found: dict[str, Any] = json.loads("{" + content.lstrip("\n,") + "}")
    return found


FORMS: Final[Mapping[str, Form]] = {
    "csv": Form("csv", "text/csv; charset=utf-8", _write_csv),
    "ndjson": Form("ndjson", "application/x-ndjson; charset=utf-8", write_ndjson),
}
