"""Bulk writing of entities, shared by imports, copies, bulk edits, undo and restores."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from django.db import transaction

from storage.accounts import accounts
from storage.domain.access.actor import Actor
from storage.domain.entities.changes import Insert, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import EntityAlreadyExists, OperationTimedOut, StorageError
from storage.domain.requests.outcomes import is_server_failure
from storage.entities import images
from storage.metrics import table_use
from storage.models import Table
from storage.relations import history, table_relations
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql import pages, restoring
from storage.sql.failures import Canceled
from storage.sql.forms import capabilities
from storage.sql.history import Recorder
from storage.sql.long_keys import is_long
from storage.sql.relations import relation_of
from storage.sql.restoring import Chunk, Image, Span

P = TypeVar("P", Span, Sequence[Image])


class WriteMode(StrEnum):
    """Treatment of entities that exist already."""

    INSERT = "insert"  # it stays, and the new one is refused
    SKIP = "skip"  # it stays, and the new one is counted
    MERGE = "merge"
    REPLACE = "replace"

    @property
    def is_insertion(self) -> bool:
        return self in (WriteMode.INSERT, WriteMode.SKIP)


@dataclass(slots=True)
class WriteResult:
    """The result of writing entities."""

    inserted: int = 0
    changed: int = 0
    skipped: int = 0
    # the places of the entities that were not written, and the errors
    refused: list[tuple[int, StorageError]] = field(default_factory=list)

    @property
    def written(self) -> int:
        return self.inserted + self.changed


@sql.repeatable
def write_many(table: Table, entities: Sequence[Entity], mode: WriteMode, *, by: Actor) -> WriteResult:
    """Write entities in order, in the caller's transaction if there is one, recorded as changes of ``by``.

    If several entities share keys, the last one wins. Raises StorageError if the account refuses writes.
    """
    account = accounts.writable(table.account)
    result = WriteResult()
    if not entities:
        return result
    table_relations.complete(table.pk)
    recorder = history.recorder(account, by)
    for several in _rounds(entities):
        _write_round(table, several, mode, recorder, result)
    if result.written:
        table_use.record_write(table)
    return result


_Round = dict[EntityKey, tuple[int, Entity]]  # with their places


def _rounds(entities: Iterable[Entity]) -> Sequence[_Round]:
    """Divide entities into rounds without repeated keys; later entities with a key go into later rounds."""
    rounds: list[_Round] = []
    times: dict[EntityKey, int] = {}
    for place, entity in enumerate(entities):
        number = times.get(entity.key, 0)
        times[entity.key] = number + 1
        if number == len(rounds):
            rounds.append({})
        rounds[number][entity.key] = place, entity
    return rounds


def _write_round(
    table: Table, several: _Round, mode: WriteMode, recorder: Recorder | None, result: WriteResult
) -> None:
    relation = relation_of(table)
    existing = set[EntityKey]() if mode.is_insertion else existing_keys(table, list(several))
    # in the order of keys, in which other writers lock them too
    changes = {key: _make_change(several[key][1], mode) for key in sorted(several)}
    ordinary = [change for key, change in changes.items() if not is_long(key)]
    together = statements.change_all(relation, ordinary, recorder) if ordinary else None
    done: set[EntityKey] = set() if together is None else set(sql.run(together))
    for key, change in changes.items():
        if key in done:
            continue
        if mode.is_insertion and together is not None and not is_long(key):
            error: StorageError | None = EntityAlreadyExists()
        else:
            error = _change_alone(relation, change, recorder)
        if error is None:
            done.add(key)
        elif mode is WriteMode.SKIP and isinstance(error, EntityAlreadyExists):
            result.skipped += 1
        else:
            result.refused.append((several[key][0], error))
    changed = len(existing & done)
    result.changed += changed
    result.inserted += len(done) - changed


def _make_change(entity: Entity, mode: WriteMode) -> Insert | Upsert:
    return Insert(entity) if mode.is_insertion else Upsert(entity, merge=mode is WriteMode.MERGE)


def _change_alone(relation: str, change: Insert | Upsert, recorder: Recorder | None) -> StorageError | None:
    """Apply a change by itself; return the error if it is refused."""
    try:
        with transaction.atomic():  # a refusal may be an error of PostgreSQL
            sql.run(statements.change(relation, change, recorder))
    except StorageError as error:
        if is_server_failure(error.status):
            raise
        return error
    return None


def existing_keys(table: Table, keys: Sequence[EntityKey]) -> set[EntityKey]:
    """Return the existing keys among these."""
    relation = relation_of(table)
    if not keys:
        return set()
    if table.form.capabilities.joins_partitions:
        return sql.run(statements.present(relation, list(dict.fromkeys(keys))))
    return set(sql.walk(pages.get_many(relation, keys)))


def write_images(
    relation: str,
    source: P,
    recorder: Recorder | None,
    *,
    has_long: bool,
    note: Callable[[Chunk, P], object] | None = None,
) -> Chunk:
    """Make entities equal to their images; on a statement timeout, split the images in halves and retry.

    ``has_long`` tells whether an entity with long keys may have to be inserted. ``note`` is called with the
    result of a part, in the same transaction, or savepoint in the caller's; such a part is retried when
    concurrent writes roll it back. Raises OperationTimedOut if a single image takes too long.
    """

    is_joined = capabilities(relation).joins_partitions

    def write(part: P) -> Chunk:
        if has_long:
            sql.run_in_lane(restoring.make_room(relation, part))
        if is_joined:
            chunk = sql.run_in_lane(restoring.apply(relation, part, recorder, has_long=has_long))
        else:
            chunk = images.write(relation, part, recorder)
        if note is not None:
            note(chunk, part)
        return chunk

    return _write_in_halves(source, write if is_joined and note is None else sql.repeatable(write))


def _write_in_halves(source: P, write: Callable[[P], Chunk]) -> Chunk:
    try:
        return write(source)
    except Canceled:
        halves = restoring.halves(source)
        if halves is None:
            raise OperationTimedOut from None
        first, second = (_write_in_halves(half, write) for half in halves)
        return first + second
