"""The change feed of an account, or of some of its tables: pages of changes after a position.

A client gets a token for a position, and later all changes since: without gaps, without duplicates, and those of an
entity in order. See docs/change-feed.md.
"""

import hashlib
import hmac
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db.models import Min

from storage.core.relation_forms import Ability
from storage.domain.entities.entity import StoredEntity, encode_entity_key
from storage.domain.errors import ServerBusy, TableNotFound
from storage.domain.history.feed import (
    ExpiredToken,
    FeedPage,
    FeedPosition,
    FeedToken,
    InvalidToken,
    read_token,
    write_token,
)
from storage.domain.history.recorded import RecordedChange
from storage.domain.refusals import Reason, Refused
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.history import node_feed
from storage.models import Account, HistorySegment, Table
from storage.models import FeedMark as Mark
from storage.relations import history
from storage.sql import django as sql
from storage.sql import feed as statements
from storage.sql import moments
from storage.sql import node_feed as node_statements
from storage.sql.feed import FeedMark, HistoryState, RawPage, Segment
from storage.sql.node_feed import NodeTable
from storage.sql.record import Record, after_last_gap
from storage.sql.statement import Statement

T = TypeVar("T")
Steps = Generator[Statement[Any], Any, T]

TOP: Final = 1000
_FAR: Final = 3000  # transactions behind, from which on marks are worth looking up
_MARKS: Final = 50  # windows that are looked at for a page
_ATTEMPTS: Final = 5  # when segments come and go meanwhile


class NoHistory(Refused):
    """The account keeps no history and so has no feed."""


class TableWithoutFeed(NoHistory):
    """A table of the feed has its own history."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Change feed of an account, or of some of its tables by id."""

    account_id: int
    tables: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        tables = "" if self.tables is None else ",".join(map(str, sorted(self.tables)))
        return f"{self.account_id}/{tables}"


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a reader without a token: now, a time, or the oldest kept change (``since`` None)."""

    is_now: bool = True
    since: datetime | None = None


NOW: Final = Start()
OLDEST: Final = Start(is_now=False)


def exists(feed: Feed) -> bool:
    """Return whether the account and the tables of a feed still exist."""
    if feed.tables is None:
        return Account.objects.filter(pk=feed.account_id).exists()
    return Table.objects.existing().filter(pk__in=feed.tables).count() == len(feed.tables)


def read(feed: Feed, after: str | Start, top: int = TOP) -> tuple[FeedPage, str]:
    """Return a page of changes after a token or from a start, and the token of the next one.

    Raises InvalidToken, ExpiredToken and NoHistory.
    """
    return sql.walk(read_steps(feed, after, top), sql.run_in_lane)


def keep_mark() -> None:
    """Store the present snapshot as a mark for slow readers, and detect a restored database."""
    history.end_unless_available()
    history.begin_in_this_cluster()
    # before the snapshot is taken: the mark must not seem to belong to a segment that starts after it
    sql.run(statements.keep_mark(sql.run(moments.close_present())))


def tidy(_: datetime) -> None:
    """Delete marks older than all kept changes."""
    oldest = HistorySegment.objects.filter(dropped_at=None).aggregate(oldest=Min("started_at"))["oldest"]
    if oldest is not None:
        Mark.objects.filter(at__lt=to_ticks(oldest)).delete()


def present_token(feed: Feed) -> str:
    """Return the token of the present position; raises NoHistory."""
    return sql.walk(read_steps(feed, NOW))[1]


def read_steps(
    feed: Feed, after: str | Start, top: int = TOP, *, target: str = ""
) -> Steps[tuple[FeedPage, str]]:
    """Return the statements of ``read``, for the caller to run."""
    for _ in range(_ATTEMPTS):
        state: HistoryState = yield statements.state(feed.account_id, feed.tables)
        if not state.cluster:
            raise ServerBusy  # a standby
        try:
            if state.apart:
                return (yield from _read_apart(feed, after, top, state))
            page = yield from _read(feed, after, top, state, target)
        except (_Retry, TableNotFound):  # a segment or a table was dropped
            continue
        return page, _write(state.cluster, feed, page.position)
    raise ServerBusy


def _read_apart(feed: Feed, after: str | Start, top: int, state: HistoryState) -> Steps[tuple[FeedPage, str]]:
    """Read a feed of tables with their own history."""
    tables: list[NodeTable] = yield node_statements.tables(feed.tables or ())
    if not tables or len(tables) < len(feed.tables or ()):
        # changes of other tables are in an order of their own, and those of a dropped table are lost
        assert state.apart is not None
        form, name = state.apart
        raise TableWithoutFeed(form.lacks[Ability.FEED], table=name)
    if not all(it.since for it in tables):
        raise ServerBusy  # it will be known in a minute
    _present(state.segments)  # raises NoHistory
    identity = yield from node_feed.identify(tables)
    oldest = after_last_gap(state.segments)[0]
    begins = max(*(max(it.since, it.forgotten) for it in tables), oldest.started)
    if isinstance(after, Start):
        if after.is_now:
            position = FeedPosition(0, ticks=1 + (yield from node_feed.close(tables)))
            page = FeedPage([], position, has_more=False, window=position)
            return page, _write(identity, feed, position)
        position = FeedPosition(0, ticks=begins if after.since is None else to_ticks(after.since))
        if position.ticks < begins:
            raise ExpiredToken(Reason.HISTORY_BEGINS, since=_write_ticks(begins))
    else:
        token = read_token(after, _secret())
        position = token.position
        if token.feed != feed.name:
            raise InvalidToken(Reason.TOKEN_OF_ANOTHER_FEED)
        if token.cluster != identity:
            raise ExpiredToken(Reason.TOKEN_OF_ANOTHER_DATABASE)
        if position.ticks < begins:
            raise ExpiredToken(Reason.TOKEN_EXPIRED, since=_write_ticks(begins))
    page = yield from node_feed.page(feed.account_id, tables, position, top)
    return page, _write(identity, feed, page.position)


def tokens(feed: Feed, page: FeedPage, last: str) -> list[str]:
    """Return a token for each change of a page; ``last`` is the token of the next page."""
    cluster = read_token(last, _secret()).cluster
    return [_write(cluster, feed, position) for position in page.positions_after()]


def _write(cluster: str, feed: Feed, position: FeedPosition) -> str:
    return write_token(FeedToken(cluster, feed.name, position), _secret())


def _read(feed: Feed, after: str | Start, top: int, state: HistoryState, target: str) -> Steps[FeedPage]:
    _present(state.segments)
    if after == NOW:
        now = yield from _now(state.segments)
        return FeedPage([], now, has_more=False, window=now)
    if isinstance(after, str):
        position = _position(feed, after, state)
    else:
        position = yield from _start(feed, after, state.segments)
    if target and not position.target:
        position = replace(position, target=target, next_segment=_present(state.segments))
        return (yield from _page(feed, position, state.segments, top, is_latest=True))
    if not position.target and state.next_xid - _xmax(position) > _FAR:
        # the reader is far behind: not everything is sorted to find the first changes
        since = next((it.started for it in state.segments if it.number == position.segment), 0)
        marks: list[FeedMark] = yield statements.marks(position.seen, since, _MARKS)
        for mark in marks:
            number = _used(state.segments, mark.at)
            position = replace(position, target=mark.snapshot, next_segment=number)
            page = yield from _page(feed, position, state.segments, top)
            if page.changes:
                return page
            position = page.position
    return (yield from _page(feed, position, state.segments, top))


def _xmax(position: FeedPosition) -> int:
    return int(position.seen.split(":")[1])


def _used(segments: Sequence[Segment], ticks: int) -> int:
    """Return the number of the segment in use at a time, or of an older one."""
    present = _present(segments)
    kept = after_last_gap(segments)
    return max(
        (it.number for it in kept if it.number <= present and it.started <= ticks), default=kept[0].number
    )


class _Retry(Exception):
    """The current segment has changed since the segments were listed."""


def _secret(secret: bytes | None = None) -> bytes:
    return hmac.digest(secret or settings.SERVER_SECRET or b"", b"change feed", hashlib.sha256)


def _open_token(text: str) -> FeedToken:
    try:
        return read_token(text, _secret())
    except InvalidToken:
        if not settings.FORMER_SECRET:
            raise
    return read_token(text, _secret(settings.FORMER_SECRET))


def _present(segments: Sequence[Segment]) -> int:
    """Return the number of the segment in use."""
    present = next((it for it in segments if it.is_open), None)
    if present is None:
        raise NoHistory(Reason.NO_FEED)
    if present.is_broken:
        raise ServerBusy  # the database has just been restored from a dump: see history.begin_in_this_cluster
    return present.number


def _position(feed: Feed, text: str, state: HistoryState) -> FeedPosition:
    token = _open_token(text)
    if token.feed != feed.name:
        raise InvalidToken(Reason.TOKEN_OF_ANOTHER_FEED)
    oldest = after_last_gap(state.segments)[0]
    if token.cluster != state.cluster:
        raise ExpiredToken(Reason.TOKEN_OF_ANOTHER_DATABASE)
    if token.position.segment < oldest.number:
        raise ExpiredToken(Reason.TOKEN_EXPIRED, since=_write_ticks(oldest.started))
    return token.position


def _write_ticks(ticks: int) -> str:
    return f"{to_datetime(ticks):%Y-%m-%dT%H:%M:%SZ}"


def _now(segments: Sequence[Segment]) -> Steps[FeedPosition]:
    snapshot, is_flushed = yield statements.mark()
    if not is_flushed:
        yield statements.flush()
    return FeedPosition(_present(segments), snapshot)


def _start(feed: Feed, start: Start, segments: Sequence[Segment]) -> Steps[FeedPosition]:
    kept = after_last_gap(segments)
    oldest = kept[0]
    if start.since is None:
        return FeedPosition(oldest.number)
    ticks = to_ticks(start.since)
    if oldest.number > 1 and ticks < oldest.started:
        raise ExpiredToken(Reason.HISTORY_BEGINS, since=_write_ticks(oldest.started))
    present, first = _present(segments), _used(segments, ticks)
    record = Record.of(feed.account_id, (it.number for it in kept if it.number >= first))
    # changes that are visible in this snapshot are read from this number on, and then all other changes
    seq, snapshot = yield statements.first_at(record, ticks)
    if seq is None:
        return FeedPosition(present, snapshot)
    return FeedPosition(first, target=snapshot, next_segment=present, seq=seq - 1)


def _page(
    feed: Feed, position: FeedPosition, segments: Sequence[Segment], top: int, *, is_latest: bool = False
) -> Steps[FeedPage]:
    """Read a page; ``is_latest`` means that its target is the present and durable."""
    present = _present(segments)
    numbers = (it.number for it in segments if position.segment <= it.number <= present and not it.is_broken)
    record = Record.of(feed.account_id, numbers)
    raw: RawPage = yield statements.page(feed.account_id, feed.tables, record, position, top)
    head = raw.head
    if head.present != present:
        raise _Retry
    if head.is_ahead:
        raise ExpiredToken(Reason.TOKEN_AHEAD)
    if not (head.is_flushed or is_latest):
        yield statements.flush()
    changes = yield from _complete(record, raw)
    window = position
    if not position.target:
        window, is_latest = (
            replace(position, target=head.snapshot, next_segment=present),
            True,
        )
    if len(changes) < head.unseen:
        return FeedPage(changes, replace(window, seq=changes[-1].sequence), has_more=True, window=window)
    following = FeedPosition(window.next_segment, window.target)
    return FeedPage(changes, following, has_more=not is_latest, window=window)


def _complete(record: Record, page: RawPage) -> Steps[list[RecordedChange]]:
    """Add the images after each change, ending the page at the first change without room for its images."""
    images: statements.Images = {}
    if page.relations:
        images = yield statements.rows(page)
        since = {place: page.changes[place] for place in page.relations if place not in images}
        if since:  # changed or deleted after the page was read
            images |= yield statements.replaced(record, since)
    complete = []
    for place, change in enumerate(page.changes):
        if place in images:
            content = images[place]
            if content is None:
                break
            keys = encode_entity_key(change.key)
            after = StoredEntity(keys, b"%d" % change.ticks, content)
            complete.append(change._replace(after=after))
        else:
            complete.append(change)
    return complete
