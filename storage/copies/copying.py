"""Copying of tables between two sides, page by page; each page saves its progress in the same transaction."""

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import Any, Final

from django.db import transaction

from storage.copies import progress as saved
from storage.copies.progress import CopiedPair, Phase, TableProgress
from storage.copies.sides import (
    Item,
    RemoteSide,
    Side,
    SourcePage,
    Target,
)
from storage.domain.entities.checksums import (
    add_checksums,
    entity_checksum,
    is_same_content,
    key_checksum,
)
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason, Refused
from storage.jobs.kinds import Failure
from storage.models import CopiedTable
from storage.remote.client import FeedEnded, RemoteRefused

# changes of this last time are read again, because they may become visible later than their Timestamps, and clocks
# differ
OVERLAP: Final = 300.0  # seconds
_PAGES_AHEAD: Final = 4
_WILDCARDS: Final = frozenset("*?[")
_LOOK: Final = 0.5  # seconds between checks of whether the job is to stop
_DELETED_AT_ONCE: Final = 500  # entities


class CopyRefused(Refused):
    """The requested copy is not possible."""


class Stopped(Exception):
    """A read-ahead thread is no longer needed."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The tables to copy, and the options for copying them."""

    tables: Sequence[str] = ("*",)  # patterns of names such as ``log*``, in any letter case
    rename: Mapping[str, str] = field(default_factory=dict)  # other names of tables at the target
    filter: str = ""
    rate: int = 0  # entities per second; 0 without a limit
    deletes: bool = False  # whether to delete entities of the target that the source does not have
    is_full: bool = False  # whether to compare everything, not only changes since the last copy
    dry_run: bool = False
    with_policies: bool = True
    with_service_properties: bool = True
    verifies: bool = True

    def pairs(self, names: Sequence[str]) -> list[CopiedPair]:
        """Select the tables to copy with their target names; raises CopyRefused without a match or for duplicates."""
        patterns = [pattern.lower() for pattern in self.tables]
        chosen = [name for name in names if any(fnmatchcase(name.lower(), it) for it in patterns)]
        if not chosen and patterns != ["*"]:
            raise CopyRefused(Reason.COPY_TABLES, patterns=", ".join(self.tables))
        renamed = {name.lower(): other for name, other in self.rename.items()}
        pairs = [CopiedPair(name, renamed.get(name.lower(), name)) for name in sorted(chosen)]
        taken: set[str] = set()
        for pair in pairs:
            if pair.target.lower() in taken:
                raise CopyRefused(Reason.COPY_NAME_TWICE, table=pair.target)
            taken.add(pair.target.lower())
        return pairs


@dataclass(frozen=True, slots=True)
class Chunk:
    """Result of one transaction of a copy, to be saved with its job."""

    done: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[Failure] = ()


@dataclass(slots=True)
class _Work:
    pair: CopiedPair
    progress: TableProgress
    row: CopiedTable | None = None  # None in a dry run
    is_new: bool = False  # the target was made by this copy, so that nothing is in it
    source_entities: int | None = None  # if they were counted


@dataclass(slots=True)
class Copying:
    """Run of a copy between two sides."""

    source: Side
    target: Target
    options: CopyOptions
    save: Callable[[Chunk], None]
    rest: Callable[[], None]
    check: Callable[[], None]
    begin: Callable[[CopiedPair], tuple[CopiedTable, TableProgress]]
    stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(default_factory=threading.current_thread)
    _began: float = field(default_factory=time.monotonic)
    _copied: int = 0

    def run(self) -> list[dict[str, Any]]:
        """Copy the remaining tables and entities; return the result of each table."""
        options = self.options
        pairs = options.pairs(self._names())
        if options.with_service_properties and not options.dry_run:
            self._copy_service_properties()
        works = [self._begin(pair) for pair in pairs]
        while unread := [it for it in works if it.progress.phase is Phase.COPY]:
            with closing(self._pages(unread)) as pages:
                for work, page in pages:
                    self._copy_page(work, page)
                    self.rest()
                    self._throttle(len(page.items))
        for work in works:
            if work.progress.phase is not Phase.DONE:
                self._settle(work)
        return [work.progress.describe(work.pair) for work in works]

    def _names(self) -> Sequence[str]:
        """List the source's tables; fall back on the requested names if listing is forbidden, as with some SAS."""
        try:
            return self.source.tables()
        except RemoteRefused as error:
            if error.status != HTTPStatus.FORBIDDEN or any(
                set(it) & _WILDCARDS for it in self.options.tables
            ):
                raise
            return self.options.tables

    def wait(self, seconds: float) -> None:
        """Sleep between retries; raises Stopped in read-ahead threads, JobInterrupted in the job's thread."""
        if threading.current_thread() is not self._thread:
            if self.stop.wait(seconds):
                raise Stopped
            return
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
            self.check()

    def _throttle(self, copied: int) -> None:
        self._copied += copied
        if self.options.rate:
            self.wait(self._began + self._copied / self.options.rate - time.monotonic())

    # tables

    def _begin(self, pair: CopiedPair) -> _Work:
        number = self.target.find_table(pair.target)
        if self.options.dry_run:
            return _Work(pair, TableProgress(filter=self.options.filter), is_new=number is None)
        row, progress = self.begin(pair)
        work = _Work(pair, progress, row)
        if number is None:
            with transaction.atomic():
                number = self.target.create_table(pair.target)
                progress.start_over()
                progress.table = number
                self._save(work, Chunk())
            work.is_new = True
        elif number != progress.table:
            if progress.table:
                progress.start_over()
            progress.table = number
        return work

    def _save(self, work: _Work, chunk: Chunk) -> None:
        if work.row is not None:
            saved.save(work.row, work.progress)
        self.save(chunk)

    def _pages(self, works: Sequence[_Work]) -> Generator[tuple[_Work, SourcePage], None, None]:
        """Yield the pages of tables; with several lanes, tables are read ahead in parallel."""
        self.stop.clear()
        if not self.source.lanes:
            try:
                for work in works:
                    for page in self._read(work):
                        yield work, page
            finally:
                self.stop.set()  # let threads that write end
            return
        page_queue: queue.Queue[tuple[_Work, SourcePage] | Exception | None] = queue.Queue(_PAGES_AHEAD)

        def put(item: tuple[_Work, SourcePage] | Exception | None) -> None:
            while not self.stop.is_set():
                try:
                    return page_queue.put(item, timeout=_LOOK)
                except queue.Full:
                    pass
            raise Stopped

        def read(work: _Work) -> None:
            try:
                for page in self._read(work):
                    put((work, page))
                put(None)
            except Stopped:
                pass
            except Exception as error:
                put(error)

        left = len(works)
        with ThreadPoolExecutor(self.source.lanes, thread_name_prefix="copy") as pool:
            try:
                for work in works:
                    pool.submit(read, work)
                while left:
                    try:
                        item = page_queue.get(timeout=_LOOK)
                    except queue.Empty:
                        self.save(Chunk())
                        continue
                    if item is None:
                        left -= 1
                    elif isinstance(item, Exception):
                        raise item
                    else:
                        yield item
            finally:
                self.stop.set()
                if left and isinstance(self.source, RemoteSide):
                    self.source.client.abort()
                pool.shutdown(cancel_futures=True)

    def _read(self, work: _Work) -> Iterator[SourcePage]:
        """Read the rest of a table, through the change feed of the source if it has one."""
        progress, source, feed = work.progress, self.source, ""
        if isinstance(source, RemoteSide) and source.has_feed and not progress.filter:
            if progress.by_feed:
                try:
                    yield from source.changes(work.pair.source, progress.feed)
                    return
                except FeedEnded:
                    pass
            if not progress.next:
                feed = source.begin_feed(work.pair.source)
        progress.by_feed = False
        for page in self._read_entities(work):
            page.feed, feed = feed, ""
            yield page

    def _read_entities(self, work: _Work) -> Iterator[SourcePage]:
        progress = work.progress
        return self.source.pages(work.pair.source, progress.filter, start=progress.next, since=progress.since)

    # entities

    def _copy_page(self, work: _Work, page: SourcePage) -> None:
        progress = work.progress
        if not progress.mark and page.at:
            progress.mark = page.at - OVERLAP
        with transaction.atomic():
            before = (progress.inserted, progress.changed, progress.unchanged)
            failures = [*page.failures, *self._write(work, page.items)]
            deleted = self._delete(work, page.deleted) if self.options.deletes else 0
            progress.left += 0 if self.options.deletes else len(page.deleted)
            progress.feed = page.feed or progress.feed
            after = (progress.inserted, progress.changed, progress.unchanged)
            progress.read += len(page.items) + len(page.failures)
            progress.rejected += len(failures)
            progress.next = page.next or ()
            if page.next is None:
                progress.end_pass()
            names = ("inserted", "changed", "unchanged")
            counts = {name: now - was for name, was, now in zip(names, before, after, strict=True)}
            counts["deleted"] = deleted
            self._save(
                work, Chunk(len(page.items), {name: it for name, it in counts.items() if it}, failures)
            )

    def _write(self, work: _Work, items: Sequence[Item]) -> list[Failure]:
        """Write the entities that differ from the target; return those that were refused."""
        progress, target = work.progress, self.target
        present: Mapping[EntityKey, bytes] = {}
        if target.compares and not work.is_new and items:
            present = target.present(work.pair.target, [it.key for it in items])
        differing = [
            it for it in items if it.key not in present or not is_same_content(present[it.key], it.content)
        ]
        progress.unchanged += len(items) - len(differing)
        refused: set[EntityKey] = set()
        failures: list[Failure] = []
        # without a comparison it is only known of a new table that nothing of it existed
        is_known = target.compares or work.is_new
        if self.options.dry_run:
            changed = sum(it.key in present for it in differing) if is_known else len(differing)
            progress.changed += changed
            progress.inserted += len(differing) - changed
        elif differing:
            written = target.write(work.pair.target, differing, present.keys())
            is_inserted = work.is_new and not target.compares
            progress.inserted += written.changed if is_inserted else written.inserted
            progress.changed += 0 if is_inserted else written.changed
            refused = {key for key, _ in written.failures}
            failures = [failure for _, failure in written.failures]
        for it in items:
            if it.key in refused:
                continue
            was = present.get(it.key) if progress.since else None
            self._count(progress, it.key, was, it.content)
        return failures

    def _count(self, progress: TableProgress, key: EntityKey, was: bytes | None, now: bytes | None) -> None:
        """Update the expected count and checksum of the target."""
        total = int(progress.checksum, 16)
        if was is not None:
            total = add_checksums(total, -entity_checksum(key, was))
            progress.entities -= 1
        if now is not None:
            total = add_checksums(total, entity_checksum(key, now))
            progress.entities += 1
        progress.checksum = f"{total:x}"

    # the end of a table

    def _settle(self, work: _Work) -> None:
        options, progress = self.options, work.progress
        if options.dry_run:
            if options.deletes and not work.is_new:
                progress.deleted = sum(map(len, self._extra_keys(work)))
            return
        if options.deletes and (progress.left or not progress.by_feed):
            self._delete_extra(work)
        if options.with_policies:
            self._copy_policies(work)
        if options.verifies:
            self._verify(work)
        with transaction.atomic():
            progress.phase = Phase.DONE
            self._save(work, Chunk())

    def _extra_keys(self, work: _Work) -> Iterator[list[EntityKey]]:
        """Yield batches of keys that only the target has; 8 bytes per key are kept in memory."""
        known: set[int] = set()
        work.source_entities = 0
        for several in self.source.keys(work.pair.source, work.progress.filter):
            known.update(map(key_checksum, several))
            work.source_entities += len(several)
            self.save(Chunk())
        for several in self.target.keys(work.pair.target, work.progress.filter):
            extra = [key for key in several if key_checksum(key) not in known]
            for start in range(0, len(extra), _DELETED_AT_ONCE):
                yield extra[start : start + _DELETED_AT_ONCE]

    def _delete_extra(self, work: _Work) -> None:
        for keys in self._extra_keys(work):
            with transaction.atomic():
                deleted = self._delete(work, keys)
                self._save(work, Chunk(counts={"deleted": deleted}))
            self.rest()
        work.progress.left = 0

    def _delete(self, work: _Work, keys: Sequence[EntityKey]) -> int:
        progress = work.progress
        if not keys or self.options.dry_run:
            return 0
        present = self.target.present(work.pair.target, keys) if progress.since else {}
        deleted = self.target.delete(work.pair.target, keys)
        for key, content in present.items():
            self._count(progress, key, content, None)
        progress.deleted += deleted
        return deleted

    def _copy_policies(self, work: _Work) -> None:
        source_policies = self.source.policies(work.pair.source)
        if source_policies is None:
            work.progress.notes.append("the source does not tell its stored access policies")
        elif (source_policies or self.options.deletes) and not self.target.replace_policies(
            work.pair.target, source_policies
        ):
            work.progress.notes.append("the target has no stored access policies")

    def _copy_service_properties(self) -> None:
        found = self.source.service_properties()
        if found is not None:
            self.target.replace_service_properties(found)

    def _verify(self, work: _Work) -> None:
        """Compare number and checksum of entities on both sides, and all entities if they differ."""
        progress = work.progress
        progress.differing = progress.missing = progress.extra = 0
        if self.target.compares:
            number, total = self._sum(self.target, work.pair.target, progress.filter)
            is_same = (number, f"{total:x}") == (progress.entities, progress.checksum)
            progress.extra = progress.left
            # entities that were deleted at the source are not among the changes by Timestamp
            is_counted = not progress.since or progress.by_feed
            if not is_same or (not is_counted and number != self._count_source(work)):
                self._compare(work, number, total)
        else:
            measure = self._count_keys if progress.since else self._sum
            expected = measure(self.source, work.pair.source, progress.filter)
            actual = measure(self.target, work.pair.target, progress.filter)
            progress.entities = actual[0]
            if expected[0] != actual[0]:
                progress.missing = max(0, expected[0] - actual[0])
                progress.extra = max(0, actual[0] - expected[0])
            progress.differing = int(expected != actual and not progress.extra and not progress.missing)
            self._note_unexplained(work)
        progress.verified = not (progress.differing or progress.missing)

    def _count_source(self, work: _Work) -> int:
        if work.source_entities is None:
            work.source_entities, _ = self._count_keys(self.source, work.pair.source, work.progress.filter)
        return work.source_entities

    def _count_keys(self, side: Side, table: str, filter_: str) -> tuple[int, int]:
        number, total = 0, 0
        for several in side.keys(table, filter_):
            number += len(several)
            total = add_checksums(total, *map(key_checksum, several))
            self.save(Chunk())
        return number, total

    def _sum(self, side: Side, table: str, filter_: str) -> tuple[int, int]:
        number, total = 0, 0
        for page in side.pages(table, filter_):
            number += len(page.items)
            total = add_checksums(total, *(entity_checksum(it.key, it.content) for it in page.items))
            self.save(Chunk())
        return number, total

    def _compare(self, work: _Work, number: int, total: int) -> None:
        """Read the source again and count the entities that differ in the target."""
        progress, equal = work.progress, 0
        unequal: set[EntityKey] = set()
        for page in self.source.pages(work.pair.source, progress.filter):
            present = self.target.present(work.pair.target, [it.key for it in page.items])
            for it in page.items:
                if it.key in present and is_same_content(present[it.key], it.content):
                    equal += 1
                    continue
                unequal.add(it.key)
                if it.key in present:
                    progress.differing += 1
                else:
                    progress.missing += 1
            self.save(Chunk())
        self._note_unreachable(work, unequal)
        progress.extra = number - equal - progress.differing
        if not (progress.missing or progress.differing or progress.extra):
            progress.entities, progress.checksum = number, f"{total:x}"

    def _note_unexplained(self, work: _Work) -> None:
        """Force a full read next time if the differences exceed the source's changes."""
        progress = work.progress
        unequal = progress.missing + progress.differing
        if not unequal or not progress.mark:
            return
        changed = 0
        for page in self.source.pages(work.pair.source, progress.filter, since=progress.mark):
            changed += len(page.items)
            self.save(Chunk())
        if changed < unequal:
            progress.mark = 0

    def _note_unreachable(self, work: _Work, unequal: set[EntityKey]) -> None:
        """Force a full read next time if reading the source's changes would not repair a difference."""
        progress = work.progress
        if not unequal or not progress.mark:
            return
        for page in self.source.pages(work.pair.source, progress.filter, since=progress.mark):
            unequal.difference_update(it.key for it in page.items)
            self.save(Chunk())
        if unequal:
            progress.mark = 0
