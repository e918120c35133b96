"""Replicas of the database: choice for reads, and replication lag."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic, time
from typing import Annotated, Final

from django.conf import settings
from prometheus_client import Gauge

from storage.core.reading import ReadRouter, SourceAddress, Synchronization
from storage.domain.errors import ServerBusy
from storage.domain.requests.consistency import Consistency, ReadTerms
from storage.replicas.links import Link, open_lanes, replica_lanes
from storage.replicas.samples import Sample
from storage.sql import positions
from storage.sql.failures import Canceled, UnexpectedFailure

INTERVAL: Final = 0.25  # seconds between two looks at a server
_SESSION_WAIT: Final = 0.1  # seconds for a replica to get to the position of a token
_LOST_WAIT: Final = 1.0  # seconds for a replica that can be used while the primary does not answer
_PENALTY: Final = 1.0  # seconds during which no read waits for a replica that was too slow
_SAMPLES_LIMIT: Final = 1024
_MEASURE_LIMIT: Final = 4.0  # seconds

Clock = Callable[[], float]
_IN_USE: Final = Gauge(
    "tablero_replica_in_use", "1 while a replica answers reads", ("replica",), multiprocess_mode="livemin"
)
_LAG: Final = Gauge(
    "tablero_replica_lag_seconds",
    "How far a replica is behind the primary",
    ("replica",),
    multiprocess_mode="livemax",
)


class ReplicaProblem(StrEnum):
    """Reason why a replica is unusable or limited."""

    NO_ANSWER = "no answer"
    ACCEPTS_WRITES = "accepts writes"  # it has become a primary, or always was one
    OTHER_DATABASE = "other database"  # a replica of another primary
    NOT_RECEIVING = "not receiving"  # no stream from the primary
    OTHER_TIMELINE = "other timeline"  # it follows a former primary


class ReplicaState(StrEnum):
    IN_USE = "in use"
    BEHIND = "behind"  # by more than the limit of the server
    UNREACHABLE = "unreachable"  # or no replica of this database


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """The state of a replica."""

    name: Annotated[str, "Host and port."]
    state: Annotated[ReplicaState, "`behind`: by more than the server allows; the primary is read instead."]
    lag_seconds: Annotated[float | None, "Null as long as it is unknown."]
    lag_bytes: Annotated[int | None, "Of the log; null while the replica does not answer."]
    # in seconds since 1970
    synchronized_at: Annotated[float | None, "The replica has everything that was acknowledged before."]
    problem: Annotated[
        ReplicaProblem | None, "Why it cannot be used as well as it could; null if nothing is wrong."
    ] = None


class _Log:
    """Positions of the primary's log with the times at which they were queried."""

    def __init__(self) -> None:
        self.timeline: int | None = None
        self._times: list[float] = []
        self._positions: list[int] = []

    @property
    def position(self) -> int | None:
        return self._positions[-1] if self._positions else None

    def note(self, asked_at: float, sample: Sample) -> bool:
        """Record a sample of the primary; return whether it is a different primary."""
        is_other = self.timeline not in (None, sample.timeline)
        if sample.timeline != self.timeline or sample.position < (self.position or 0):
            # there is another primary: what the former one said does not count among its replicas
            self._times, self._positions = [], []
            self.timeline = sample.timeline
        if sample.position == self.position:
            self._times[-1] = asked_at
            return is_other
        self._times.append(asked_at)
        self._positions.append(sample.position)
        if len(self._times) > _SAMPLES_LIMIT:
            half = _SAMPLES_LIMIT // 2
            self._times = self._times[:half:2] + self._times[half:]
            self._positions = self._positions[:half:2] + self._positions[half:]
        return is_other

    def fresh_at(self, position: int) -> float | None:
        """Return when a server at a log position was last current; None if that is too long ago."""
        place = bisect_right(self._positions, position)
        return self._times[place - 1] if place else None


class Replica:
    """Replica with its last known state; ``alias`` is its name among Django's databases."""

    def __init__(self, address: SourceAddress, clock: Clock) -> None:
        self.name, self.alias = address.name, address.alias
        self._clock = clock
        self.link = Link(address.conninfo, is_primary=False)
        self.lanes = replica_lanes(address.conninfo, lambda: self.replayed)
        self.lanes.suspend()  # until it answers
        self.answers = False
        self.problem: ReplicaProblem | None = ReplicaProblem.NO_ANSWER
        self.replayed = 0  # at least up to this position
        self.fresh_at: float | None = None  # by the clock: when the primary had no more than this replica has
        self.last_fresh_at: float | None = None  # also after it was lost
        self.round_trip = 0.0  # seconds
        self.looks = 0
        self._no_wait_until = 0.0
        self._suspect_until = 0.0
        self._asking: asyncio.Task[None] | None = None

    def note(self, replayed: int) -> None:
        self.replayed = max(self.replayed, replayed)

    def note_fresh(self, at: float | None) -> None:
        if at is not None and at > (self.fresh_at or 0.0):
            self.fresh_at = self.last_fresh_at = at

    def readmit(self, sample: Sample, round_trip: float) -> None:
        self.note(sample.position)
        self.round_trip += (round_trip - self.round_trip) * (0.2 if self.answers else 1.0)
        self.answers = True

    @property
    def follows(self) -> bool:
        """Return whether the replica follows the current primary."""
        return self.problem is None

    def exclude(self, problem: ReplicaProblem) -> None:
        """Exclude the replica from reads, cancelling current ones, until it responds again; it may be a new server."""
        self.answers, self.problem = False, problem
        self.replayed, self.fresh_at = 0, None
        self.lanes.suspend()

    @property
    def is_suspect(self) -> bool:
        return self._clock() < self._suspect_until

    def mark_suspect(self) -> None:
        """Suspend reads here for a moment after a failure."""
        self._suspect_until = self._clock() + _PENALTY

    @property
    def may_catch_up(self) -> bool:
        return self._clock() >= self._no_wait_until

    async def reach(self, position: int) -> bool:
        """Wait briefly until the replica reaches a log position; return whether it did."""
        pause = 0.001
        deadline = self._clock() + _SESSION_WAIT
        while self.answers and (left := deadline - self._clock()) > 0:
            if self._asking is None or self._asking.done():  # others may be waiting too
                self._asking = asyncio.create_task(self._ask())
            await asyncio.wait([self._asking], timeout=left)
            if self.replayed >= position:
                return True
            await asyncio.sleep(pause)
            pause *= 2
        self._no_wait_until = self._clock() + _PENALTY
        return False

    async def _ask(self) -> None:
        try:
            self.note(await self.lanes.run(positions.position()))
        except (Canceled, ServerBusy, UnexpectedFailure):
            pass  # it is looked after elsewhere

    def close(self) -> None:
        self.link.close()
        self.lanes.close()


class Replicas(ReadRouter):
    """Replicas as known to this process, each monitored by a task."""

    def __init__(
        self,
        primary: str,
        addresses: Sequence[SourceAddress],
        limit: float,
        clock: Clock = monotonic,
        on_new_primary: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Create the router; ``limit`` is the maximum lag in seconds."""
        self._clock = clock
        self._on_new_primary = on_new_primary
        self._limit = limit
        self._primary = Link(primary, is_primary=True)
        self._log = _Log()
        self._replicas = [Replica(address, clock) for address in addresses]
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = 0
        self._primary_seen_at = clock()
        self.primary_answers = True
        self._primary_looks = 0
        self._looked = asyncio.Event()

    def open(self) -> None:
        set_of_this_process(self)
        self.start()

    def start(self) -> None:
        """Start monitoring the servers in the background."""
        self._tasks = [
            asyncio.create_task(self._look_after_primary()),
            *(asyncio.create_task(self._look_after(replica)) for replica in self._replicas),
        ]

    async def close(self) -> None:
        if _of_this_process is self:
            set_of_this_process(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._primary.close()
        for replica in self._replicas:
            replica.close()

    async def choose(self, terms: ReadTerms, *, is_required: bool = False) -> Replica | None:
        """Return a nearby replica for a read; None for the primary."""
        usable = self._usable(terms)
        if not usable and (is_required or not self.primary_answers):
            usable = await self._wait_for_usable(terms)
        if not usable:
            return None
        if terms.session is None or not terms.session.token:
            return self._one_of_nearest(usable)
        token = terms.session.token
        usable = [replica for replica in usable if replica.follows or not self.primary_answers]
        ready = [replica for replica in usable if replica.replayed >= token]
        if ready:
            return self._one_of_nearest(ready)
        waiting = [replica for replica in usable if replica.may_catch_up]
        if not waiting:
            return None
        furthest = max(waiting, key=lambda replica: replica.replayed)
        return furthest if await furthest.reach(token) else None

    async def wait_for_health_checks(self) -> None:
        """Wait until each server was checked, and each replica again after the primary."""
        while not self._primary_looks:
            await self._next_look()
        looks_needed = [replica.looks + 2 for replica in self._replicas]  # one of them may have begun before
        while any(replica.looks < least for replica, least in zip(self._replicas, looks_needed, strict=True)):
            await self._next_look()

    async def look_again(self) -> None:
        """Wait for a new health check of the primary."""
        wanted = self._primary_looks + 2  # one of them may have begun before
        while self._primary_looks < wanted:
            await self._next_look()

    async def _next_look(self) -> None:
        self._looked.clear()
        await self._looked.wait()

    def _usable(self, terms: ReadTerms) -> list[Replica]:
        now = self._clock()
        return [replica for replica in self._replicas if self._may_answer(replica, terms, now)]

    async def _wait_for_usable(self, terms: ReadTerms) -> list[Replica]:
        """Wait briefly for a usable replica, such as one that was slow once, as no other database could answer."""
        deadline = self._clock() + _LOST_WAIT
        usable: list[Replica] = []
        while not usable and (left := deadline - self._clock()) > 0:
            looking = asyncio.create_task(self._next_look())
            await asyncio.wait([looking], timeout=left)
            looking.cancel()
            usable = self._usable(terms)
        return usable

    def states(self) -> list[ReplicaStatus]:
        now = self._clock()
        return [self._status(replica, now) for replica in self._replicas]

    def synchronizations(self) -> list[Synchronization]:
        return [Synchronization(it.state is ReplicaState.IN_USE, it.synchronized_at) for it in self.states()]

    def _may_answer(self, replica: Replica, terms: ReadTerms, now: float) -> bool:
        if not replica.answers or replica.fresh_at is None:
            return False
        if replica.is_suspect and self.primary_answers:
            return False
        if terms.level is Consistency.BOUNDED_STALENESS:
            return now - replica.fresh_at <= min(terms.max_staleness, self._limit)
        return self._age(replica.fresh_at, now) <= self._limit

    def _age(self, fresh_at: float, now: float) -> float:
        """Return the lag of a replica; while the primary is down, the lag at that time."""
        return (now if self.primary_answers else self._primary_seen_at) - fresh_at

    def _one_of_nearest(self, replicas: list[Replica]) -> Replica:
        if len(replicas) == 1:
            return replicas[0]
        nearest = min(replica.round_trip for replica in replicas)
        near = [replica for replica in replicas if replica.round_trip <= 2 * nearest + 0.001]
        self._turn += 1
        return near[self._turn % len(near)]

    def _status(self, replica: Replica, now: float) -> ReplicaStatus:
        known_at, position = replica.last_fresh_at, self._log.position
        lag_bytes = None
        if replica.answers and position is not None:
            lag_bytes = max(0, position - replica.replayed)
        seconds = None if known_at is None else max(0.0, self._age(known_at, now))
        if not replica.answers:
            state = ReplicaState.UNREACHABLE
        elif replica.fresh_at is None or self._age(replica.fresh_at, now) > self._limit:
            state = ReplicaState.BEHIND
        else:
            state = ReplicaState.IN_USE
            if lag_bytes == 0:
                seconds = 0.0
        synchronized_at = None if known_at is None else time() - (now - known_at)
        return ReplicaStatus(replica.name, state, seconds, lag_bytes, synchronized_at, replica.problem)

    async def _look_after_primary(self) -> None:
        while True:
            await self.look_at_primary()
            for status in self.states():
                _IN_USE.labels(status.name).set(status.state is ReplicaState.IN_USE)
                if status.lag_seconds is not None:
                    _LAG.labels(status.name).set(status.lag_seconds)
            self._looked.set()
            await asyncio.sleep(INTERVAL)

    async def look_at_primary(self) -> None:
        """Ask the primary for its state."""
        asked_at, known = self._clock(), self._log.position
        try:
            sample = await self._primary.sample()
            if sample.is_replica:
                self._primary.drop()
                raise ServerBusy
            if self._log.note(asked_at, sample):
                self._on_new_primary(self._primary_seen_at)
            self.primary_answers, self._primary_seen_at = True, asked_at
            if not sample.is_flushed and sample.position == known:
                # the rest of the log would not get to the replicas before something else is written
                await self._primary.flush()
        except ServerBusy:
            self.primary_answers = False
        self._primary_looks += 1

    async def _look_after(self, replica: Replica) -> None:
        while True:
            await self.look_at(replica)
            self._looked.set()
            await asyncio.sleep(INTERVAL)

    async def look_at(self, replica: Replica) -> None:
        """Ask a replica for its state."""
        asked_at = self._clock()
        try:
            sample = await replica.link.sample()
            round_trip = self._clock() - asked_at
            problem = self._find_obstacle(replica, sample)
            if problem is None and not replica.lanes.is_open:
                replica.note(sample.position)  # before reads: their connections must have got as far
                await open_lanes(replica.lanes)
        except ServerBusy:
            problem = ReplicaProblem.NO_ANSWER
        if problem is None:
            self._note(replica, sample, round_trip)
        else:
            replica.exclude(problem)
        replica.looks += 1

    def _find_obstacle(self, replica: Replica, sample: Sample) -> ReplicaProblem | None:
        """Return why a server's log positions are not comparable with the primary's; None if they are."""
        if not sample.is_replica:
            return ReplicaProblem.ACCEPTS_WRITES
        if self._primary.system is not None and replica.link.system != self._primary.system:
            return ReplicaProblem.OTHER_DATABASE
        return None

    def _note(self, replica: Replica, sample: Sample, round_trip: float) -> None:
        replica.readmit(sample, round_trip)
        if not sample.is_receiving:
            replica.problem = ReplicaProblem.NOT_RECEIVING
        elif sample.timeline not in (None, self._log.timeline):
            replica.problem = ReplicaProblem.OTHER_TIMELINE
        else:
            replica.problem = None
        if replica.follows or not self.primary_answers:
            replica.note_fresh(self._log.fresh_at(replica.replayed))


def make_router(conninfo: str, on_new_primary: Callable[[float], None]) -> Replicas | None:
    """Return the router of the configured replicas; None without any."""
    if not settings.READ_SOURCES:
        return None
    return Replicas(
        conninfo,
        settings.READ_SOURCES,
        settings.DECLARED_OPTIONS["REPLICA_LAG"],
        on_new_primary=on_new_primary,
    )


_of_this_process: Replicas | None = None


def set_of_this_process(replicas: Replicas | None) -> None:
    global _of_this_process
    _of_this_process = replicas


def are_configured() -> bool:
    """Return whether this server reads from replicas."""
    return bool(settings.READ_SOURCES)


def states() -> list[ReplicaStatus]:
    """Return the state of the replicas, as monitored by this process or else measured now."""
    if not settings.READ_SOURCES:
        return []
    running = _of_this_process
    return asyncio.run(_measure()) if running is None else running.states()


async def _measure() -> list[ReplicaStatus]:
    replicas = Replicas(
        settings.LANES_CONNINFO, settings.READ_SOURCES, settings.DECLARED_OPTIONS["REPLICA_LAG"]
    )
    replicas.start()
    try:
        async with asyncio.timeout(_MEASURE_LIMIT):
            await replicas.wait_for_health_checks()
    except TimeoutError:
        pass  # a replica that has not answered by now is unreachable
    finally:
        await replicas.close()
    return replicas.states()
