"""Broken promises of the consistency levels in a history, for writes that are never refused and no deletions.

The versions of a key are in the order of its writes, so that no search for an order is needed: a register with
writes in a known order is linearizable if, and only if, no operation that began after another one had ended has an
older version (a write: the same or an older one), and nothing is seen before it is written.

An operation *contains* the writes of a key up to the version that it saw. In all levels a snapshot is a prefix of the
commits: if it contains a write, it contains all those that were acknowledged before that one began.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from tests.tools.checker.history import ABSENT, Change, History, Key, Kind, Read, Seen, Write


class Violation(NamedTuple):
    """A broken promise, and the operation with which it came to light."""

    promise: str
    what: str
    operation: Read | Write | Change | None = None


class _Newest:
    """The newest version at each time, of events that come in any order."""

    def __init__(self, events: Iterable[tuple[float, int]]) -> None:
        ordered = sorted(events)
        self._times = [time for time, _ in ordered]
        self._versions = list(accumulate((version for _, version in ordered), max))

    def before(self, time: float) -> int:
        """Return the newest version of the events before this time; 0 if there is none."""
        number = bisect_left(self._times, time)
        return self._versions[number - 1] if number else 0


@dataclass
class _Register:
    """The known writes of a key."""

    writes: dict[int, Write] = field(default_factory=dict)  # by version
    by_value: dict[int, Write] = field(default_factory=dict)
    is_deleted: bool = False  # now and then

    def finish(self) -> None:
        acknowledged = [(it.ended, it.version) for it in self.by_value.values() if it.ended and it.version]
        self.acknowledged = _Newest(acknowledged)
        self.versions = sorted(self.writes)
        self.latest_begin = list(accumulate((self.writes[it].began for it in self.versions), max))
        by_version = sorted((version, ended) for ended, version in acknowledged)
        self.newer = [version for version, _ in by_version]
        # first acknowledgements of a version or a newer one
        self.first_end = list(accumulate((ended for _, ended in reversed(by_version)), min))[::-1]

    def contained_since(self, version: int) -> float:
        """Return when the last of the writes up to a version began."""
        number = bisect_right(self.versions, version)
        return self.latest_begin[number - 1] if number else float("-inf")

    def stale_since(self, version: int) -> float:
        """Return when the first write after a version was acknowledged; infinity if there is none."""
        number = bisect_right(self.newer, version)
        return self.first_end[number] if number < len(self.newer) else float("inf")


class Checker:
    """A history with the order of the writes of each key, and the ``violations`` common to all levels."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._registers: dict[Key, _Register] = defaultdict(_Register)
        self._change_sets: dict[int, dict[Key, int]] = defaultdict(dict)
        self.violations: list[Violation] = []
        self._order_writes()
        self.violations += self._future()
        self.violations += self._halves()

    # laws of all levels

    def _order_writes(self) -> None:
        for write in self._history.writes:
            register = self._registers[write.key]
            register.by_value[write.value] = write
            register.is_deleted |= write.kind is Kind.DELETE
            if write.version is not None:
                self._place(register, write, write.version)
        for read in self._history.reads:
            for key, seen in read.seen.items():
                self._check_seen(read, key, seen)
        for register in self._registers.values():
            register.finish()
        for register in self._registers.values():
            for version, write in register.writes.items():
                if write.change_set is not None:
                    self._change_sets[write.change_set][write.key] = version

    def _place(self, register: _Register, write: Write, version: int) -> None:
        other = register.writes.setdefault(version, write)
        if other is not write:
            self._violated("unique versions", f"{version} is also that of {other}", write)

    def _check_seen(self, read: Read, key: Key, seen: Seen) -> None:
        register = self._registers[key]
        if seen == ABSENT:
            return
        write = register.by_value.get(seen.value)
        if write is None:
            self._violated("nothing is invented", f"{key} was never {seen.value}", read)
        elif write.version is None and seen.version not in register.writes:
            known = [version for version, it in register.writes.items() if it is write]
            if known:
                self._violated("one version per write", f"{seen} and {known[0]}", read)
            else:
                register.writes[seen.version] = write  # it happened, although it was not acknowledged
        elif register.writes.get(seen.version) is not write:
            self._violated("one version per write", f"{key} has {seen}, written was {write}", read)

    def _future(self) -> Iterator[Violation]:
        for read in self._history.reads:
            for key, seen in read.seen.items():
                write = self._registers[key].writes.get(seen.version)
                if write is not None and write.began > read.ended:
                    yield Violation("nothing is seen before it is written", f"{key}: {seen}", read)

    def _halves(self) -> Iterator[Violation]:
        for read in self._history.reads:
            for key, seen in read.seen.items():
                write = self._registers[key].writes.get(seen.version)
                if write is None or write.change_set is None:
                    continue
                for other, version in self._change_sets[write.change_set].items():
                    if read.seen.get(other) == ABSENT and self._registers[other].is_deleted:
                        continue  # perhaps since
                    if other in read.seen and read.seen[other].version < version:
                        yield Violation("change sets are whole", f"{key}: {seen}, {other} is older", read)

    def _violated(self, promise: str, what: str, operation: Read | Write) -> None:
        self.violations.append(Violation(promise, what, operation))

    # levels

    def strong(self, reads: Sequence[Read]) -> list[Violation]:
        """Linearizability of the registers: these reads and all writes."""
        events: dict[Key, list[tuple[float, int]]] = defaultdict(list)
        for read in reads:
            for key, seen in read.seen.items():
                events[key].append((read.ended, seen.version))
        reading = {key: _Newest(seen_versions) for key, seen_versions in events.items()}
        return [*self._stale_reads(reads, reading), *self._late_writes(reading)]

    def _stale_reads(self, reads: Sequence[Read], reading: Mapping[Key, _Newest]) -> Iterator[Violation]:
        for read in reads:
            for key, seen in read.seen.items():
                acknowledged = self._registers[key].acknowledged.before(read.began)
                if seen.version < max(acknowledged, reading[key].before(read.began)):
                    yield Violation("no stale read", f"{key}: {seen}, known before was {acknowledged}", read)

    def _late_writes(self, reading: Mapping[Key, _Newest]) -> Iterator[Violation]:
        for key, register in self._registers.items():
            for version, write in register.writes.items():
                known = register.acknowledged.before(write.began)
                if key in reading:
                    known = max(known, reading[key].before(write.began))
                if version <= known:
                    yield Violation("writes in the order of time", f"{version} after {known}", write)

    def bounded(self, reads: Sequence[Read], bound: float) -> list[Violation]:
        """Return violations of the bound, in seconds, on the age of reads."""
        return [
            Violation("the bound", f"{key}: {seen} is older than {bound} s", read)
            for read in reads
            for key, seen in read.seen.items()
            if seen.version < self._registers[key].acknowledged.before(read.began - bound)
        ]

    def session(self, reads: Sequence[Read]) -> list[Violation]:
        """Monotonic reads and read-your-writes, and a prefix of the commits over all reads of a session."""
        sessions: dict[str, list[Read]] = defaultdict(list)
        for read in reads:
            sessions[read.session].append(read)
        writes: dict[str, list[Write]] = defaultdict(list)
        for write in self._history.writes:
            if write.ended is not None:
                writes[write.session].append(write)
        return [violation for name, its in sessions.items() for violation in self._session(its, writes[name])]

    def _session(self, reads: Sequence[Read], writes: Sequence[Write]) -> Iterator[Violation]:
        """Check that the operations of a session follow one another."""
        known: dict[Key, tuple[int, str]] = {}
        since = float("-inf")
        for operation in sorted([*reads, *writes], key=lambda it: it.began):
            if isinstance(operation, Write):
                known[operation.key] = (operation.version or 0, "read your writes")
                since = max(since, operation.began)
                continue
            for key, seen in operation.seen.items():
                version, promise = known.get(key, (0, ""))
                if seen.version < version:
                    yield Violation(promise, f"{key}: {seen} after {version}", operation)
                elif seen.version < self._registers[key].acknowledged.before(since):
                    yield Violation("a prefix over the session", f"{key}: {seen} is older", operation)
                known[key] = max(known.get(key, (0, "")), (seen.version, "monotonic reads"))
                since = max(since, self._registers[key].contained_since(seen.version))

    def prefix(self, reads: Sequence[Read]) -> list[Violation]:
        """Return violations by reads that are not a prefix of the commits."""
        results = []
        for read in reads:
            since = max(self._registers[key].contained_since(seen.version) for key, seen in read.seen.items())
            for key, seen in read.seen.items():
                if seen.version < self._registers[key].acknowledged.before(since):
                    results.append(Violation("a prefix of the commits", f"{key}: {seen} is older", read))
        return results

    def lost(self, final: Mapping[Key, Seen]) -> list[Violation]:
        """Acknowledged writes that are not in the state at the end."""
        return [
            Violation("nothing acknowledged is lost", f"{key} is {final.get(key, ABSENT)}", write)
            for key, register in self._registers.items()
            for write in register.by_value.values()
            if write.version is not None and write.version > final.get(key, ABSENT).version
        ]

    # distance between primary and replicas, as clients observed it

    def staleness(self, read: Read) -> float:
        """Return for how many seconds a read had been out of date when it began; 0 if it was not."""
        since = min(self._registers[key].stale_since(seen.version) for key, seen in read.seen.items())
        return max(0.0, read.began - since)


def check(history: History, *, bound: float, lag: float) -> list[Violation]:
    """Return all violations of the promises of each read's level, and of the lag, by which no replica may be
    behind.

    The times are in seconds. Reads of any level see a prefix of the commits.
    """
    checker = Checker(history)
    results = list(checker.violations)
    for level in {read.level for read in history.reads}:
        reads = history.of_level(level)
        results += checker.prefix(reads)
        match level:
            case "Strong":
                results += checker.strong(reads)
            case "BoundedStaleness":
                results += checker.bounded(reads, bound)
            case "Session":
                results += [*checker.session(reads), *checker.bounded(reads, lag)]
            case _:
                results += checker.bounded(reads, lag)
    return results
