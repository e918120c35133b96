"""Make entities equal to images of them, as ordinary recorded writes that never overwrite newer work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from django.db import connection

from storage.domain.access.actor import Actor
from storage.domain.entities.restoring import Skipped
from storage.domain.errors import OperationTimedOut
from storage.models import Table
from storage.operations.accounts import accounts
from storage.operations.counting import table_use
from storage.operations.relations import history, table_relations
from storage.sql import django as sql
from storage.sql import restoring
from storage.sql.failures import Canceled
from storage.sql.history import Recorder
from storage.sql.relations import relation_name
from storage.sql.restoring import Chunk, Images, Span

COLLECTION_LIMIT: Final = timedelta(seconds=60)
SKIPPED_LIMIT: Final = 1_000


@dataclass(slots=True)
class Reverted:
    """What became of the entities. ``skipped`` is a number, ``examples`` are the first of those with their reasons."""

    inserted: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: int = 0
    examples: list[Skipped] = field(default_factory=list)

    @property
    def written(self) -> int:
        return self.inserted + self.changed + self.deleted

    def add(self, chunk: Chunk) -> None:
        self.inserted += chunk.inserted
        self.changed += chunk.changed
        self.deleted += chunk.deleted
        self.unchanged += chunk.unchanged
        self.skipped += len(chunk.skipped)
        self.examples += chunk.skipped[: SKIPPED_LIMIT - len(self.examples)]


def apply_images(
    table: Table,
    images: Images,
    *,
    by: Actor,
    into: Reverted | None = None,
    save: Callable[[], object] = lambda: None,
) -> Reverted:
    """Make the entities of a table equal to their images, those that are still in the expected version.

    Outside a transaction each chunk of up to 1,024 entities is committed on its own, so that writers never wait long:
    then a failure leaves the chunks before it done, which ``into`` counts. ``save`` is called in the transaction of
    each chunk, when that is counted. In the caller's transaction it is all or nothing. The request id of ``by`` is
    that of all changes. Raises OperationTimedOut if the query of the images takes too long, and ServerBusy if a chunk
    is rolled back again and again because of concurrent writes.
    """
    account = accounts.writable(table.account_id)
    table_relations.refuse_distributed(table)
    relation, reverted = relation_name(table.pk), Reverted() if into is None else into
    recorder = history.recorder(account, by)

    def count(chunk: Chunk) -> None:
        reverted.add(chunk)
        save()

    with _collected(images) as has_long:
        for span in sql.run(restoring.spans()):
            _apply(relation, span, recorder, count, has_long=has_long)
    if reverted.written:
        table_use.record_write(table)
    return reverted


@contextmanager
def _collected(images: Images) -> Iterator[bool]:
    """Keep the images for the length of the block; yields whether an entity with long keys may be inserted."""
    with sql.in_session():
        sql.execute(restoring.DROP)
        sql.execute(restoring.CREATE)
        try:
            found = sql.run_limited(restoring.collect(images), COLLECTION_LIMIT)
            yield found.has_long
        finally:
            if not connection.needs_rollback and connection.is_usable():
                sql.execute(restoring.DROP)


def _apply(
    relation: str, span: Span, recorder: Recorder | None, count: Callable[[Chunk], None], *, has_long: bool
) -> None:
    """Apply a chunk, or its halves if it takes longer than a statement may."""
    try:
        _apply_together(relation, span, recorder, count, has_long=has_long)
    except Canceled:
        if span.first == span.last:
            raise OperationTimedOut from None
        for half in span.halves():
            _apply(relation, half, recorder, count, has_long=has_long)


@sql.repeatable
def _apply_together(
    relation: str, span: Span, recorder: Recorder | None, count: Callable[[Chunk], None], *, has_long: bool
) -> None:
    if has_long:
        sql.run_in_lane(restoring.make_room(relation, span))
    count(sql.run_in_lane(restoring.apply(relation, span, recorder, has_long=has_long)))
