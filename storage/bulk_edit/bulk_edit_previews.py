"""Previews of a bulk edit: counts, entities that it would skip, data losses, and a sample before and after."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple, Self

from django.utils import timezone

from storage.bulk_edit import second_copies
from storage.bulk_edit.bulk_edit_work import BulkEditRequest, SkippedEntity, Work
from storage.bulk_edit.bulk_edits import Counts, check
from storage.bulk_edit.second_copies import TakenKeys
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.errors import OperationTimedOut
from storage.domain.filters.query import Position
from storage.domain.values.edm import Edm
from storage.editing.bulk_edit import Edited, Obstacle, ObstacleKind, TypeChange
from storage.editing.conversions import Loss
from storage.entities import entities
from storage.history import past
from storage.models import Table
from storage.relations import history
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.failures import Canceled

SAMPLE: Final = 10  # entities of a preview: the first ones, and as many from anywhere
_TYPICAL: Final = 3  # copies that are missing or differ, which a sample has in any case
PREVIEW_LIMIT: Final = timedelta(seconds=10)
COUNT_MOMENT: Final = timedelta(seconds=1)  # to count what could not be examined


class LossOfProperty(NamedTuple):
    property: str
    loss: Loss


@dataclass(slots=True)
class BulkEditPreview:
    """Predicted effect of a bulk edit."""

    read_at: int
    # number of entities that the query finds; None if not even an estimate is known
    matches: int | None = None
    is_exact: bool = False
    examined: int = 0  # number of them that were looked at; the counts are of these
    is_complete: bool = False
    can_undo: bool = False
    counts: Counts = field(default_factory=Counts)
    types: Counter[TypeChange] = field(default_factory=Counter)
    losses: Counter[LossOfProperty] = field(default_factory=Counter)
    # the first entities that would be written, some from anywhere, and one or more for each type change and loss
    samples: list[Edited] = field(default_factory=list)
    left_over: list[Edited] = field(default_factory=list)  # the first second copies that would be deleted

    def dump(self) -> dict[str, Any]:
        """Return the preview as JSON, with the keys of its sample."""
        return {
            "read_at": self.read_at,
            "matches": self.matches,
            "is_exact": self.is_exact,
            "examined": self.examined,
            "is_complete": self.is_complete,
            "can_undo": self.can_undo,
            "counts": self.counts.dump(),
            "types": [[*it, number] for it, number in self.types.items()],
            "losses": [[*it, number] for it, number in self.losses.items()],
            "samples": [it.old_key for it in self.samples],
            "left_over": [it.old_key for it in self.left_over],
        }

    @property
    def is_in_step(self) -> bool:
        """Return whether the second copies are known to be as an edit that replaces and deletes would make them."""
        return self.is_complete and not self.counts.written and not self.counts.skipped


def load(table: Table, request: BulkEditRequest, dumped: Mapping[str, Any]) -> BulkEditPreview:
    """Load a dumped preview and evaluate its sample again; the sample is empty if the query is cancelled."""
    work = Work.of(table, request, timezone.now(), notes_types=True)
    keys = _read_keys(dumped["samples"])
    try:
        edited, _ = work.evaluate(entities.get_many(table, keys))
        left_over = _deleted(
            second_copies.read_existing(work.target, _read_keys(dumped.get("left_over", ())))
        )
        if work.editor.second_copy is not None:
            edited = second_copies.sort(work, edited, TakenKeys()).written
    except Canceled:
        edited, left_over = [], []
    sample = {it.old_key: it for it in edited}
    return BulkEditPreview(
        **{
            name: dumped[name]
            for name in ("read_at", "matches", "is_exact", "examined", "is_complete", "can_undo")
        },
        counts=Counts.load(dumped["counts"]),
        types=Counter(
            {TypeChange(name, *map(_load_type, it)): number for name, *it, number in dumped["types"]}
        ),
        losses=Counter({LossOfProperty(name, Loss(loss)): number for name, loss, number in dumped["losses"]}),
        samples=[sample[key] for key in keys if key in sample],
        left_over=left_over,
    )


def _read_keys(dumped: Sequence[Sequence[str]]) -> list[EntityKey]:
    return [EntityKey(*it) for it in dumped]


def _deleted(copies: Mapping[EntityKey, StoredEntity]) -> list[Edited]:
    return [Edited(it, key, key, None) for key, it in copies.items()]


def _load_type(name: str | None) -> Edm | None:
    return None if name is None else Edm(name)


def preview(
    table: Table,
    request: BulkEditRequest,
    *,
    limit: timedelta = PREVIEW_LIMIT,
    clock: Callable[[], float] = time.monotonic,
    is_check: bool = False,
) -> BulkEditPreview:
    """Preview an edit by evaluating it without writing; stops after ``limit`` with the result so far.

    With ``is_check``, the account may refuse writes.
    """
    examination = Examination.begin(table, request, is_check=is_check)
    examination.advance_for(limit, clock)
    return examination.summarize()


@dataclass(slots=True)
class Examination:
    """Preview in progress, page by page in the order of the run."""

    table: Table
    work: Work
    preview: BulkEditPreview
    position: Position | None = None
    is_clearing: bool = False  # as Progress.is_clearing
    is_too_many: bool = False  # to count
    first: list[Edited] = field(default_factory=list)
    spread: list[Edited] = field(default_factory=list)
    typical: list[Edited] = field(default_factory=list)  # one of each kind
    # hashes of keys, because they may be those of all entities of a table
    taken: TakenKeys = field(default_factory=TakenKeys)
    inserted: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the same sample each time

    @classmethod
    def begin(cls, table: Table, request: BulkEditRequest, *, is_check: bool = False) -> Self:
        """Begin a preview; raises the errors of ``bulk_edits.check``."""
        if not is_check:
            check(table, request)
        work = Work.of(table, request, timezone.now(), notes_types=True)
        can_undo = history.is_recorded(table.account)
        return cls(table, work, BulkEditPreview(past.closed_present().ticks, can_undo=can_undo))

    def advance_for(self, limit: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        """Examine pages until the time limit; a deletion then counts all remaining entities."""
        deadline = clock() + limit.total_seconds()
        while not self.preview.is_complete and clock() < deadline:
            if not (self.work.editor.deletes and self.preview.examined and self._count_deleted()):
                self._advance()

    def _advance(self) -> None:
        if self.is_clearing:
            page = self.work.read_copies(self.position)
            self._add_left_over(page.entities)
        else:
            page = self.work.read(self.position)
            self._add(page.entities)
        self.position = page.next
        if page.next is None:
            self.preview.is_complete = self.is_clearing or not self.work.deletes_left_over
            self.is_clearing = True

    def _add_left_over(self, copies: Sequence[StoredEntity]) -> None:
        left_over = second_copies.left_over(self.work, copies, self.taken)
        preview = self.preview
        preview.counts.left_over += len(left_over)
        first = left_over[: max(0, SAMPLE - len(preview.left_over))]
        preview.left_over += _deleted({it.key: it for it in first})

    def _count_deleted(self) -> bool:
        if self.is_too_many:
            return False
        try:
            number = entities.count(self.table, self.work.query, limit=COUNT_MOMENT)
        except OperationTimedOut:
            self.is_too_many = True
            return False
        self.preview.counts.deleted = self.preview.examined = number
        self.preview.is_complete = True
        return True

    def summarize(self) -> BulkEditPreview:
        """Return the preview as far as it has been computed."""
        preview = self.preview
        preview.samples = [*self.first, *sorted([*self.spread, *self.typical], key=lambda it: it.old_key)]
        if preview.is_complete:
            preview.matches, preview.is_exact = preview.examined, True
        elif preview.matches is None:
            total = entities.total(self.table, self.work.query, limit=COUNT_MOMENT)
            preview.matches, preview.is_exact = total.number, total.is_exact
        if preview.matches is not None:
            preview.matches = max(preview.matches, preview.examined)
        return preview

    def _add(self, stored_entities: Sequence[StoredEntity]) -> None:
        counts = self.preview.counts
        self.preview.examined += len(stored_entities)
        edited, skipped = self.work.evaluate(stored_entities)
        if self.work.editor.second_copy is not None:
            copies = second_copies.sort(self.work, edited, self.taken)
            self.taken.add(copies.keys)
            counts.unchanged += copies.unchanged
            skipped += copies.skipped
            for it in sorted(copies.written, key=lambda it: it.old_key):
                self._count(it)
            counts.skip(skipped)
            return
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
        there = sql.run_in_lane(statements.present(self.work.relation, keys))
        return {
            it for it in keys if hash(it) in self.inserted or (it in there and hash(it) not in self.deleted)
        }

    def _count(self, edited: Edited) -> None:
        counts = self.preview.counts
        is_new = []
        if edited.replaced is not None:
            counts.replaced += 1
            is_new.append(counts.replaced <= _TYPICAL)
        elif edited.is_copy:
            counts.copied += 1
            is_new.append(counts.copied <= _TYPICAL)
        elif edited.content is None:
            counts.deleted += 1
        elif edited.is_moved:
            counts.moved += 1
            self.inserted.add(hash(edited.key))
            self.deleted.add(hash(edited.old_key))
        else:
            counts.changed += 1
        is_new += [self.preview.types[it] == 0 for it in edited.types]
        for change in edited.types:
            self.preview.types[change] += 1
        for name, loss in edited.losses:
            is_new.append(self.preview.losses[LossOfProperty(name, loss)] == 0)
            self.preview.losses[LossOfProperty(name, loss)] += 1
        self._sample(edited, is_typical=any(is_new))

    def _sample(self, edited: Edited, *, is_typical: bool) -> None:
        number = self.preview.counts.written
        if number <= SAMPLE:
            self.first.append(edited)
        elif is_typical:
            self.typical.append(edited)
        elif len(self.spread) < SAMPLE:
            self.spread.append(edited)
        elif (place := self.chance.randrange(number - SAMPLE)) < SAMPLE:
            self.spread[place] = edited
