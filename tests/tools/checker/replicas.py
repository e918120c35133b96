"""Reads of a replica, which may be late, against the change feed: a prefix of the commits, no older than is allowed."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from tests.tools.checker.feed import by_key
from tests.tools.checker.history import ABSENT, WEAKER, Change, History, Key, Seen, Write
from tests.tools.checker.levels import Violation

BOUND = 5  # seconds; the default of an account


class _State(NamedTuple):
    """A state of an entity: when the write that made it began, and when the next one was acknowledged."""

    seen: Seen
    began: float
    stale_since: float


def check_replicas(history: History, changes: Sequence[Change]) -> Iterator[Violation]:
    """Check that reads at weaker levels saw the commits up to one of them.

    If a read saw a write, it saw all those that were acknowledged before that one began.
    """
    writes = {(it.key, it.value): it for it in history.writes}
    states = {key: list(_states(own, writes)) for key, own in by_key(changes).items()}
    for read in history.of_level(*WEAKER):
        states_seen = {key: _find(states.get(key, []), seen) for key, seen in read.seen.items()}
        if None in states_seen.values():
            yield Violation("nothing is invented on replicas", str(states_seen), read)
            continue
        known = [it for it in states_seen.values() if it is not None]
        oldest = min(it.stale_since for it in known)
        if oldest < max(it.began for it in known):
            yield Violation("a prefix of the commits", str(known), read)
        if read.level == "BoundedStaleness" and oldest < read.began - BOUND:
            yield Violation("the bound", f"{read.began - oldest:.1f} s", read)


def _states(changes: Sequence[Change], writes: dict[tuple[Key, int], Write]) -> Iterator[_State]:
    """Return the states in their order; nothing is known of when deletions were asked for."""
    seen, began = ABSENT, -inf
    for change in changes:
        write = writes.get((change.key, change.after.value)) if change.after != ABSENT else None
        ended = None if write is None else write.ended
        yield _State(seen, began, inf if ended is None else ended)
        seen, began = change.after, -inf if write is None else write.began
    yield _State(seen, began, inf)


def _find(states: Sequence[_State], seen: Seen) -> _State | None:
    """Return the last state that looks like what was seen."""
    if not states and seen == ABSENT:
        return _State(seen, -inf, inf)
    return next((it for it in reversed(states) if it.seen == seen), None)
