"""Deletes everything that a query matches, step by step: each step is bounded, and can be undone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Self

from django.http import QueryDict

from console.grid.tokens import Cursor, decode_cursor, encode_cursor
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import StoredEntity
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.service.snapshots import SnapshotReason
from storage.domain.values.numbers import read_numbers
from storage.models import Table
from storage.operations.entities import edits, entities
from storage.operations.snapshots import snapshots

MOST_UNDONE: Final = 100  # steps that one Undo takes back together
_STEP: Final = 2_000  # entities
_STEP_BYTES: Final = 16 * 1024 * 1024
_STEP_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class QueryDeletion:
    """What was deleted so far; ``position``: where the next step starts, None at the end."""

    filter: Filter | None
    position: Position | None = None
    deleted: int = 0
    activities: tuple[int, ...] = field(default=())
    is_finished: bool = False

    @property
    def cursor(self) -> str:
        return "" if self.position is None else encode_cursor(Cursor(self.position, self.deleted))

    @property
    def can_undo(self) -> bool:
        return 0 < len(self.activities) <= MOST_UNDONE

    def step(self, table: Table, by: Actor, clock: Callable[[], float] = time.monotonic) -> Self:
        """Delete the next entities; raises StorageError."""
        found, following = self._read(table, clock() + _STEP_SECONDS, clock)
        if self.position is None and following is not None:
            # more than one step, and perhaps more than one Undo takes back
            name = f"before-deletion-{table.name}"
            snapshots.take_automatic(table.account, name, SnapshotReason.DELETION, by=by, tables=[table])
        applied = edits.delete_unchanged(table, found, by=by) if found else None
        done = replace(self, position=following, is_finished=following is None)
        if applied is None:
            return done
        activities = (*self.activities, applied.activity.pk)
        return replace(done, deleted=self.deleted + len(applied.timestamps), activities=activities)

    def _read(
        self, table: Table, deadline: float, clock: Callable[[], float]
    ) -> tuple[list[StoredEntity], Position | None]:
        found: list[StoredEntity] = []
        size = 0
        following = self.position
        while True:
            page = entities.page(table, EntityQuery(filter=self.filter, start=following))
            found += page.entities
            size += sum(len(stored.content) for stored in page.entities)
            following = page.next
            is_full = len(found) >= _STEP or size >= _STEP_BYTES or clock() > deadline
            if following is None or is_full:
                return found, following


def read_deletion(form: QueryDict, wanted: Filter | None) -> QueryDeletion:
    """Read the fields after and done; a new deletion has none of them."""
    cursor = decode_cursor(form.get("after", ""))
    if cursor is None or not isinstance(cursor.position, Position):
        return QueryDeletion(wanted)
    activities = tuple(read_numbers(form.get("done", "").split(",")))
    return QueryDeletion(wanted, cursor.position, cursor.rows, activities)
