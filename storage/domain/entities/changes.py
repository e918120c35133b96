"""Changes: every write is a Change, alone or in a change set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import (
    ChangeSetError,
    CommandsInBatchActOnDifferentPartitions,
    InvalidDuplicateRow,
    InvalidInput,
)
from storage.domain.values.etag import Precondition

CHANGE_SET_LIMIT: Final = 100


@dataclass(slots=True)
class Insert:
    entity: Entity

    @property
    def key(self) -> EntityKey:
        return self.entity.key


@dataclass(slots=True)
class Update:
    """Update of an existing entity that meets the condition; ``merge`` keeps properties that are not named."""

    entity: Entity
    condition: Precondition
    merge: bool

    @property
    def key(self) -> EntityKey:
        return self.entity.key


@dataclass(slots=True)
class Upsert:
    """Insert Or Replace, or Insert Or Merge."""

    entity: Entity
    merge: bool

    @property
    def key(self) -> EntityKey:
        return self.entity.key


@dataclass(slots=True)
class Delete:
    key: EntityKey
    condition: Precondition


Change = Insert | Update | Upsert | Delete


def check_change_set_size(count: int) -> None:
    if count > CHANGE_SET_LIMIT:
        # Azure reports the index of the last allowed change
        text = "The batch request operation exceeds the maximum 100 changes per change set."
        raise ChangeSetError(CHANGE_SET_LIMIT - 1, InvalidInput(text))


def check_change_set(changes: Sequence[tuple[str, Change]]) -> None:
    """Check that a change set has one table (lower-case name), one partition and distinct keys.

    Raises ChangeSetError with the index of the first change that violates this.
    """
    keys = [change.key for _, change in changes]
    partitions = {partition_key for partition_key, _ in keys}
    if len(set(keys)) == len(keys) and len(partitions) == 1 and len({table for table, _ in changes}) == 1:
        return
    table, first = changes[0][0], keys[0]
    seen: set[str] = set()
    for index, ((its_table, _), key) in enumerate(zip(changes, keys, strict=True)):
        if its_table != table or key.partition_key != first.partition_key:
            raise ChangeSetError(index, CommandsInBatchActOnDifferentPartitions())
        if key.row_key in seen:
            raise ChangeSetError(index, InvalidDuplicateRow())
        seen.add(key.row_key)
