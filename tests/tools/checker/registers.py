"""Linearizability: whether one order of the operations on each entity explains all answers.

The change feed gives the order of the changes of an entity, and with it the fate of writes that were not acknowledged.
The search finds a moment for every operation between its beginning and its answer, and matches the deletions, which
leave no trace of their own. It is the search of Wing and Gong in the form of Lowe ("Testing for linearizability",
2017): operations are taken in the order of their answers, and only when one is answered, changes that have begun are
made until it has had its effect. A state that was reached once is not searched again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from tests.tools.checker.history import ABSENT, WEAKER, Change, History, Key, Kind, Read, Seen, Write
from tests.tools.checker.levels import Checker, Violation

LIMIT = 100_000  # points that are looked at for one answer


class Operation(NamedTuple):
    """A call on one entity; ``seen`` is what a read was answered."""

    call: Write | Read
    seen: Seen | None = None

    @property
    def ended(self) -> float:
        return inf if self.call.ended is None else self.call.ended

    @property
    def changes(self) -> bool:
        return self.seen is None and not self.call.refused

    def is_explained_by(self, there: Seen) -> bool:
        """Return whether a read, or a refusal, is the right answer in a state."""
        if self.seen is not None:
            return self.seen == there
        match self.call.refused:
            case "EntityAlreadyExists":
                return there != ABSENT
            case "ResourceNotFound":
                return there == ABSENT
            case "UpdateConditionNotSatisfied":
                return there != ABSENT and self.call.if_match != there.version
        return False


class Point(NamedTuple):
    """A point of the search: the number of changes made, and the unanswered operations that have had their effect."""

    place: int
    done: frozenset[int]


def check_registers(history: History, changes: Sequence[Change]) -> Iterator[Violation]:
    """Yield violations of linearizability, the first one of each entity."""
    yield from Checker(history).violations
    by_key: dict[Key, list[Change]] = defaultdict(list)
    for change in changes:
        by_key[change.key].append(change)
    for key, operations in operations_by_key(history).items():
        yield from check_effects(operations, by_key[key])
        stuck = Search(operations, by_key[key]).run()
        if stuck is not None:
            yield Violation("linearizable", f"{key}: no order explains the answer", stuck)


def operations_by_key(history: History) -> dict[Key, list[Operation]]:
    result: dict[Key, list[Operation]] = defaultdict(list)
    for write in (*history.writes, *history.without_effect):
        result[write.key].append(Operation(write))
    for read in history.reads:
        if read.level in WEAKER:
            continue
        for key, seen in read.seen.items():
            result[key].append(Operation(read, seen))
    return result


def check_effects(operations: Iterable[Operation], changes: Iterable[Change]) -> Iterator[Violation]:
    """Check that each change is the effect of its write on the previous state."""
    writes = {it.call.value: it.call for it in operations if it.changes}
    for change in changes:
        write = writes.get(change.after.value)
        if write is not None and change.after != effect_of(write, change):
            yield Violation("writes do what they say", str(change), write)


def effect_of(write: Write, change: Change) -> Seen | None:
    """Return the effect of a write on the state before it; None if it is refused."""
    before = change.before
    is_there = before != ABSENT
    if (write.kind is Kind.INSERT and is_there) or (write.kind.is_conditional and not is_there):
        return None
    if write.if_match not in (0, before.version):
        return None
    others = dict(before.others) if write.kind.merges else {}
    if write.other:
        others[write.other] = write.value
    return Seen(change.version, write.value, frozenset(others.items()))


class Search:
    """The operations on one entity, and its changes in their order."""

    def __init__(self, operations: Iterable[Operation], changes: Sequence[Change]) -> None:
        self._images = [ABSENT, *(it.after for it in changes)]
        places = {it.after.value: place for place, it in enumerate(changes) if it.after != ABSENT}
        self._operations = list(operations)
        self._places: dict[int, int] = {}  # places of writes that are known to have made a change
        self._makers: dict[int, int] = {}
        for number, it in enumerate(self._operations):
            if it.changes and it.call.kind is not Kind.DELETE and it.call.value in places:
                self._places[number] = places[it.call.value]
                self._makers[places[it.call.value]] = number
        self._pending: set[int] = set()  # have begun, and are not answered
        self._deletions: set[int] = set()  # deletions among them

    def run(self) -> Write | Read | None:
        """Return the first operation whose answer no order explains; None if there is none."""
        events = sorted(
            event
            for number, it in enumerate(self._operations)
            for event in ((it.call.began, False, number), (it.ended, True, number))
            if event[0] < inf
        )
        points = {Point(0, frozenset())}
        for _, is_end, number in events:
            operation = self._operations[number]
            if not is_end:
                self._pending.add(number)
                if operation.changes and operation.call.kind is Kind.DELETE:
                    self._deletions.add(number)
                points = {self._observe(point, {number}) for point in points}
                continue
            points = self._explain(number, points)
            if not points:
                return operation.call
            self._pending.discard(number)
            self._deletions.discard(number)
        return None

    def _observe(self, point: Point, numbers: Iterable[int]) -> Point:
        """Add the reads and refusals that are explained now: they change nothing, so the earlier the better."""
        there = self._images[point.place]
        operations = self._operations
        explained = {
            it for it in numbers if not operations[it].changes and operations[it].is_explained_by(there)
        }
        return point._replace(done=point.done | explained) if explained else point

    def _has_happened(self, number: int, point: Point) -> bool:
        return number in point.done or self._places.get(number, inf) < point.place

    def _explain(self, number: int, points: set[Point]) -> set[Point]:
        results: set[Point] = set()
        known, waiting = set(points), list(points)
        while waiting:
            point = waiting.pop()
            if self._has_happened(number, point):
                results.add(point._replace(done=point.done - {number}))
                continue
            for following in self._successors(point):
                if following not in known:
                    known.add(following)
                    waiting.append(following)
            assert len(known) < LIMIT, f"too many orders for {self._operations[number]}"
        return results

    def _successors(self, point: Point) -> Iterator[Point]:
        """After the next change, by each of the operations that may have made it."""
        place = point.place + 1
        if place == len(self._images):
            return
        if self._images[place] == ABSENT:
            for number in self._deletions_of(self._images[point.place].version, point.done):
                yield self._observe(Point(place, point.done | {number}), self._pending - point.done)
        elif self._makers.get(point.place) in self._pending:
            yield self._observe(Point(place, point.done), self._pending - point.done)

    def _deletions_of(self, version: int, done: frozenset[int]) -> Iterator[int]:
        """Yield deletions that may still be answered, and one that never is, preferably with this version's
        condition.
        """
        unknown = []
        for number in sorted(self._deletions - done):
            operation = self._operations[number]
            if operation.call.if_match in (0, version):
                if operation.ended < inf:
                    yield number
                else:
                    unknown.append((-operation.call.if_match, number))
        if unknown:
            yield min(unknown)[1]
