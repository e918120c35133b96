"""Writing of edited entities of a chunk, if they are unchanged since they were read."""

from collections.abc import Sequence
from typing import NamedTuple

from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.restoring import Skip, Skipped
from storage.editing.bulk_edit import Edited
from storage.entities.writing import write_images
from storage.history import key_changes
from storage.models import Table
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql import restoring
from storage.sql.history import Recorder
from storage.sql.relations import relation_name
from storage.sql.restoring import Chunk, Image


class Written(NamedTuple):
    """Number of written entities, and the skipped ones."""

    changed: int
    moved: int
    deleted: int
    skipped: list[Skipped]


def write(table: Table, edited: Sequence[Edited], recorder: Recorder | None) -> Written:
    """Write entities in the caller's transaction; skip those changed concurrently or whose new key is taken."""
    relation = relation_name(table.pk)
    staying, moving = [it for it in edited if not it.is_moved], [it for it in edited if it.is_moved]
    changed, deleted, skipped = 0, 0, list[Skipped]()
    if staying:
        done = _apply(relation, [_image(it) for it in staying], recorder)
        changed, deleted, skipped = done.changed, done.deleted, done.examples
    if not moving:
        return Written(changed, 0, deleted, skipped)
    moved, failed = _move(relation, moving, recorder)
    key_changes.move(table, [(it.old_key, it.key) for it in moved])
    return Written(changed, len(moved), deleted, [*skipped, *failed])


def _image(edited: Edited) -> Image:
    return Image(*edited.old_key, edited.stored.timestamp, edited.content, edited.patch)


def _move(
    relation: str, moving: Sequence[Edited], recorder: Recorder | None
) -> tuple[list[Edited], list[Skipped]]:
    """Insert entities under new keys that are free, then delete the old ones; return the moved and the skipped ones.

    The old entities are locked first: no reader sees an entity under both keys or under none.
    """
    old = [Image(*it.old_key, it.stored.timestamp, None) for it in moving]
    places = sql.run_in_lane(restoring.lock(relation, old))
    new = sorted((moving[place] for place in places), key=lambda it: it.key)
    taken: set[EntityKey] = set()
    if new:
        images = [Image(*it.key, None, it.content) for it in new]
        taken = {it.key for it in _apply(relation, images, recorder).examples if it.key is not None}
    exists = {it.old_key for it in new if it.key in taken}
    deleted = [image for image in old if EntityKey(*image[:2]) not in exists]
    done = _apply(relation, deleted, recorder) if deleted else None
    skipped = [Skipped(key, Skip.EXISTS) for key in exists]
    skipped += [] if done is None else done.examples
    left = {it.key for it in skipped}
    return [it for it in new if it.old_key not in left], skipped


def write_copies(
    source: str, target: str, copies: Sequence[Edited], recorder: Recorder | None
) -> tuple[list[Edited], list[Skipped]]:
    """Insert or replace second copies of entities that are unchanged; return the written and the skipped ones.

    The originals are locked, so that none is changed before its copy is committed.
    """
    originals = [Image(*it.old_key, it.stored.timestamp, None) for it in copies]
    places = set(sql.run_in_lane(restoring.lock(source, originals)))
    changed = [it.old_key for place, it in enumerate(copies) if place not in places]
    present = sql.run_in_lane(statements.present(source, changed)) if changed else set()
    skipped = [Skipped(key, Skip.CHANGED if key in present else Skip.GONE) for key in changed]
    held = {it.key: it for place, it in enumerate(copies) if place in places}
    if not held:
        return [], skipped
    done = _apply(target, [_image_of_copy(held[key]) for key in sorted(held)], recorder)
    for it in done.examples:
        assert it.key is not None
        skipped.append(Skipped(held.pop(it.key).old_key, it.reason))
    return [*held.values()], skipped


def _image_of_copy(copy: Edited) -> Image:
    return Image(*copy.key, None if copy.replaced is None else copy.replaced.timestamp, copy.content)


def delete(relation: str, stored: Sequence[StoredEntity], recorder: Recorder | None) -> int:
    """Delete entities that are unchanged since they were read; return their number."""
    return _apply(relation, [Image(*it.key, it.timestamp, None) for it in stored], recorder).deleted


def _apply(relation: str, images: Sequence[Image], recorder: Recorder | None) -> Chunk:
    return write_images(relation, images, recorder, has_long=restoring.inserts_long(images))
