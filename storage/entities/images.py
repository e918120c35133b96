"""Images of entities in a relation whose rows are on several servers: what they change, and how it is written.

The function of the relation writes the entities of a partition, if they have the expected Timestamps; it records the
changes, so that this is an ordinary write. The partitions of a chunk are written in one transaction.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from storage.domain.entities.entity import StoredEntity
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped
from storage.domain.errors import ChangeSetError
from storage.domain.values.kinds import AccountKind
from storage.sql import batch, pages, restoring
from storage.sql import django as sql
from storage.sql.change_rows import ChangeRow
from storage.sql.failures import RolledBack
from storage.sql.history import Recorder
from storage.sql.restoring import Chunk, ListedImage, Source

_OPERATIONS = {Effect.INSERTED: "insert", Effect.CHANGED: "replace", Effect.DELETED: "delete"}


class JudgedImage(NamedTuple):
    """Image with its effect on the entity as it is now."""

    image: ListedImage
    effect: Effect
    now: StoredEntity | None
    reason: Skip | None = None

    @property
    def sample(self) -> Sample:
        return Sample(self.effect, self.image.key, self.now, self.image.stored, self.reason)


def judge(relation: str, source: Source) -> list[JudgedImage]:
    """Return the effects of images; those that are linked have none if one of them is skipped."""
    images = sql.run(restoring.listed(source))
    current = sql.walk(pages.get_many(relation, [it.key for it in images]), sql.run)
    judged = [_judge(it, current.get(it.key)) for it in images]
    held = {it.image.number for it in judged if it.effect is Effect.SKIPPED}
    return [
        it._replace(effect=Effect.SKIPPED, reason=Skip.MOVED)
        if it.image.number in held and it.effect not in (Effect.SKIPPED, Effect.UNCHANGED)
        else it
        for it in judged
    ]


def _judge(image: ListedImage, now: StoredEntity | None) -> JudgedImage:
    if image.expected != (None if now is None else now.timestamp):
        missing = Skip.GONE if now is None else Skip.CHANGED
        reason = Skip.EXISTS if image.expected is None else missing
        return JudgedImage(image, Effect.SKIPPED, now, reason)
    then = None if image.stored is None else image.stored.content
    if then == (None if now is None else now.content):
        return JudgedImage(image, Effect.UNCHANGED, now)
    effect = Effect.INSERTED if now is None else Effect.DELETED if then is None else Effect.CHANGED
    return JudgedImage(image, effect, now)


def count(judged: Iterable[JudgedImage]) -> Chunk:
    """Return the number of images by effect, with the skipped images."""
    counts, examples = dict.fromkeys((it.value for it in Effect), 0), []
    for it in judged:
        counts[it.effect.value] += 1
        if it.reason is not None:
            examples.append(Skipped(it.image.key, it.reason))
    return Chunk(**counts, examples=examples)


def write(relation: str, source: Source, recorder: Recorder | None) -> Chunk:
    """Make entities equal to their images in the caller's transaction; raises RolledBack if another was faster."""
    judged = judge(relation, source)
    written = [it for it in judged if it.effect in _OPERATIONS]
    for _, several in groupby(written, lambda it: it.image.key.partition_key):
        try:
            sql.run(batch.apply_rows(relation, [_row(it) for it in several], recorder))
        except ChangeSetError:
            raise RolledBack from None
    return count(judged)


def _row(judged: JudgedImage) -> ChangeRow:
    image, verb = judged.image, _OPERATIONS[judged.effect]
    return ChangeRow(verb, image.key, image.fragments, image.expected, None, AccountKind.STORAGE)
