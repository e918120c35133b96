"""Application of images by recorded writes that never overwrite newer changes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final, Protocol

from django.db import connection

from storage.accounts import accounts
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key, read_stored
from storage.domain.entities.fits import find_misfit
from storage.domain.entities.restoring import Effect, Sample, Skip, Skipped
from storage.domain.errors import OperationTimedOut
from storage.domain.values.kinds import AccountKind
from storage.entities import writing
from storage.entities.images import count, judge
from storage.history import key_changes
from storage.metrics import table_use
from storage.models import Table
from storage.relations import history
from storage.sql import django as sql
from storage.sql import restoring
from storage.sql.relations import relation_of
from storage.sql.restoring import Chunk, Content, Images, Span
from storage.undo.outcomes import EXAMPLES, TableOutcome

COLLECTION_LIMIT: Final = timedelta(seconds=60)


class Save(Protocol):
    """Function that stores the progress up to a key; ``left`` is the number of remaining entities."""

    def __call__(self, after: EntityKey, left: int) -> object: ...


def apply_images(
    table: Table,
    images: Images,
    *,
    by: Actor,
    into: TableOutcome | None = None,
    save: Save | None = None,
    rest: Callable[[], object] = lambda: None,
    after: EntityKey | None = None,
    kind: AccountKind | None = None,
) -> TableOutcome:
    """Make entities equal to their images if they still have the expected version."""
    account = accounts.writable(table.account)
    relation, outcome = relation_of(table), TableOutcome(table.name, table) if into is None else into
    recorder = history.recorder(account, by)
    moves = key_changes.read_moves(table)

    with _collected(images, outcome, kind, after) as has_long:
        spans = sql.run(restoring.spans())

        def note(chunk: Chunk, span: Span) -> None:
            outcome.add(chunk)
            if moves:
                written = sql.run(restoring.among(span, list(moves)))
                key_changes.follow(table, moves, written, recorder)
            if save is not None:
                save(sql.run(restoring.last_key(span)), spans[-1].last - span.last)

        for span in spans:
            writing.write_images(relation, span, recorder, has_long=has_long, note=note)
            rest()
    if outcome.written:
        table_use.record_write(table)
    return outcome


def preview_images(
    images: Images,
    into: TableOutcome,
    *,
    kind: AccountKind | None = None,
    limit: timedelta = COLLECTION_LIMIT,
) -> None:
    """Count the present effects of images; raises OperationTimedOut."""
    if kind is None:
        _count(images, into, limit)
        return
    with _collected(images, into, kind):
        _count(restoring.COLLECTED, into, limit)


def preview_apart(table: Table, images: Images, sample: int, limit: timedelta) -> TableOutcome:
    """Preview the effects of images in a table whose rows are on several servers; raises OperationTimedOut."""
    outcome, deadline = TableOutcome(table.name, table), time.monotonic() + limit.total_seconds()
    shown: dict[Effect, list[Sample]] = {effect: [] for effect in Effect if effect is not Effect.UNCHANGED}
    with _collected(images, outcome, None):
        for span in sql.run(restoring.spans()):
            judged = judge(relation_of(table), span)
            outcome.add(replace(count(judged), examples=[]))
            for it in judged:
                if len(shown.get(it.effect, ())) < sample and it.effect in shown:
                    shown[it.effect].append(it.sample)
            if time.monotonic() > deadline:
                raise OperationTimedOut
    outcome.samples = sorted((it for several in shown.values() for it in several), key=lambda it: it.key)
    return outcome


def _count(images: Images, outcome: TableOutcome, limit: timedelta) -> None:
    counted = sql.run_limited(restoring.count(images), limit)
    outcome.add(counted)
    if counted.skipped:
        newer = sql.run_limited(restoring.newer_keys(images, EXAMPLES), limit)
        outcome.examples += [Skipped(key, Skip.CHANGED) for key in newer][: EXAMPLES - len(outcome.examples)]


@contextmanager
def _collected(
    images: Images, outcome: TableOutcome, kind: AccountKind | None, after: EntityKey | None = None
) -> Iterator[bool]:
    """Collect images for the block; yields whether an entity with long keys may be inserted."""
    with sql.in_session():
        sql.execute(restoring.DROP)
        sql.execute(restoring.CREATE)
        try:
            for statement in images.before:
                sql.run_limited(statement, COLLECTION_LIMIT)
            has_long = sql.run_limited(
                restoring.collect(images), COLLECTION_LIMIT, settings=restoring.settings_of(images)
            )
            if after is not None:
                sql.run(restoring.leave_out(after))
            if kind is not None:
                # with the first chunk, all that do not fit were counted
                _convert(kind, outcome if after is None else TableOutcome(outcome.name))
            yield has_long
        finally:
            if not connection.needs_rollback and connection.is_usable():
                sql.execute(restoring.DROP)


def _convert(kind: AccountKind, outcome: TableOutcome) -> None:
    """Convert collected content to the format of an account kind; content that does not fit is skipped."""
    for span in sql.run(restoring.spans()):
        new = [_converted(content, kind, outcome) for content in sql.run(restoring.contents(span))]
        if new:
            sql.run(restoring.convert(new))


def _converted(content: Content, kind: AccountKind, outcome: TableOutcome) -> Content:
    key = EntityKey(content.partition_key, content.row_key)
    assert content.text is not None
    entity = read_stored(StoredEntity(encode_entity_key(key), b"0", content.text.encode()))
    misfit = find_misfit(entity, kind)
    if misfit is not None:
        outcome.skip(key, Skip.MISFIT, misfit)
        return Content(*key, None)
    return Content(*key, entity.fragments.content)
