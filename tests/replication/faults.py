"""Faults of the far replica; each lasts as long as its block.

A fault is undone even if it occurred only in part, so that the next test finds all in order.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.replication.world import BOUND, World

Fault = Callable[[World], AbstractContextManager[None]]


@contextmanager
def none(world: World) -> Iterator[None]:
    yield


@contextmanager
def applies_late(world: World) -> Iterator[None]:
    """Make it replay each commit so much later than the primary that no bounded read may see it."""
    try:
        world.far.change(recovery_min_apply_delay=f"{2 * BOUND}s")
        yield
    finally:
        world.far.change(recovery_min_apply_delay="0")


@contextmanager
def does_not_replay(world: World) -> Iterator[None]:
    try:
        world.far.fetch("SELECT pg_wal_replay_pause()")
        yield
    finally:
        world.far.fetch("SELECT pg_wal_replay_resume()")


@contextmanager
def is_not_fed(world: World) -> Iterator[None]:
    """Cut it off from the primary after it has replayed everything it has."""
    try:
        world.feed.cut()
        yield
    finally:
        world.feed.mend()


@contextmanager
def is_killed(world: World) -> Iterator[None]:
    try:
        world.far.kill()
        yield
    finally:
        world.far.kill()
        world.far.start()


@contextmanager
def hangs(world: World) -> Iterator[None]:
    """Its connections stay open, and none is answered."""
    try:
        world.far.pause()
        yield
    finally:
        world.far.resume()


@contextmanager
def is_cut_off(world: World) -> Iterator[None]:
    """Cut the server off from the replica, which goes on replaying."""
    try:
        world.to_far.cut()
        yield
    finally:
        world.to_far.mend()


@contextmanager
def is_not_heard(world: World) -> Iterator[None]:
    try:
        world.to_far.hang()
        yield
    finally:
        world.to_far.mend()


@contextmanager
def loses_connections(world: World) -> Iterator[None]:
    """End its connections once, in the midst of reads."""
    world.far.fetch("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    yield


@contextmanager
def is_promoted(world: World) -> Iterator[None]:
    """Promote it by mistake; it diverges until it is copied again."""
    try:
        world.far.promote()
        yield
    finally:
        world.far.stop()
        world.nodes.copy(world.far, world.primary, through=world.feed.port)
        world.far.start()


@contextmanager
def is_far_away(world: World) -> Iterator[None]:
    try:
        world.to_far.delay = 0.1
        yield
    finally:
        world.to_far.delay = 0.0


LATE: dict[str, Fault] = {fault.__name__: fault for fault in (applies_late, does_not_replay, is_not_fed)}
FAULTS: dict[str, Fault] = {
    "none": none,
    **LATE,
    **{
        fault.__name__: fault
        for fault in (
            is_killed,
            hangs,
            is_cut_off,
            is_not_heard,
            loses_connections,
            is_promoted,
            is_far_away,
        )
    },
}
OTHERS = tuple(name for name in FAULTS if name not in {"none", *LATE})
