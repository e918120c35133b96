"""Activity log as a file; NDJSON also includes entities before and after."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from storage.activity.actors import actor_of
from storage.domain.entities.entity import StoredEntity, read_members
from storage.domain.history.recorded import RecordedChange
from storage.history import changes
from storage.models import Activity

FIELDS: Final[Mapping[str, Callable[[Activity], Any]]] = {
    "id": attrgetter("pk"),
    "at": lambda done: done.at.isoformat(),
    "verb": attrgetter("verb"),
    "account": attrgetter("account_name"),
    "table": attrgetter("table_name"),
    "actor_kind": attrgetter("actor_kind"),
    "actor": attrgetter("actor"),
    "actor_label": lambda done: actor_of(done).label,
    "address": attrgetter("address"),
    "agent": attrgetter("agent"),
    "request_id": attrgetter("request_id"),
    "entities": lambda done: getattr(done, "changed", 0),
    "undoes": attrgetter("undoes_id"),
    "detail": attrgetter("detail"),
    "before": attrgetter("before"),
    "after": attrgetter("after"),
}


def write_entities(done: Activity) -> dict[str, Any]:
    if not getattr(done, "changed", 0):
        return {}
    return {"changes": [_write_change(change) for change in changes.made_by(done)]}


def _write_change(change: RecordedChange) -> dict[str, Any]:
    return {
        "PartitionKey": change.key.partition_key,
        "RowKey": change.key.row_key,
        "before": _read_document(change.before),
        "after": _read_document(change.after),
    }


def _read_document(stored: StoredEntity | None) -> dict[str, Any] | None:
    return None if stored is None else read_members(stored)
