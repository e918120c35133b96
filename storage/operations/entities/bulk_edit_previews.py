"""What a bulk edit would do: its numbers, what would be skipped and lost, and a sample of entities before and after."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from django.utils import timezone

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.filters.query import Position
from storage.editing.bulk_edit import Edited, Obstacle, ObstacleKind, TypeChange
from storage.editing.conversions import Loss
from storage.models import Table
from storage.operations.changes import past
from storage.operations.entities import entities
from storage.operations.entities.bulk_edits import BulkEditRequest, Counts, SkippedEntity, Work, check
from storage.operations.relations import history
from storage.sql import django as sql
from storage.sql import restoring

SAMPLE: Final = 10  # entities of a preview: the first ones, and as many from anywhere
PREVIEW_LIMIT: Final = timedelta(seconds=10)


class LossOfProperty(NamedTuple):
    property: str
    loss: Loss


@dataclass(slots=True)
class BulkEditPreview:
    """What an edit would do now.

    ``matches``: how many entities the query finds, None if not even an estimate is known. ``examined``: how many of
    them were looked at; the counts are of these. ``samples``: the first entities that would be written, some from
    anywhere, and at least one for each change of a type and each loss.
    """

    read_at: int
    matches: int | None = None
    is_exact: bool = False
    examined: int = 0
    is_complete: bool = False
    can_undo: bool = False
    counts: Counts = field(default_factory=Counts)
    types: Counter[TypeChange] = field(default_factory=Counter)
    losses: Counter[LossOfProperty] = field(default_factory=Counter)
    samples: list[Edited] = field(default_factory=list)


def preview(
    table: Table,
    request: BulkEditRequest,
    *,
    limit: timedelta = PREVIEW_LIMIT,
    clock: Callable[[], float] = time.monotonic,
) -> BulkEditPreview:
    """Say what an edit would do now, by the evaluation of the run, and write nothing.

    When the time is up it says what it knows by then; with losses as if they were allowed or not, as in the request.
    """
    check(table, request)
    work = Work.of(table, request, timezone.now(), notes_types=True)
    found = BulkEditPreview(past.closed_present().ticks, can_undo=history.is_recorded(table.account))
    examination = _Examination(work, found)
    deadline = clock() + limit.total_seconds()
    position: Position | None = None
    while not found.is_complete and clock() < deadline:
        page = work.read(position)
        examination.add(page.entities)
        position, found.is_complete = page.next, page.next is None
    examination.finish()
    if found.is_complete:
        found.matches, found.is_exact = found.examined, True
    else:
        total = entities.total(table, work.query)
        found.matches, found.is_exact = total.number, total.is_exact
        if found.matches is not None:
            found.matches = max(found.matches, found.examined)
    return found


@dataclass(slots=True)
class _Examination:
    """A preview in the making, page by page as the run would go."""

    work: Work
    preview: BulkEditPreview
    spread: list[Edited] = field(default_factory=list)
    typical: list[Edited] = field(default_factory=list)  # one of each kind
    inserted: set[EntityKey] = field(default_factory=set)
    deleted: set[EntityKey] = field(default_factory=set)
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the same sample each time

    def add(self, found: Sequence[StoredEntity]) -> None:
        counts = self.preview.counts
        self.preview.examined += len(found)
        edited, skipped = self.work.evaluate(found)
        taken = self._taken([it.key for it in edited if it.is_moved])
        for it in edited:
            if it.is_moved and it.key in taken:
                skipped.append(SkippedEntity(it.old_key, Obstacle(ObstacleKind.KEY_EXISTS)))
            elif it.is_unchanged:
                counts.unchanged += 1
            else:
                self._count(it)
        counts.skip(skipped)

    def _taken(self, keys: Sequence[EntityKey]) -> set[EntityKey]:
        if not keys:
            return set()
        there = set(sql.run_in_lane(restoring.existing(self.work.relation, keys)))
        return (there - self.deleted) | (self.inserted & set(keys))

    def _count(self, edited: Edited) -> None:
        counts = self.preview.counts
        if edited.values is None:
            counts.deleted += 1
        elif edited.is_moved:
            counts.moved += 1
            self.inserted.add(edited.key)
            self.deleted.add(edited.old_key)
        else:
            counts.changed += 1
        is_new = [self.preview.types[it] == 0 for it in edited.types]
        for change in edited.types:
            self.preview.types[change] += 1
        for name, loss in edited.losses:
            is_new.append(self.preview.losses[LossOfProperty(name, loss)] == 0)
            self.preview.losses[LossOfProperty(name, loss)] += 1
        self._sample(edited, is_typical=any(is_new))

    def _sample(self, edited: Edited, *, is_typical: bool) -> None:
        number = self.preview.counts.written
        if number <= SAMPLE:
            self.preview.samples.append(edited)
        elif is_typical:
            self.typical.append(edited)
        elif len(self.spread) < SAMPLE:
            self.spread.append(edited)
        elif (place := self.chance.randrange(number - SAMPLE)) < SAMPLE:
            self.spread[place] = edited

    def finish(self) -> None:
        others = sorted([*self.spread, *self.typical], key=lambda it: it.old_key)
        self.preview.samples += others
