"""Earlier changes that explain a refused request: author, time and sequence."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    EntityAlreadyExists,
    ResourceNotFound,
    StorageError,
    TableNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.stored import read_member
from storage.domain.values.ticks import to_ticks
from storage.history import last_change, versions
from storage.models import Account, RecordedRequest, Table
from storage.sql.django import storable_text
from storage.tables import tables

_LOOKED_AT: Final = 20  # versions of an entity
_OF_ENTITIES: Final = frozenset(
    it.__name__ for it in (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)
)
TABLE: Final = "table"  # in place of an operation: the table was deleted


@dataclass(frozen=True, slots=True)
class EarlierChange:
    """Last change of the entity or table before a request."""

    number: int  # its number in the history, or 0
    op: str  # ``insert``, ``update``, ``delete``, or ``table`` for the deletion of a table
    at: datetime
    actor: Actor
    further: int = 0  # the number of other changes that the client had not seen either

    def dump(self) -> dict[str, Any]:
        actor = self.actor
        return {
            "number": self.number,
            "op": self.op,
            "at": self.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "by": actor.kind.value,
            "name": storable_text(actor.name, 256),
            "label": storable_text(actor.label, 256),
            "address": storable_text(actor.address, 64),
            "further": self.further,
        }

    @classmethod
    def load(cls, kept: dict[str, Any]) -> Self:
        actor = Actor(read_member(ActorKind, kept["by"]), kept["name"], kept["address"], label=kept["label"])
        return cls(kept["number"], kept["op"], datetime.fromisoformat(kept["at"]), actor, kept["further"])


def is_explained(row: RecordedRequest, key: EntityKey | None) -> bool:
    """Return whether an earlier change may explain a refusal."""
    return row.error == TableNotFound.__name__ or (key is not None and row.error in _OF_ENTITIES)


def find_earlier_change(
    account: Account, row: RecordedRequest, key: EntityKey | None, expected: int | None
) -> EarlierChange | None:
    """Return the change before a refused request that explains it; ``expected`` is the If-Match in ticks."""
    end = row.at + timedelta(seconds=row.seconds)
    if row.error == TableNotFound.__name__:
        return _deletion_of_table(account, row.table_name, end)
    table = _find_table(account, row.table_name)
    if table is None or key is None:
        return None
    end_ticks = to_ticks(end)
    changes = versions.page(table, key, top=_LOOKED_AT).entries
    if row.error == ResourceNotFound.__name__:
        change = (
            next((it for it in changes if it.ticks <= end_ticks), None) if changes else _logged(table, key)
        )
        return _read(change) if change is not None and change.op is Op.DELETE else None
    written = [it for it in changes if it.op is not Op.DELETE]
    if row.error == UpdateConditionNotSatisfied.__name__ and expected is not None:
        written = [it for it in written if it.ticks > expected]
        # the first of them was made before in any case, even if the clocks of database and server differ
        before = [it for it in written if it.ticks <= end_ticks] or written[-1:]
        return _read(before[0], len(before) - 1) if before else None
    return next((_read(it) for it in written if it.ticks <= end_ticks), None)


def _logged(table: Table, key: EntityKey) -> RecordedChange | None:
    """Return the deletion in the activity log, for an account without a history."""
    return last_change.of_entity(table, key, None)


def _read(change: RecordedChange, further: int = 0) -> EarlierChange:
    return EarlierChange(change.sequence, change.op.word, change.at, change.actor, further)


def _deletion_of_table(account: Account, name: str, until: datetime) -> EarlierChange | None:
    deletion = last_change.of_table(account, name, until)
    if deletion is None:
        return None
    return EarlierChange(0, TABLE, deletion.at, deletion.by or Actor(ActorKind.SERVER))


def _find_table(account: Account, name: str) -> Table | None:
    try:
        return tables.find(account, fold_table_name(name, AccountKind(account.kind)))
    except StorageError:
        return None
