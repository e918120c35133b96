"""The change feed of tables whose rows are on several servers: pages of changes by their Timestamps.

A page reads up to a moment that is closed on all servers, so that no change with an earlier Timestamp comes later. A
position is a Timestamp: the changes before it, and some of its own, were delivered, wherever the rows are.
"""

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from storage.core.relation_forms import Extension
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import StoredEntity, encode_entity_key
from storage.domain.entities.moments import Moment
from storage.domain.errors import ServerBusy
from storage.domain.history.feed import FeedPage, FeedPosition
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.refusals import Reason
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.sql import moments
from storage.sql import node_feed as statements
from storage.sql.feed import PAGE_BYTES
from storage.sql.node_feed import NodeChange, NodeTable, Places
from storage.sql.statement import Statement

T = TypeVar("T")
Steps = Generator[Statement[Any], Any, T]

_ATTEMPTS: Final = 5
_LOOKS: Final = 100  # at transactions that may write up to the moment
_FRESH: Final = 60 * TICKS_PER_SECOND  # a position without changes after it is renewed then


def identify(tables: Sequence[NodeTable]) -> Steps[str]:
    """Return the identity of the servers and of the tables' histories, after which a position is valid."""
    servers = yield statements.identities(_extension(tables))
    if servers is None:
        raise ServerBusy(Reason.NODE_IS_DOWN.of())
    parts = [*servers, *(f"{it.id}:{it.since}" for it in tables)]
    return "0" + hashlib.sha256("|".join(parts).encode()).hexdigest()[:24]


def _extension(tables: Sequence[NodeTable]) -> Extension:
    extension = tables[0].form.extension
    assert extension is not None
    return extension


def close(tables: Sequence[NodeTable]) -> Steps[int]:
    """Close the present moment on all servers, and return it."""
    extension = _extension(tables)
    present = yield moments.present_everywhere(extension)
    for table in tables:
        running = None
        for _ in range(_LOOKS):
            if present is not None:
                running = yield moments.close_everywhere(extension, Moment(present), table.id)
            if not running:
                break
            yield statements.pause()
        if running is None:
            raise ServerBusy(Reason.NODE_IS_DOWN.of())
        if running:
            raise ServerBusy(Reason.MOMENT_NOT_CLOSED.of(moment=Moment(present)))
    closed: int = present
    return closed


def page(account_id: int, tables: Sequence[NodeTable], position: FeedPosition, top: int) -> Steps[FeedPage]:
    """Return the changes after a position; an empty page may keep the position."""
    present = yield moments.present()
    is_old = present - position.ticks > _FRESH
    has_news = is_old
    for table in tables:
        has_news = has_news or (yield statements.has_changes(table, position.ticks))
    if not has_news:
        return FeedPage([], position, has_more=False, window=position)
    until = yield from close(tables)
    several: list[NodeChange] = []
    for table in tables:
        several += yield statements.changes(table, position.ticks, until, position.seq + top + 1)
    several.sort(key=lambda it: (it.ticks, it.table.id, it.op is not Op.DELETE, it.key))
    unseen = several[position.seq :]
    changes = yield from _complete(account_id, unseen[:top])
    positions = []
    for change in changes:
        seq = position.seq + 1 if change.ticks == position.ticks else 1
        position = replace(position, ticks=change.ticks, seq=seq)
        positions.append(position)
    has_more = len(changes) < len(unseen)
    if not has_more:
        position = FeedPosition(0, ticks=until + 1)
    return FeedPage(changes, position, has_more=has_more, window=position, positions=positions)


def _complete(account_id: int, changes: Sequence[NodeChange]) -> Steps[list[RecordedChange]]:
    """Return as many changes as have room in a page, with the images before and after."""
    followers, present = dict[int, tuple[int, int]](), dict[int, int]()
    missing = {place for place, it in enumerate(changes) if it.op is not Op.DELETE}
    for _ in range(_ATTEMPTS):  # entities may change between two statements
        for table, places in _by_table(changes, missing):
            followers |= yield statements.following(table, places)
            last = {it: places[it] for it in places.keys() - followers.keys()}
            if last:
                present |= yield statements.sizes(table, last)
        missing -= followers.keys() | present.keys()
        if not missing:
            break
    total, fitting = 0, 0
    for place, change in enumerate(changes):
        total += change.size + followers.get(place, (0, present.get(place, 0)))[1]
        if place and total > PAGE_BYTES:
            break
        fitting += 1
    changes = changes[:fitting]
    before, after = dict[int, bytes](), dict[int, bytes]()
    every = set(range(fitting))
    for table, places in _by_table(changes, every):
        before |= yield statements.images(table, places, is_present=False)
        for _ in range(_ATTEMPTS):
            left = {it for it in places if changes[it].op is not Op.DELETE} - after.keys()
            live = {it: places[it] for it in left if it not in followers}
            if live:
                after |= yield statements.images(table, live, is_present=True)
            lost = {it: places[it] for it in live.keys() - after.keys()}
            if lost:
                followers |= yield statements.following(table, lost)
            followed = {it: (changes[it].key, followers[it][0]) for it in left if it in followers}
            if followed:
                after |= yield statements.images(table, followed, is_present=False)
            if not lost:
                break
    actors = yield statements.actors(account_id, {it.actor for it in changes})
    return [_make(it, actors, before.get(place), after.get(place)) for place, it in enumerate(changes)]


def _by_table(changes: Sequence[NodeChange], places: set[int]) -> list[tuple[NodeTable, Places]]:
    grouped: dict[int, tuple[NodeTable, Places]] = {}
    for place in sorted(places):
        change = changes[place]
        grouped.setdefault(change.table.id, (change.table, {}))[1][place] = (change.key, change.ticks)
    return list(grouped.values())


def _make(
    change: NodeChange, actors: dict[int, Actor], before: bytes | None, after: bytes | None
) -> RecordedChange:
    keys, was = encode_entity_key(change.key), b"%d" % (change.was or 0)
    actor = actors.get(change.actor, Actor(ActorKind.SERVER))
    return RecordedChange(
        change.ticks,
        change.op,
        change.table.name,
        change.table.id,
        change.key,
        change.ticks,
        replace(actor, request_id=change.request),
        None if before is None or change.was is None else StoredEntity(keys, was, before),
        None if after is None else StoredEntity(keys, b"%d" % change.ticks, after),
    )
