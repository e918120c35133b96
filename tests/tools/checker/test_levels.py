"""The checker finds each kind of violation, and none where there is none."""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from tests.tools.checker.history import ABSENT, History, Key, Read, Seen, Write
from tests.tools.checker.levels import Checker

A, B = ("p", "a"), ("p", "b")


def history(*operations: Write | Read) -> History:
    return History(
        [it for it in operations if isinstance(it, Write)], [it for it in operations if isinstance(it, Read)]
    )


def write(began: float, ended: float | None, key: Key, value: int, session: str = "w", **given: int) -> Write:
    """Its version is ten times its value."""
    version = None if ended is None else 10 * value
    return Write(session, key, value, began, ended, version, **given)


def read(began: float, ended: float, session: str = "r", **values: int) -> Read:
    """Return a read that saw these values, such as a=1, b=0."""
    seen = {("p", name): Seen(10 * value, value) for name, value in values.items()}
    return Read(session, "level", began, ended, seen)


def broken(promise: str, *operations: Write | Read, bound: float = 0.0) -> list[str]:
    """Return the names of the violations."""
    given = history(*operations)
    checker = Checker(given)
    result = {
        "all": lambda: checker.violations,
        "strong": lambda: checker.strong(given.reads),
        "bounded": lambda: checker.bounded(given.reads, bound),
        "session": lambda: checker.session(given.reads),
        "prefix": lambda: checker.prefix(given.reads),
    }[promise]()
    assert promise == "all" or not checker.violations
    return [violation.promise for violation in result]


CHANGE_SET = [write(0, 1, A, 1, change_set=1), write(0, 1, B, 2, change_set=1)]
UNACKNOWLEDGED_SET = [write(0, None, A, 1, change_set=1), write(0, None, B, 2, change_set=1)]
B_THEN_A = [write(0, 1, B, 1), write(2, 3, A, 1)]
# each case: its title, the promise, its operations, and the violation, if any
CASES = [
    ("a value without a write", "all", [write(0, 1, A, 1), read(2, 3, a=2)], "nothing is invented"),
    ("a value of another key", "all", [write(0, 1, A, 1), read(2, 3, b=1)], "nothing is invented"),
    ("a write that is read before it began", "all", [write(2, 3, A, 1), read(0, 1, a=1)],
     "nothing is seen before it is written"),
    ("a write that changes its version", "all", [write(0, 1, A, 1), Read("r", "level", 2, 3, {A: Seen(11, 1)})],
     "one version per write"),
    ("an unacknowledged write that changes its version", "all",
     [write(0, None, A, 1), *(Read("r", "level", 2, 3, {A: Seen(version, 1)}) for version in (10, 11))],
     "one version per write"),
    ("two writes of one version", "all", [write(0, 1, A, 1), Write("w", A, 2, 0, 1, 10)], "unique versions"),
    ("half a change set", "all", [*CHANGE_SET, read(2, 3, a=1, b=0)], "change sets are whole"),
    ("a whole change set", "all", [*CHANGE_SET, read(2, 3, a=1, b=2), read(2, 3, a=0, b=0), read(2, 3, a=1)], None),
    ("half a change set that was not acknowledged", "all",
     [*UNACKNOWLEDGED_SET, read(2, 3, a=1, b=2), read(2, 3, a=1, b=0)], "change sets are whole"),
    ("a read that misses an acknowledged write", "strong", [write(0, 1, A, 1), read(2, 3, a=0)], "no stale read"),
    ("a read beside a write may see it or not", "strong",
     [write(0, 3, A, 1), read(1, 2, a=0), read(2.5, 4, a=1)], None),
    ("a read that goes back behind an earlier one", "strong",
     [write(0, 9, A, 1), read(1, 2, a=1), read(3, 4, "other", a=0)], "no stale read"),
    ("reads at the same time in any order", "strong",
     [write(0, 9, A, 1), read(1, 4, a=1), read(2, 3, "other", a=0)], None),
    ("a write that is ordered before an earlier one", "strong",
     [Write("w", A, 1, 0, 1, 20), Write("w", A, 2, 2, 3, 10)], "writes in the order of time"),
    ("a write that was not acknowledged and happens late", "strong",
     [write(0, None, A, 2), write(1, 2, A, 1), read(3, 4, a=1), read(5, 6, a=2)], None),
    ("a write that was not acknowledged and goes again", "strong",
     [write(0, None, A, 1), read(1, 2, a=1), read(3, 4, a=0)], "no stale read"),
    ("a read within the bound", "bounded", [write(0, 1, A, 1), read(2.9, 3, a=0)], None),
    ("a read beyond the bound", "bounded", [write(0, 1, A, 1), read(3.1, 4, a=0)], "the bound"),
    ("a session goes back", "session", [write(0, 1, A, 1), read(2, 3, a=1), read(4, 5, a=0)], "monotonic reads"),
    ("another session may be behind", "session", [write(0, 1, A, 1), read(2, 3, a=1), read(4, 5, "other", a=0)], None),
    ("a session misses its own write", "session", [write(0, 1, A, 1, "r"), read(2, 3, a=0)], "read your writes"),
    ("a read of another key that is older than what was read", "session",
     [*B_THEN_A, read(4, 5, a=1), read(6, 7, b=0)], "a prefix over the session"),
    ("a read of another key that is newer", "session",
     [*reversed(B_THEN_A), read(4, 5, b=1), read(6, 7, a=0)], None),
    ("a page without an earlier write", "prefix", [*B_THEN_A, read(4, 5, a=1, b=0)], "a prefix of the commits"),
    ("pages without a later write", "prefix", [*B_THEN_A, read(4, 5, a=0, b=1), read(6, 7, a=0, b=0)], None),
    ("writes at the same time in any order", "prefix",
     [write(0, 2, B, 1), write(1, 3, A, 1), read(4, 5, a=1, b=0)], None),
    # the newer version of A was written earlier; the older one began after B had been acknowledged
    ("overwritten versions belong to the prefix", "prefix",
     [Write("w", A, 2, 0, 9, 20), Write("w", A, 1, 5, 9, 10), write(3, 4, B, 1), read(10, 11, a=2, b=0)],
     "a prefix of the commits"),
]  # fmt: skip


def test_each_violation_is_found_and_nothing_else():
    wrong = []
    for title, promise, operations, violation in CASES:
        names = broken(promise, *operations, bound=2)
        if names != ([] if violation is None else [violation]):
            wrong.append(f"{title}: {names}")
    assert wrong == []


def test_lost_writes_are_reported():
    checker = Checker(history(write(0, 1, A, 1), write(2, None, A, 2), write(3, 4, B, 3)))

    assert checker.lost({A: Seen(10, 1), B: Seen(30, 3)}) == []
    assert [violation.operation for violation in checker.lost({A: ABSENT, B: Seen(40, 4)})] == [
        write(0, 1, A, 1)
    ]


def test_staleness():
    given = history(write(0, 1, A, 1), write(2, 3, A, 2), read(5, 6, a=0), read(5, 6, a=1), read(5, 6, a=2))
    assert [Checker(given).staleness(it) for it in given.reads] == [4, 2, 0]


class Simulation:
    """A primary and a replica that follows it at its own pace, with a clock of steps."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.log: list[tuple[Key, Seen]] = []
        self.replayed = 0
        self.clock = count()
        self.values = count(1)
        self.history = History()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.replayed = self.dice.randint(self.replayed, len(self.log))
            self.dice.choice([self.write, self.read_primary, self.read_replica])()

    def write(self) -> None:
        value, key, began = next(self.values), self.dice.choice([A, B]), next(self.clock)
        self.log.append((key, Seen(10 * value, value)))
        self.history.writes.append(Write("w", key, value, began, next(self.clock), 10 * value))

    def read_primary(self) -> None:
        self._read("strong", self.log)

    def read_replica(self) -> None:
        self._read("replica", self.log[: self.replayed])

    def _read(self, level: str, log: list[tuple[Key, Seen]]) -> None:
        seen = {A: ABSENT, B: ABSENT, **dict(log)}
        self.history.reads.append(Read("r", level, next(self.clock), next(self.clock), seen))


LEVELS: dict[str, tuple[str, Callable[[Checker, list[Read]], list]]] = {
    "strong": ("strong", Checker.strong),
    "bounded": ("strong", lambda checker, reads: checker.bounded(reads, 0)),
    "session": ("replica", Checker.session),
    "prefix": ("replica", Checker.prefix),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(5))
def test_one_old_value_among_many_right_ones_is_found(level, seed):
    kind, promise = LEVELS[level]
    simulation = Simulation(seed)
    simulation.run(300)
    history = simulation.history
    assert Checker(history).violations == []
    assert promise(Checker(history), history.of_level(kind)) == []

    places = [
        number
        for number, it in enumerate(history.reads)
        if it.level == kind and min(seen.version for seen in it.seen.values()) > 100
    ]
    place = simulation.dice.choice(places)
    old = history.reads[place]
    # the key that was written first, long before
    key = min(old.seen, key=lambda it: old.seen[it].version)
    history.reads[place] = Read(old.session, kind, old.began, old.ended, {**old.seen, key: ABSENT})

    result = promise(Checker(history), history.of_level(kind))
    assert history.reads[place] in [violation.operation for violation in result]
