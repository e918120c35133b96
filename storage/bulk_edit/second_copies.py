"""Second copies of entities under other keys or in another table: what an edit writes, and what is left over.

A copy is recognized by its key alone: the operations of the edit compute it from the original. An entity under such a
key is up to date if it has the properties that the edit would write; otherwise it is another entity, or an older copy,
which only an edit that replaces overwrites. An entity that the query itself finds is an original and is never replaced
or deleted.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from storage.bulk_edit.bulk_edit_work import SkippedEntity, Work, read_page
from storage.domain.entities.entity import EntityKey, StoredEntity, read_stored
from storage.domain.filters.ast import Filter, all_of, any_of, equals
from storage.domain.filters.query import EntityQuery, Position
from storage.editing.bulk_edit import Edited, Obstacle, ObstacleKind
from storage.editing.comparison import compare
from storage.entities import entities
from storage.models import Table

_KEYS_AT_ONCE: Final = 100  # keys in one filter


@dataclass(slots=True)
class TakenKeys:
    """Keys of the copies of all originals up to a position of the walk, as hashes, because they may be many."""

    position: Position | None = None  # None at the start, or when ``is_complete``
    is_complete: bool = False
    hashes: set[int] = field(default_factory=set)

    def __contains__(self, key: EntityKey) -> bool:
        return hash(key) in self.hashes

    def add(self, keys: Collection[EntityKey]) -> None:
        self.hashes.update(map(hash, keys))

    def is_at(self, position: Position | None, *, is_complete: bool) -> bool:
        return self.is_complete if is_complete else self.position == position and not self.is_complete


@dataclass(slots=True)
class SortedCopies:
    """Copies of a chunk, sorted by their effect."""

    new: list[Edited] = field(default_factory=list)
    differing: list[Edited] = field(default_factory=list)  # each with the entity that it replaces
    unchanged: int = 0
    skipped: list[SkippedEntity] = field(default_factory=list)
    keys: list[EntityKey] = field(default_factory=list)  # all keys of copies

    @property
    def written(self) -> list[Edited]:
        return [*self.new, *self.differing]

    def skip(self, edited: Edited, kind: ObstacleKind) -> None:
        self.skipped.append(SkippedEntity(edited.old_key, Obstacle(kind)))


def sort(work: Work, edited: Sequence[Edited], taken: TakenKeys) -> SortedCopies:
    """Compare copies with the entities that have their keys; ``taken`` has the keys of earlier copies."""
    result = SortedCopies()
    by_key: dict[EntityKey, Edited] = {}
    for it in edited:
        if work.copies_within and it.key == it.old_key:
            result.unchanged += 1  # it has the key of its copy already
        elif it.key in taken or it.key in by_key:
            result.skip(it, ObstacleKind.KEY_TWICE)
        else:
            by_key[it.key] = it
    result.keys = [*by_key]
    there = read_existing(work.target, result.keys)
    differing = []
    for key, it in by_key.items():
        if key not in there:
            result.new.append(it)
        elif _is_up_to_date(there[key], it):
            result.unchanged += 1
        else:
            differing.append(replace(it, replaced=there[key]))
    originals = originals_among(work, [it.key for it in differing])
    for it in differing:
        if it.key in originals:
            result.skip(it, ObstacleKind.ORIGINAL)
        elif not work.replaces:
            result.skip(it, ObstacleKind.KEY_EXISTS)
        else:
            result.differing.append(it)
    return result


def left_over(work: Work, copies: Sequence[StoredEntity], taken: TakenKeys) -> list[StoredEntity]:
    """Return the entities that are the copy of no original; ``taken`` has the keys of all copies."""
    candidates = [it for it in copies if it.key not in taken]
    originals = originals_among(work, [it.key for it in candidates])
    return [it for it in candidates if it.key not in originals]


def originals_among(work: Work, keys: Sequence[EntityKey]) -> set[EntityKey]:
    """Return the keys in the target table of entities that the query finds; none if it is another table."""
    if not work.copies_within:
        return set()
    originals: set[EntityKey] = set()
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        one_of = _one_of(keys[start : start + _KEYS_AT_ONCE])
        query = EntityQuery(one_of if work.filter is None else all_of([work.filter, one_of]))
        for several in _pages(work.table, query):
            originals.update(it.key for it in several)
    return originals


def _pages(table: Table, query: EntityQuery) -> Iterator[list[StoredEntity]]:
    page = read_page(table, query, None)
    yield page.entities
    while page.next is not None:
        page = read_page(table, query, page.next)
        yield page.entities


def read_existing(table: Table, keys: Sequence[EntityKey]) -> dict[EntityKey, StoredEntity]:
    """Return the existing entities of a table, which may not exist yet, among these keys."""
    if table.pk is None:
        return {}
    return {it.key: it for several in entities.get_many_paged(table, keys) for it in several}


def _is_up_to_date(there: StoredEntity, copy: Edited) -> bool:
    result = copy.result
    assert result is not None
    if there.content == result.content:
        return True
    return not compare(read_stored(there).properties, read_stored(result).properties)


def _one_of(keys: Sequence[EntityKey]) -> Filter:
    return any_of(
        [all_of([equals("PartitionKey", key.partition_key), equals("RowKey", key.row_key)]) for key in keys]
    )


def map_keys(
    work: Work,
    position: Position | None,
    *,
    is_complete: bool,
    look: Callable[[], object] = lambda: None,
) -> TakenKeys:
    """Compute the keys of the copies of all originals before a position, or of all of them; see Run.look."""
    taken = TakenKeys(position, is_complete)
    if is_complete or position is not None:
        for several in _pages(work.table, replace(work.query, end=None if is_complete else position)):
            edited, _ = work.evaluate(several)
            taken.add(keys_of(work, edited))
            look()
    return taken


def keys_of(work: Work, edited: Sequence[Edited]) -> list[EntityKey]:
    """Return the keys of copies, without those of entities that have theirs already."""
    return [it.key for it in edited if not (work.copies_within and it.key == it.old_key)]
