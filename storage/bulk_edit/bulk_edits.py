"""Bulk edits: change, move or delete all entities that match a query, as recorded writes with one request id.

Entities are processed in key order and in chunks. Each chunk is one transaction that reads entities, edits
them in Python, writes those that are unchanged since they were read, and stores the caller's progress (see
bulk_edit_jobs). So an edit that is killed resumes where it stopped, and edits no entity twice. Entities
written since it began are skipped.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from django.utils import timezone

from storage.accounts import accounts
from storage.accounts.refusals import AccountError
from storage.bulk_edit import bulk_edit_writing
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import OperationTimedOut
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery, Page, Position
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_datetime
from storage.editing.bulk_edit import (
    Edited,
    Editor,
    NotEdited,
    Obstacle,
    ObstacleKind,
    read_operations,
)
from storage.editing.filters.diagnosis import parse_filter
from storage.entities import entities
from storage.history import past, versions
from storage.metrics import table_use
from storage.models import Table
from storage.relations import history, table_relations
from storage.sql import django as sql
from storage.sql import pages
from storage.sql.failures import Canceled
from storage.sql.history import Recorder
from storage.sql.relations import relation_name
from storage.tables.indexes import using

CHUNK: Final = 1000  # entities that are edited in one transaction
EXAMPLES: Final = 10  # entities that are kept of each obstacle
DESCRIBED: Final = 4000  # characters of an edit in the activity log
COUNT_LIMIT: Final = timedelta(seconds=60)


class BulkEditRefused(AccountError):
    """The number of entities was not confirmed, or has changed."""


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


class SkippedEntity(NamedTuple):
    """Entity that the edit skipped."""

    key: EntityKey
    obstacle: Obstacle


@dataclass(slots=True)
class Counts:
    """Numbers of entities that an edit changed, moved, deleted or skipped, or would."""

    changed: int = 0
    moved: int = 0  # to another key
    deleted: int = 0
    unchanged: int = 0
    obstacles: Counter[Obstacle] = field(default_factory=Counter)
    examples: list[SkippedEntity] = field(default_factory=list)  # skipped entities, some for each obstacle

    @property
    def written(self) -> int:
        return self.changed + self.moved + self.deleted

    @property
    def skipped(self) -> int:
        return self.obstacles.total()

    @property
    def seen(self) -> int:
        """Return the number of entities processed so far."""
        return self.written + self.unchanged + self.skipped

    def skip(self, several: Sequence[SkippedEntity]) -> None:
        for it in several:
            self.obstacles[it.obstacle] += 1
            if self.obstacles[it.obstacle] <= EXAMPLES:
                self.examples.append(it)

    def dump(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "changed": self.changed,
            "moved": self.moved,
            "deleted": self.deleted,
            "unchanged": self.unchanged,
            "obstacles": [[*_dump(obstacle), number] for obstacle, number in self.obstacles.items()],
            "examples": [[*key, *_dump(obstacle)] for key, obstacle in self.examples],
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        return cls(
            dumped["changed"],
            dumped["moved"],
            dumped["deleted"],
            dumped["unchanged"],
            Counter({_load(it[:3]): it[3] for it in dumped["obstacles"]}),
            [SkippedEntity(EntityKey(*it[:2]), _load(it[2:])) for it in dumped["examples"]],
        )


@dataclass(slots=True)
class Progress:
    """Progress of an edit, saved with each chunk."""

    began: datetime
    read_at: int  # in ticks; entities with a later Timestamp are left alone
    position: Position | None = None  # the position at which the next chunk begins
    is_finished: bool = False
    counts: Counts = field(default_factory=Counts)

    def dump(self) -> dict[str, Any]:
        """Return the progress as JSON."""
        return {
            "began": self.began.isoformat(),
            "read_at": self.read_at,
            "position": self.position,
            "is_finished": self.is_finished,
            **self.counts.dump(),
        }

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        position = found["position"] and Position(*found["position"])
        began = datetime.fromisoformat(found["began"])
        return cls(began, found["read_at"], position, found["is_finished"], Counts.load(found))


def _dump(obstacle: Obstacle) -> tuple[str, str, str]:
    return obstacle.kind.value, obstacle.property, str(obstacle.detail)


def _load(found: Sequence[str]) -> Obstacle:
    kind, name, detail = found
    return Obstacle(ObstacleKind(kind), name, detail)


@dataclass(slots=True)
class Work:
    """Edit of a table: the query that selects entities and the editor that changes them."""

    table: Table
    filter: Filter | None
    editor: Editor

    @classmethod
    def of(cls, table: Table, request: BulkEditRequest, now: datetime, *, notes_types: bool = False) -> Self:
        """Parse a request; raises InvalidInput."""
        operations = read_operations(request.operations, now)
        kind = AccountKind(table.account.kind)
        editor = Editor(operations, kind, now, allows_loss=request.allows_loss, notes_types=notes_types)
        return cls(table, parse_filter(request.filter, now), editor)

    @property
    def query(self) -> EntityQuery:
        return EntityQuery(self.filter)

    @property
    def relation(self) -> str:
        return relation_name(self.table.pk)

    def read(self, position: Position | None, size: int = CHUNK) -> Page[StoredEntity]:
        page_query = replace(using(self.table, self.query), start=position, top=size)
        steps = entities.query(self.relation, page_query, time.monotonic, pages.page)
        try:
            return sql.walk(steps, sql.run_in_lane)
        except Canceled:
            raise OperationTimedOut from None

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


def check(table: Table, request: BulkEditRequest) -> None:
    """Validate a request; raises InvalidInput, and the errors of a table that cannot be edited."""
    Work.of(table, request, timezone.now())
    accounts.writable(table.account)
    table_relations.refuse_without_images(table)


def begin(
    table: Table,
    request: BulkEditRequest,
    *,
    number: int | None = None,
    read_at: int | None = None,
) -> Progress:
    """Return the progress of an edit before its first chunk; raises BulkEditRefused.

    A protected account needs ``number``, the number of entities that the query must find. ``read_at`` is the time of a
    preview: entities that were written since are left alone.
    """
    check(table, request)
    if number is None and table.account.protected:
        raise BulkEditRefused(Reason.BULK_EDIT_NUMBER, account=table.account.name)
    if number is not None and (actual := count(table, request, COUNT_LIMIT)) != number:
        raise BulkEditRefused(Reason.BULK_EDIT_COUNT, found=actual, number=number)
    present = past.closed_present().ticks
    latest = present if read_at is None else min(read_at, present)
    return Progress(to_datetime(present), latest)


def expect(table: Table, request: BulkEditRequest, limit: timedelta = entities.COUNT_LIMIT) -> entities.Total:
    """Return the number of entities that match the query, or an estimate if counting exceeds ``limit``."""
    query = EntityQuery(parse_filter(request.filter, timezone.now()))
    return entities.total(table, query, limit=limit)


def count(table: Table, request: BulkEditRequest, limit: timedelta = entities.COUNT_LIMIT) -> int:
    """Count the entities that match the query; raises OperationTimedOut."""
    return entities.count(table, Work.of(table, request, timezone.now()).query, limit=limit)


@sql.repeatable
def advance(
    table: Table, request: BulkEditRequest, progress: Progress, *, by: Actor, size: int = CHUNK
) -> tuple[Progress, list[SkippedEntity]]:
    """Edit the next chunk in the caller's transaction; return the new progress and the skipped entities.

    All changes of the edit have the request id of ``by``.
    """
    account = accounts.writable(table.account)
    work = Work.of(table, request, progress.began)
    page = work.read(progress.position, size)
    counts = replace(
        progress.counts, obstacles=progress.counts.obstacles.copy(), examples=[*progress.counts.examples]
    )
    known, skipped = _divide(work, page.entities, progress, by)
    edited, obstructed = work.evaluate(known)
    skipped += obstructed
    counts.unchanged += sum(it.is_unchanged for it in edited)
    recorder = history.recorder(account, by)
    skipped += _write(work, [it for it in edited if not it.is_unchanged], recorder, counts)
    counts.skip(skipped)
    if counts.written > progress.counts.written:
        table_use.record_write(table)
    after = replace(progress, position=page.next, is_finished=page.next is None, counts=counts)
    return after, skipped


def _divide(
    work: Work, stored_entities: Sequence[StoredEntity], progress: Progress, by: Actor
) -> tuple[list[StoredEntity], list[SkippedEntity]]:
    """Separate the entities unchanged since the edit began from the others, which are skipped."""
    known = [it for it in stored_entities if it.timestamp <= progress.read_at]
    newer = [it.key for it in stored_entities if it.timestamp > progress.read_at]
    if newer and work.editor.changes_keys:
        account = work.table.account
        if not history.is_recorded(account):
            return known, []
        table_id = work.table.pk
        latest = versions.newest_of(account.pk, [(table_id, key) for key in newer])
        newer = [
            key
            for key in newer
            if (change := latest.get((table_id, key))) is None or change.actor.request_id != by.request_id
        ]
    return known, [SkippedEntity(key, Obstacle(ObstacleKind.CHANGED)) for key in newer]


def _write(
    work: Work, edited: Sequence[Edited], recorder: Recorder | None, counts: Counts
) -> list[SkippedEntity]:
    """Write edited entities, add them to ``counts``, and return those that were skipped."""
    if not edited:
        return []
    written = bulk_edit_writing.write(work.table, edited, recorder)
    counts.changed += written.changed
    counts.moved += written.moved
    counts.deleted += written.deleted
    return [_skipped(it) for it in written.skipped]


_KINDS: Final = {
    Skip.CHANGED: ObstacleKind.CHANGED,
    Skip.GONE: ObstacleKind.GONE,
    Skip.EXISTS: ObstacleKind.KEY_EXISTS,
}


def _skipped(found: Skipped) -> SkippedEntity:
    assert found.key is not None
    return SkippedEntity(found.key, Obstacle(_KINDS[found.reason]))


def describe(request: BulkEditRequest, progress: Progress) -> dict[str, object]:
    """Return the details for the activity log; empty if no entity was written."""
    counts = progress.counts
    if not counts.written:
        return {}
    return {
        **_describe_request(request),
        "began": progress.began.isoformat(),
        "changed": counts.changed,
        "moved": counts.moved,
        "deleted": counts.deleted,
        "skipped": counts.skipped,
        "rows": counts.written,
    }


def _describe_request(request: BulkEditRequest) -> dict[str, Any]:
    written = request.dump()
    return written if len(json.dumps(written)) <= DESCRIBED else {"filter": request.filter[:DESCRIBED]}
