"""Bulk edits: change, move or delete all entities that match a query, as recorded writes with one request id.

Entities are processed in key order and in chunks. Each chunk is one transaction that reads entities, edits
them in Python, writes those that are unchanged since they were read, and stores the caller's progress (see
bulk_edit_jobs). So an edit that is killed resumes where it stopped, and edits no entity twice. Entities
written since it began are skipped.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from django.utils import timezone

from storage.accounts import accounts
from storage.accounts.refusals import AccountError
from storage.bulk_edit import bulk_edit_writing, second_copies
from storage.bulk_edit.bulk_edit_work import CHUNK, BulkEditRequest, SkippedEntity, Work
from storage.bulk_edit.second_copies import SortedCopies, TakenKeys
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import TableNotFound
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.refusals import Reason
from storage.domain.values.ticks import to_datetime
from storage.editing.bulk_edit import Edited, Obstacle, ObstacleKind
from storage.editing.filters.diagnosis import parse_filter
from storage.entities import entities
from storage.history import past, versions
from storage.metrics import table_use
from storage.models import Table
from storage.relations import history, table_relations
from storage.sql import django as sql
from storage.sql.history import Recorder
from storage.sql.relations import relation_name
from storage.tables import tables

EXAMPLES: Final = 10  # entities that are kept of each obstacle
DESCRIBED: Final = 4000  # characters of an edit in the activity log
COUNT_LIMIT: Final = timedelta(seconds=60)
# the numbers of an edit, in the order in which they are shown
COUNTED: Final = ("changed", "moved", "copied", "replaced", "deleted", "left_over", "unchanged", "skipped")


class BulkEditRefused(AccountError):
    """The number of entities was not confirmed, or has changed."""


@dataclass(slots=True)
class Counts:
    """Numbers of entities that an edit changed, moved, deleted or skipped, or would."""

    changed: int = 0
    moved: int = 0  # to another key
    deleted: int = 0
    copied: int = 0  # second copies that were inserted
    replaced: int = 0  # second copies that differed
    left_over: int = 0  # second copies without an original, which are deleted
    unchanged: int = 0
    obstacles: Counter[Obstacle] = field(default_factory=Counter)
    examples: list[SkippedEntity] = field(default_factory=list)  # skipped entities, some for each obstacle

    @property
    def written(self) -> int:
        return self.changed + self.moved + self.deleted + self.copied + self.replaced + self.left_over

    @property
    def skipped(self) -> int:
        return self.obstacles.total()

    @property
    def seen(self) -> int:
        """Return the number of entities of the query that were processed so far."""
        return self.written - self.left_over + self.unchanged + self.skipped

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
            "copied": self.copied,
            "replaced": self.replaced,
            "left_over": self.left_over,
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
            # versions without second copies dumped none
            dumped.get("copied", 0),
            dumped.get("replaced", 0),
            dumped.get("left_over", 0),
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
    # whether all entities of the query were processed, and the position is that of the copies that may be left over
    is_clearing: bool = False
    cleared: int = 0  # entities examined by then
    counts: Counts = field(default_factory=Counts)

    def dump(self) -> dict[str, Any]:
        """Return the progress as JSON."""
        return {
            "began": self.began.isoformat(),
            "read_at": self.read_at,
            "position": self.position,
            "is_finished": self.is_finished,
            "is_clearing": self.is_clearing,
            "cleared": self.cleared,
            **self.counts.dump(),
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Self:
        position = dumped["position"] and Position(*dumped["position"])
        began = datetime.fromisoformat(dumped["began"])
        return cls(
            began,
            dumped["read_at"],
            position,
            dumped["is_finished"],
            dumped.get("is_clearing", False),
            dumped.get("cleared", 0),
            Counts.load(dumped),
        )

    @property
    def done(self) -> int:
        """Return the number of entities read so far, to compare with ``expect``."""
        return self.counts.seen + self.cleared


def _dump(obstacle: Obstacle) -> tuple[str, str, str]:
    return obstacle.kind.value, obstacle.property, str(obstacle.detail)


def _load(found: Sequence[str]) -> Obstacle:
    kind, name, detail = found
    return Obstacle(ObstacleKind(kind), name, detail)


def check(table: Table, request: BulkEditRequest) -> None:
    """Validate a request; raises InvalidInput, and the errors of a table that cannot be edited."""
    work = Work.of(table, request, timezone.now())
    accounts.writable(table.account)
    for it in (table, work.target):
        table_relations.refuse_without_images(it)


def needed_capabilities(table: Table, request: BulkEditRequest) -> set[Capability]:
    """Return what a user may need to do; raises InvalidInput."""
    work = Work.of(table, request, timezone.now())
    return {Capability.WRITE} if work.target.pk else {Capability.WRITE, Capability.MANAGE_TABLES}


def prepare(table: Table, request: BulkEditRequest, *, by: Actor) -> None:
    """Create the table of second copies if there is none, in the caller's transaction."""
    target = Work.of(table, request, timezone.now()).target
    if target.pk is None:
        tables.create(table.account, target.name, by=by)


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


def expect_copies(table: Table, request: BulkEditRequest) -> int | None:
    """Return how many entities are examined for left-over copies, 0 if they stay; None if unknown."""
    work = Work.of(table, request, timezone.now())
    if not work.deletes_left_over or work.target.pk is None:
        return 0
    return entities.total(work.target, EntityQuery(work.copies), limit=entities.COUNT_LIMIT).number


def count(table: Table, request: BulkEditRequest, limit: timedelta = entities.COUNT_LIMIT) -> int:
    """Count the entities that match the query; raises OperationTimedOut."""
    return entities.count(table, Work.of(table, request, timezone.now()).query, limit=limit)


@sql.repeatable
def advance(
    table: Table,
    request: BulkEditRequest,
    progress: Progress,
    *,
    by: Actor,
    size: int = CHUNK,
    taken: TakenKeys | None = None,
) -> tuple[Progress, list[SkippedEntity]]:
    """Edit the next chunk in the caller's transaction; return the new progress and the skipped entities.

    All changes of the edit have the request id of ``by``. ``taken`` has the keys of the second copies up to the
    progress, and is moved on with it; without it, they are computed again.
    """
    account = accounts.writable(table.account)
    work = Work.of(table, request, progress.began)
    recorder = history.recorder(account, by)
    if work.editor.second_copy is not None:
        if work.target.pk is None:
            raise TableNotFound
        taken = taken or map_keys(work, progress)
        if progress.is_clearing:
            return _clear(work, progress, recorder, taken, size), []
    page = work.read(progress.position, size)
    counts = replace(
        progress.counts, obstacles=progress.counts.obstacles.copy(), examples=[*progress.counts.examples]
    )
    known, newer = _divide(work, page.entities, progress, by)
    edited, obstructed = work.evaluate(known)
    skipped = [SkippedEntity(it.key, Obstacle(ObstacleKind.CHANGED)) for it in newer] + obstructed
    if taken is None:
        counts.unchanged += sum(it.is_unchanged for it in edited)
        skipped += _write(work, [it for it in edited if not it.is_unchanged], recorder, counts)
    else:
        copies = second_copies.sort(work, edited, taken)
        counts.unchanged += copies.unchanged
        skipped += copies.skipped + _write_copies(work, copies, recorder, counts)
    counts.skip(skipped)
    if counts.written > progress.counts.written:
        table_use.record_write(work.target)
    is_last = page.next is None
    after = replace(
        progress,
        position=page.next,
        is_finished=is_last and not work.deletes_left_over,
        is_clearing=is_last and work.deletes_left_over,
        counts=counts,
    )
    if taken is not None:
        # copies of originals that were written since are not left over; without a history they may be the edit's own
        others = newer if recorder is not None else [it for it in page.entities if it not in known]
        taken.add(second_copies.keys_of(work, [*edited, *work.evaluate(others)[0]]))
        taken.position, taken.is_complete = page.next, is_last
    return after, skipped


def map_keys(work: Work, progress: Progress, look: Callable[[], object] = lambda: None) -> TakenKeys:
    """Compute the keys of second copies up to the progress of an edit, calling ``look`` in the meantime."""
    is_complete = progress.is_clearing
    position = None if is_complete else progress.position
    return second_copies.map_keys(work, position, is_complete=is_complete, look=look)


def _write_copies(
    work: Work, copies: SortedCopies, recorder: Recorder | None, counts: Counts
) -> list[SkippedEntity]:
    """Write second copies, add them to ``counts``, and return those that were skipped."""
    if not copies.written:
        return []
    target = relation_name(work.target.pk)
    written, skipped = bulk_edit_writing.write_copies(work.relation, target, copies.written, recorder)
    counts.replaced += sum(it.replaced is not None for it in written)
    counts.copied += sum(it.replaced is None for it in written)
    return [_skipped(it) for it in skipped]


def _clear(
    work: Work, progress: Progress, recorder: Recorder | None, taken: TakenKeys, size: int
) -> Progress:
    """Delete copies without an original among the next entities; what was written since the edit began stays."""
    page = work.read_copies(progress.position, size)
    former = [it for it in page.entities if it.timestamp <= progress.read_at]
    left_over = second_copies.left_over(work, former, taken)
    counts = replace(progress.counts)
    if left_over:
        counts.left_over += bulk_edit_writing.delete(relation_name(work.target.pk), left_over, recorder)
        table_use.record_write(work.target)
    cleared = progress.cleared + len(page.entities)
    return replace(
        progress, position=page.next, is_finished=page.next is None, cleared=cleared, counts=counts
    )


def _divide(
    work: Work, stored_entities: Sequence[StoredEntity], progress: Progress, by: Actor
) -> tuple[list[StoredEntity], list[StoredEntity]]:
    """Separate the entities unchanged since the edit began from entities that others have written since."""
    known = [it for it in stored_entities if it.timestamp <= progress.read_at]
    newer = [it for it in stored_entities if it.timestamp > progress.read_at]
    if newer and work.inserts_within:
        account = work.table.account
        if not history.is_recorded(account):
            return known, []
        table_id = work.table.pk
        latest = versions.newest_of(account.pk, [(table_id, it.key) for it in newer])
        newer = [
            it
            for it in newer
            if (change := latest.get((table_id, it.key))) is None or change.actor.request_id != by.request_id
        ]
    return known, newer


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


_OF_COPIES: Final = ("copied", "replaced", "left_over")


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
        **{name: number for name in _OF_COPIES if (number := getattr(counts, name))},
        "skipped": counts.skipped,
        "rows": counts.written,
    }


def _describe_request(request: BulkEditRequest) -> dict[str, Any]:
    written = request.dump()
    return written if len(json.dumps(written)) <= DESCRIBED else {"filter": request.filter[:DESCRIBED]}
