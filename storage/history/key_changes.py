"""Record of changed entity keys, for comments and for reversing operations."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import DurationField, ExpressionWrapper, F, Value
from django.utils import timezone

from storage.core import registry
from storage.core.account_settings import HISTORY_DAYS_LIMIT
from storage.domain.entities.entity import EntityKey
from storage.history import versions
from storage.models import EntityMove, Table
from storage.relations import history
from storage.sql import django as sql
from storage.sql import pages
from storage.sql.history import Recorder
from storage.sql.relations import relation_of
from storage.sql.restoring import Images

# the keys that comments were moved to or from, with those at the other ends of these moves
Moves = Mapping[EntityKey, Collection[EntityKey]]

_MOVES: Final = """
SELECT partition_key, row_key, new_partition_key, new_row_key FROM storage_entitymove WHERE table_id = {table}
"""


def move(table: Table, moved: Collection[tuple[EntityKey, EntityKey]]) -> None:
    """Record new keys of entities and move their comments, in the caller's transaction."""
    commented = {pair for follower in registry.key_followers() for pair in follower.move(table, moved)}
    noted = moved if history.is_recorded(table.account) else commented
    now = timezone.now()
    EntityMove.objects.bulk_create(
        EntityMove(
            table=table,
            partition_key=old.partition_key,
            row_key=old.row_key,
            new_partition_key=new.partition_key,
            new_row_key=new.row_key,
            moved_at=now,
            has_comments=(old, new) in commented,
        )
        for old, new in noted
    )


def read_moves(table: Table) -> Moves:
    """Return the moves of the commented entities of a table."""
    moves: dict[EntityKey, set[EntityKey]] = {}
    for pk, rk, new_pk, new_rk in EntityMove.objects.filter(table=table, has_comments=True).values_list(
        "partition_key", "row_key", "new_partition_key", "new_row_key"
    ):
        old, new = EntityKey(pk, rk), EntityKey(new_pk, new_rk)
        moves.setdefault(old, set()).add(new)
        moves.setdefault(new, set()).add(old)
    return moves


def linked(table: Table, images: Images) -> Images:
    """Group images by moved entity, so that all keys of a move are applied atomically."""
    if not EntityMove.objects.filter(table=table).exists():
        return images
    return replace(images, moves=_MOVES.format(table=table.pk))


def follow(table: Table, moves: Moves, written: Iterable[EntityKey], recorder: Recorder | None) -> None:
    """Move comments with entities whose keys are changed back or again, in the caller's transaction."""
    touched = list(dict.fromkeys(it for key in written for it in _reachable(moves, key)))
    if not touched:
        return
    present = sql.walk(pages.get_many(relation_of(table), touched))
    ours = set(touched)
    if recorder is not None:
        latest = versions.newest_of(table.account_id, [(table.pk, key) for key in touched])
        ours = {key for (_, key), change in latest.items() if change.actor.request_id == recorder.request}
    for key in touched:
        if key in ours and key not in present:
            target = next((it for it in _reachable(moves, key) if it in ours and it in present), None)
            if target is not None:
                for follower in registry.key_followers():
                    follower.move_one(table, key, target)


def _reachable(moves: Moves, key: EntityKey) -> Iterator[EntityKey]:
    """Yield a key and all keys that it was moved to, nearest first."""
    seen, waiting = {key}, deque([key] if key in moves else [])
    while waiting:
        key = waiting.popleft()
        yield key
        following = [it for it in moves[key] if it not in seen]
        seen.update(following)
        waiting.extend(following)


def tidy(now: datetime) -> None:
    """Delete moves beyond the retention of all histories."""
    EntityMove.objects.filter(moved_at__lt=now - timedelta(days=HISTORY_DAYS_LIMIT)).delete()
    # there may be millions: they are kept no longer than the changes of their accounts
    days = ExpressionWrapper(
        F("table__account__history_days") * Value(timedelta(days=1)), output_field=DurationField()
    )
    forgotten = EntityMove.objects.filter(has_comments=False, moved_at__lt=Value(now) - days)
    EntityMove.objects.filter(pk__in=forgotten.values("pk")).delete()
