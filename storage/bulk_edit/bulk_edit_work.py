"""Requests of bulk edits, and their work on a table: which entities they select and how they edit them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.errors import OperationTimedOut, StorageError
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery, Page, Position
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.editing.bulk_edit import (
    Edited,
    Editor,
    InvalidOperation,
    NotEdited,
    Obstacle,
    ObstacleKind,
    SecondCopy,
    read_operations,
)
from storage.editing.filters.diagnosis import parse_filter
from storage.editing.input_context import InputContext
from storage.entities import entities
from storage.models import Table
from storage.sql import django as sql
from storage.sql import pages
from storage.sql.failures import Canceled
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.tables.indexes import using

CHUNK: Final = 1000  # entities that are edited in one transaction


@dataclass(frozen=True, slots=True)
class BulkEditRequest:
    """Stored form of an edit: a ``$filter``, empty for all entities, and operations as JSON."""

    filter: str
    operations: Sequence[Mapping[str, Any]]
    allows_loss: bool = False

    def dump(self) -> dict[str, Any]:
        return {"filter": self.filter, "operations": list(self.operations), "allow_loss": self.allows_loss}

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        return cls(found["filter"], found["operations"], found["allow_loss"])

    def repairing(self) -> Self | None:
        """Return the request that also replaces and deletes second copies; None if it makes none."""
        *before, last = self.operations or ({},)
        if last.get("op") != "second-copy":
            return None
        return replace(self, operations=[*before, {**last, "replace": True, "delete_left_over": True}])


class SkippedEntity(NamedTuple):
    """Entity that the edit skipped."""

    key: EntityKey
    obstacle: Obstacle


@dataclass(slots=True)
class Work:
    """Edit of a table: the query that selects entities and the editor that changes them."""

    table: Table
    filter: Filter | None
    editor: Editor
    # the table of second copies: the same or another one; unsaved if it must be created
    target: Table
    copies: Filter | None = None  # finds the second copies that may be left over

    @classmethod
    def of(cls, table: Table, request: BulkEditRequest, now: datetime, *, notes_types: bool = False) -> Self:
        """Parse a request; raises InvalidInput."""
        operations = read_operations(request.operations, now)
        context = InputContext(now, AccountKind(table.account.kind))
        editor = Editor(operations, context, allows_loss=request.allows_loss, notes_types=notes_types)
        work = cls(table, parse_filter(request.filter, now), editor, table)
        if editor.second_copy is not None:
            work._prepare_copies(editor.second_copy, len(operations) - 1, now)
        return work

    def _prepare_copies(self, operation: SecondCopy, index: int, now: datetime) -> None:
        try:
            self.target = tables.get_or_new(self.table.account, operation.table or self.table.name)
        except StorageError as error:
            raise InvalidOperation(index, "table", error) from None
        if self.copies_within:
            if operation.partition_key is operation.row_key is None:
                raise InvalidOperation(index, "row_key", Reason.EDIT_COPY_SAME.of())
            if operation.deletes_left_over and not operation.copies.strip():
                raise InvalidOperation(index, "copies", Reason.EDIT_COPIES_FILTER.of())
        try:
            self.copies = parse_filter(operation.copies, now)
        except StorageError as error:
            raise InvalidOperation(index, "copies", error) from None

    @property
    def copies_within(self) -> bool:
        """Return whether second copies are made in the table of their originals."""
        return self.editor.second_copy is not None and self.target.pk == self.table.pk

    @property
    def inserts_within(self) -> bool:
        """Return whether the walk may meet entities that the edit itself has inserted."""
        return self.editor.changes_keys or self.copies_within

    @property
    def replaces(self) -> bool:
        """Return whether second copies that differ are replaced."""
        return self.editor.second_copy is not None and self.editor.second_copy.replaces

    @property
    def deletes_left_over(self) -> bool:
        return self.editor.second_copy is not None and self.editor.second_copy.deletes_left_over

    @property
    def query(self) -> EntityQuery:
        return EntityQuery(self.filter)

    @property
    def relation(self) -> str:
        return relation_name(self.table.pk)

    def read(self, position: Position | None, size: int = CHUNK) -> Page[StoredEntity]:
        return read_page(self.table, self.query, position, size)

    def read_copies(self, position: Position | None, size: int = CHUNK) -> Page[StoredEntity]:
        """Read entities of the table of second copies that may be left over."""
        if self.target.pk is None:
            return Page([], None)
        return read_page(self.target, EntityQuery(self.copies), position, size)

    def evaluate(self, stored_entities: Sequence[StoredEntity]) -> tuple[list[Edited], list[SkippedEntity]]:
        """Edit entities; return also those that cannot be edited."""
        edited: list[Edited] = []
        skipped: list[SkippedEntity] = []
        new_keys: set[EntityKey] = set()
        for stored in stored_entities:
            try:
                result = self.editor.edit(stored)
                if result.is_moved:
                    if result.key in new_keys:
                        raise NotEdited(Obstacle(ObstacleKind.KEY_EXISTS))
                    new_keys.add(result.key)
            except NotEdited as error:
                skipped.append(SkippedEntity(stored.key, error.obstacle))
            else:
                edited.append(result)
        return edited, skipped


def read_page(
    table: Table, query: EntityQuery, position: Position | None, size: int = CHUNK
) -> Page[StoredEntity]:
    """Read a page of a query; raises OperationTimedOut."""
    page_query = replace(using(table, query), start=position, top=size)
    steps = entities.query(relation_name(table.pk), page_query, time.monotonic, pages.page)
    try:
        return sql.walk(steps, sql.run_in_lane)
    except Canceled:
        raise OperationTimedOut from None
