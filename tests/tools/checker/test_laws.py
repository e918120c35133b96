"""Histories of a right store keep all laws; one wrong answer, or one change too few in the feed, breaks one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from tests.tools.checker.feed import check_feed, check_feed_of, check_past, check_restored, check_versions
from tests.tools.checker.history import (
    ABSENT,
    OTHERS,
    Change,
    History,
    Key,
    Kind,
    Read,
    Restored,
    Seen,
    Write,
)
from tests.tools.checker.levels import Violation
from tests.tools.checker.registers import check_registers
from tests.tools.checker.rehearsal import Record, check_records
from tests.tools.checker.replicas import check_replicas

KEYS = [("p", name) for name in "xyz"]
STEPS = 400
SEEDS = range(2)


@dataclass
class Store:
    """Does one operation after another; clients begin before that and are answered after it, or never."""

    dice: Random
    now: int = 0
    entities: dict[Key, Seen] = field(default_factory=lambda: dict.fromkeys(KEYS, ABSENT))
    history: History = field(default_factory=History)
    changes: list[Change] = field(default_factory=list)

    def run(self) -> "Store":
        for self.now in range(10, 10 * STEPS, 10):
            [turn] = self.dice.choices([self.read, self.read_past, self.write, self.write_set], [4, 1, 6, 2])
            turn()
        return self

    def interval(self) -> tuple[float, float]:
        return self.now - self.dice.random() * 40, self.now + self.dice.random() * 40

    def read(self) -> None:
        self.history.reads.append(Read("", "", *self.interval(), dict(self.entities)))

    def read_past(self) -> None:
        moment = self.dice.randrange(self.now)
        seen = {key: self.at(key, moment) for key in KEYS}
        self.history.past.append(Read("", "", *self.interval(), seen, moment))

    def at(self, key: Key, moment: int) -> Seen:
        return next((it.after for it in self.changes[::-1] if it.key == key and it.version <= moment), ABSENT)

    def write(self) -> None:
        key, kind = self.dice.choice(KEYS), self.dice.choice(list(Kind))
        other = self.dice.choice(OTHERS) if kind.merges else ""
        known = [seen.version for read in self.history.reads[-3:] for seen in read.seen.values()]
        if_match = self.dice.choice([0, *known]) if kind.is_conditional else 0
        began, ended = self.interval()
        write = Write("", key, self.now, began, None, None, None, kind, other, if_match)
        fate = self.dice.random()
        refused = self.refusal(write)
        if fate < 0.1:
            self.history.writes.append(write)  # lost on the way
        elif fate < 0.2:
            self.history.writes.append(write)  # its answer was
            if not refused:
                self.apply(write, self.now)
        elif refused:
            self.history.without_effect.append(replace(write, ended=ended, refused=refused))
        else:
            self.apply(write, self.now)
            version = None if kind is Kind.DELETE else self.now
            self.history.writes.append(replace(write, ended=ended, version=version))

    def refusal(self, write: Write) -> str:
        there = self.entities[write.key]
        if write.kind is Kind.INSERT:
            return "" if there == ABSENT else "EntityAlreadyExists"
        if write.kind.is_conditional and there == ABSENT:
            return "ResourceNotFound"
        return "UpdateConditionNotSatisfied" if write.if_match not in (0, there.version) else ""

    def apply(self, write: Write, version: int) -> None:
        before = self.entities[write.key]
        others = dict(before.others) if write.kind.merges else {}
        if write.other:
            others[write.other] = write.value
        after = Seen(version, write.value, frozenset(others.items()))
        self.entities[write.key] = ABSENT if write.kind is Kind.DELETE else after
        number = len(self.changes)
        request = str(write.change_set or f"alone {number}")
        self.changes.append(Change(number, write.key, version, before, self.entities[write.key], request))

    def write_set(self) -> None:
        began, ended = self.interval()
        for version, key in enumerate(self.dice.sample(KEYS, 2), start=self.now):
            write = Write("", key, self.now, began, ended, version, self.now)
            self.apply(write, version)
            self.history.writes.append(write)

    def broken(self) -> set[str]:
        results: list[Violation] = [*check_registers(self.history, self.changes)]
        results += check_feed(self.changes, self.entities)
        results += check_feed_of(self.history, self.changes)
        results += check_past(self.history, self.changes)
        return {it.promise for it in results}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_store_keeps_all_laws(seed):
    store = Store(Random(seed)).run()
    assert store.broken() == set()
    assert store.history.without_effect and any(write.ended is None for write in store.history.writes)


# faults, each at a place where it matters


def stale_read(store: Store) -> None:
    """Let a read see a state that an acknowledged write had replaced before the read began."""
    reads = store.history.reads
    for place in store.dice.sample(range(len(reads)), len(reads)):
        read = reads[place]
        for key in KEYS:
            ended = [
                it for it in store.history.writes
                if it.key == key and it.kind is not Kind.DELETE and it.ended is not None and it.ended < read.began
            ]  # fmt: skip
            if len(ended) > 3:
                last = max(ended, key=lambda it: it.version)
                image = next(it.before for it in store.changes if (it.key, it.version) == (key, last.version))
                if image not in (ABSENT, read.seen[key]):
                    reads[place] = replace(read, seen={**read.seen, key: image})
                    return


def lost_update(store: Store) -> None:
    """Acknowledge two writes on the same version."""
    store.now += 100
    key, seen = next((key, seen) for key, seen in store.entities.items() if seen != ABSENT)
    for value in (1, 2):
        write = Write("", key, value, store.now, store.now + 9, store.now + value, None, Kind.REPLACE)
        write = replace(write, if_match=seen.version)
        store.apply(write, store.now + value)
        store.history.writes.append(write)


def lost_write(store: Store) -> None:
    """Lose an acknowledged write, while all that is recorded looks right."""
    store.now += 10
    for kind, entity in ((Kind.UPSERT, ("p", "x")), (Kind.UPSERT, ("p", "y"))):
        store.history.writes.append(
            Write("", entity, store.now, store.now, store.now + 1, store.now, kind=kind)
        )
    store.now += 100
    store.history.reads.append(Read("", "", store.now, store.now + 1, dict(store.entities)))


def lost_property(store: Store) -> None:
    """Let a merge replace."""
    place, read, key = next(
        (place, read, key)
        for place, read in enumerate(store.history.reads)
        for key, seen in read.seen.items()
        if len(seen.others) > 1
    )
    others = frozenset(list(read.seen[key].others)[:1])
    store.history.reads[place] = replace(
        read, seen={**read.seen, key: read.seen[key]._replace(others=others)}
    )


def half_a_change_set(store: Store) -> None:
    """Let a page see one of two writes of a change set."""
    store.now += 100
    seen = dict(store.entities)
    store.write_set()
    ((one, _), (other, _)) = ((it.key, it) for it in store.changes[-2:])
    mixed = {one: store.entities[one], other: seen[other]}
    store.history.reads.append(Read("", "", store.now - 50, store.now + 50, mixed))


def refusal_without_a_cause(store: Store) -> None:
    store.now += 100
    key = next(key for key, seen in store.entities.items() if seen != ABSENT)
    write = Write("", key, 7, store.now, store.now + 1, kind=Kind.DELETE, refused="ResourceNotFound")
    store.history.without_effect.append(write)


def condition_without_a_cause(store: Store) -> None:
    store.now += 100
    key, seen = next((key, seen) for key, seen in store.entities.items() if seen != ABSENT)
    write = Write("", key, 7, store.now, store.now + 1, kind=Kind.MERGE, if_match=seen.version)
    store.history.without_effect.append(replace(write, refused="UpdateConditionNotSatisfied"))


def two_insertions(store: Store) -> None:
    store.now += 100
    key = next(key for key, seen in store.entities.items() if seen != ABSENT)
    store.now += 100
    write = Write("", key, store.now, store.now, store.now + 1, store.now, kind=Kind.INSERT)
    store.apply(write, store.now)
    store.history.writes.append(write)


def effect_of_a_refused_write(store: Store) -> None:
    store.now += 100
    write = Write("", ("p", "x"), store.now, store.now, store.now + 1, kind=Kind.INSERT)
    store.apply(write, store.now)
    store.history.without_effect.append(replace(write, refused="EntityAlreadyExists"))


def deletion_that_is_undone(store: Store) -> None:
    store.now += 100
    key = next(key for key, seen in store.entities.items() if seen != ABSENT)
    store.history.writes.append(Write("", key, 9, store.now, store.now + 1, kind=Kind.DELETE))
    store.history.reads.append(Read("", "", store.now + 5, store.now + 6, dict(store.entities)))


def gap_in_the_feed(store: Store) -> None:
    write = pick(store, lambda it: it.version is not None)
    store.changes = [it for it in store.changes if it.after.value != write.value]


def lost_deletion_in_the_feed(store: Store) -> None:
    """Lose a deletion with the insertion after it."""
    place = next(place for place, it in enumerate(store.changes) if it.after == ABSENT)
    key = store.changes[place].key
    following = next(it for it in store.changes[place + 1 :] if it.key == key)
    store.changes.remove(following)
    del store.changes[place]


def duplicate_in_the_feed(store: Store) -> None:
    store.changes.append(store.dice.choice(store.changes))


def disorder_in_the_feed(store: Store) -> None:
    own = [place for place, it in enumerate(store.changes) if it.key == KEYS[0]]
    one, other = own[4], own[5]
    store.changes[one], store.changes[other] = store.changes[other], store.changes[one]


def wrong_image_in_the_feed(store: Store) -> None:
    place = next(place for place, it in enumerate(store.changes) if it.before != ABSENT)
    before = store.changes[place].before
    store.changes[place] = store.changes[place]._replace(before=before._replace(value=before.value + 1))


def invention_in_the_feed(store: Store) -> None:
    key, before = KEYS[0], store.entities[KEYS[0]]
    store.entities[key] = Seen(10**6, 10**6)
    store.changes.append(Change(10**6, key, 10**6, before, store.entities[key], "?"))


def half_a_change_set_in_the_feed(store: Store) -> None:
    """Put the rest of a change set into another request."""
    place = next(place for place, it in enumerate(store.changes) if it.request.isdecimal())
    store.changes[place] = store.changes[place]._replace(request="other")


def other_end(store: Store) -> None:
    store.entities[KEYS[0]] = Seen(1, 1)


def changed_past(store: Store) -> None:
    place, read = next((place, it) for place, it in enumerate(store.history.past) if it.moment > 500)
    key = next(key for key in KEYS if read.seen[key] != ABSENT)
    store.history.past[place] = replace(read, seen={**read.seen, key: ABSENT})


def pick(store: Store, fits: Callable[[Write], object]) -> Write:
    return store.dice.choice(
        [write for write in store.history.writes if write.kind is not Kind.DELETE and fits(write)]
    )


LINEARIZABLE = {"linearizable"}
BROKEN = {
    stale_read: LINEARIZABLE,
    lost_update: {"writes do what they say"},
    lost_write: LINEARIZABLE,
    lost_property: LINEARIZABLE,
    half_a_change_set: {"change sets are whole"},
    refusal_without_a_cause: LINEARIZABLE,
    condition_without_a_cause: LINEARIZABLE,
    two_insertions: {"writes do what they say"},
    effect_of_a_refused_write: {"nothing is invented in the feed"},
    deletion_that_is_undone: LINEARIZABLE,
    gap_in_the_feed: {"no gaps in the feed"},
    lost_deletion_in_the_feed: {"deletions in the feed", "no gaps in the feed", "a chain of images"},
    duplicate_in_the_feed: {"no duplicates in the feed"},
    disorder_in_the_feed: {"the order of an entity"},
    wrong_image_in_the_feed: {"a chain of images"},
    invention_in_the_feed: {"nothing is invented in the feed"},
    half_a_change_set_in_the_feed: {"change sets are whole in the feed"},
    other_end: {"the feed ends with what is there"},
    changed_past: {"the past is what it was"},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", BROKEN, ids=lambda it: it.__name__)
def test_one_fault_is_found(fault, seed):
    store = Store(Random(seed)).run()
    fault(store)
    assert store.broken() & BROKEN[fault]


def test_versions_that_lack_a_change():
    changes = Store(Random(1)).run().changes
    versions = {key: [it for it in changes if it.key == key] for key in KEYS}
    assert list(check_versions(versions, changes)) == []
    versions[KEYS[0]].pop()
    assert [it.promise for it in check_versions(versions, changes)] == ["versions are the changes"]


def test_records_that_do_not_know_what_was_committed():
    changes = Store(Random(1)).run().changes
    records = [*dict.fromkeys(Record(it.request, is_struck=True, is_applied=True) for it in changes)]
    assert list(check_records([*records, Record("unknown", is_struck=True, is_applied=False)], changes)) == []
    for wrong in (records[0]._replace(is_applied=False), Record("unknown", is_struck=True, is_applied=True)):
        assert [it.promise for it in check_records([wrong], changes)] == ["records know what was committed"]
    assert [it.promise for it in check_records([*records, records[0]], changes)] == ["one record per request"]


def state_after(changes: list[Change]) -> dict[Key, Seen]:
    return dict.fromkeys(KEYS, ABSENT) | {it.key: it.after for it in changes}


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_see_the_commits_up_to_one_of_them(seed):
    store = Store(Random(seed)).run()

    def broken(level: str, *states: dict[Key, Seen]) -> set[str]:
        store.history.reads = [Read("", level, 10**5, 10**5, it) for it in states]
        return {it.promise for it in check_replicas(store.history, store.changes)}

    states = [state_after(store.changes[:number]) for number in range(0, len(store.changes), 7)]
    assert broken("Eventual", *states) == set()
    assert broken("Eventual", {**states[-1], KEYS[0]: states[3][KEYS[0]]}) == {"a prefix of the commits"}
    assert broken("Eventual", {KEYS[0]: Seen(7, 7)}) == {"nothing is invented on replicas"}
    assert broken("BoundedStaleness", state_after(store.changes)) == set()
    assert broken("BoundedStaleness", states[3]) == {"the bound"}


def test_a_restored_database_has_what_was_acknowledged_and_nothing_else():
    store = Store(Random(1)).run()

    def broken(began: float, changes: list[Change]) -> set[str]:
        restored = Restored(began, changes)
        return {it.promise for it in check_restored(store.history, store.changes, restored)}

    half = store.changes[: len(store.changes) // 2]
    assert broken(half[-1].version - 100, half) == set()
    assert broken(half[-1].version + 1000, half) == {"a restored database has what was acknowledged"}
    other = half[-1]._replace(after=Seen(10**6, 10**6))
    assert broken(0, [*half[:-1], other]) == {"a restored database has no changes of its own"}
