"""Choice of the replica that answers a read.

Effects of replicas and failures on clients are tested in tests/replication.
"""

import asyncio

import pytest
from django.conf import settings as django_settings

from storage.core.reading import SourceAddress
from storage.domain.requests.consistency import Consistency, ReadTerms, Session
from storage.domain.service_properties.properties import ServiceProperties
from storage.replicas import replicas
from storage.replicas.replicas import ReplicaProblem, Replicas, ReplicaState, _Log, states
from storage.replicas.samples import Sample
from storage.runtime.catalog import KnownAccount
from storage.runtime.service import Service

LIMIT = 30.0
NOW = 1000.0
EVENTUAL = ReadTerms(Consistency.EVENTUAL, 5.0)
PREFIX = ReadTerms(Consistency.CONSISTENT_PREFIX, 5.0)
BOUNDED = ReadTerms(Consistency.BOUNDED_STALENESS, 5.0)


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


def on_primary(position, timeline=1):
    return Sample(is_replica=False, position=position, timeline=timeline, is_receiving=False, is_flushed=True)


def on_replica(position, timeline=1, *, is_receiving=True):
    return Sample(
        is_replica=True, position=position, timeline=timeline, is_receiving=is_receiving, is_flushed=True
    )


def at_session(token=0):
    return ReadTerms(Consistency.SESSION, 5.0, Session(token))


class World:
    """Replicas without a monitor: the test sets the answers of the servers."""

    def __init__(self):
        self.clock = Clock()
        addresses = [SourceAddress(name, "host=/nowhere") for name in ("near", "far")]
        self.replicas = Replicas("host=/nowhere", addresses, LIMIT, self.clock)
        self.near, self.far = self.replicas._replicas

    def primary_is_at(self, position, timeline=1, *, ago=0.0):
        self.replicas._log.note(self.clock.now - ago, on_primary(position, timeline))

    def replica_is_at(self, replica, position, timeline=1, *, is_receiving=True, round_trip=0.001):
        self.replicas._note(replica, on_replica(position, timeline, is_receiving=is_receiving), round_trip)

    async def chosen(self, terms):
        result = await self.replicas.choose(terms)
        return None if result is None else result.name


@pytest.fixture
async def world():
    return World()


async def test_without_an_answer_the_primary_is_read(world):
    assert await world.chosen(EVENTUAL) is None
    world.primary_is_at(100)
    assert await world.chosen(EVENTUAL) is None


async def test_a_replica_that_has_everything_may_answer(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    for terms in (EVENTUAL, PREFIX, BOUNDED, at_session(), at_session(100)):
        assert await world.chosen(terms) == "near"


async def test_the_bound_is_measured_from_when_the_primary_was_asked(world):
    world.primary_is_at(100, ago=4)
    world.primary_is_at(200)
    world.replica_is_at(world.near, 199)
    assert await world.chosen(BOUNDED) == "near"

    world.clock.now += 1.5

    assert await world.chosen(BOUNDED) is None
    assert await world.chosen(EVENTUAL) == "near"


async def test_a_replica_behind_by_more_than_the_limit_is_left_out(world):
    world.primary_is_at(100)
    world.primary_is_at(200)
    world.replica_is_at(world.near, 150)
    world.clock.now += LIMIT + 1
    world.primary_is_at(300)
    for terms in (EVENTUAL, PREFIX, BOUNDED, at_session()):
        assert await world.chosen(terms) is None
    assert [it.state for it in world.replicas.states()] == [ReplicaState.BEHIND, ReplicaState.UNREACHABLE]

    world.replica_is_at(world.near, 300)

    assert await world.chosen(EVENTUAL) == "near"


def test_another_timeline_is_that_of_another_primary():
    log = _Log()
    assert [
        log.note(NOW, on_primary(position, timeline))
        for position, timeline in ((100, 1), (200, 1), (150, 2), (150, 2))
    ] == [False, False, True, False]


async def test_while_the_primary_is_lost_replicas_do_not_grow_old(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    world.replicas.primary_answers = False
    world.clock.now += 10 * LIMIT

    assert await world.chosen(EVENTUAL) == "near"


async def test_while_the_primary_is_lost_a_replica_that_was_slow_once_is_waited_for(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    world.near.exclude(ReplicaProblem.NO_ANSWER)
    assert await world.chosen(EVENTUAL) is None

    world.replicas.primary_answers = False
    choosing = asyncio.create_task(world.chosen(EVENTUAL))
    await asyncio.sleep(0)
    world.replica_is_at(world.near, 100)
    while not choosing.done():
        world.replicas._looked.set()
        await asyncio.sleep(0)
    assert await choosing == "near"


async def test_a_read_of_the_secondary_goes_on_when_the_primary_comes_back_in_its_midst(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    service = Service("host=/nowhere")
    service._router = world.replicas
    # as a replica has it, because the primary did not answer
    account = KnownAccount(1, "a", (), True, True, (), ServiceProperties(), standby=True)

    world.clock.now += LIMIT + 1  # the primary was away for long, and the replica was not checked since
    world.primary_is_at(200)
    reading = asyncio.create_task(service._read(account, EVENTUAL, read_nothing))
    await asyncio.sleep(0)
    world.replica_is_at(world.near, 200)
    while not reading.done():
        world.replicas._looked.set()
        await asyncio.sleep(0)

    assert await reading is world.near.lanes


async def read_nothing(lanes):
    return lanes


async def test_a_session_is_answered_by_a_replica_that_has_got_as_far(world):
    world.primary_is_at(80, ago=1)
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    world.replica_is_at(world.far, 90)
    assert {await world.chosen(at_session(95)) for _ in range(4)} == {"near"}
    assert {await world.chosen(at_session(90)) for _ in range(4)} == {"near", "far"}


async def test_nobody_waits_again_for_a_replica_that_did_not_get_there_in_time(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    reaching = asyncio.create_task(world.replicas.choose(at_session(200)))
    while not world.near._asking:  # noqa: ASYNC110 - it asks at once
        await asyncio.sleep(0)
    world.clock.now += 0.2
    assert await reaching is None
    assert not world.near.may_catch_up
    world.clock.now += 1.1
    assert world.near.may_catch_up


async def test_a_replica_of_another_timeline_is_not_trusted(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 150)
    world.primary_is_at(120, timeline=2)
    world.replica_is_at(world.near, 150)
    assert await world.chosen(at_session(130)) is None

    world.clock.now += 6
    world.primary_is_at(130, timeline=2)
    world.replica_is_at(world.near, 150)
    assert await world.chosen(BOUNDED) is None

    world.replica_is_at(world.near, 150, timeline=2)
    assert await world.chosen(at_session(130)) == "near"
    assert await world.chosen(BOUNDED) == "near"


async def test_a_replica_that_receives_nothing_grows_old(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    world.clock.now += 6
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100, is_receiving=False)
    assert await world.chosen(BOUNDED) is None
    assert await world.chosen(at_session(100)) is None
    assert await world.chosen(EVENTUAL) == "near"


async def test_a_server_other_than_a_replica_is_left_out(world):
    world.primary_is_at(100)
    find = world.replicas._find_obstacle
    assert find(world.near, on_replica(100)) is None
    assert find(world.near, on_primary(100)) is ReplicaProblem.ACCEPTS_WRITES
    world.replicas._primary.system, world.near.link.system = 1, 2
    assert find(world.near, on_replica(100)) is ReplicaProblem.OTHER_DATABASE

    world.replica_is_at(world.near, 100)
    world.near.exclude(ReplicaProblem.OTHER_DATABASE)
    assert await world.chosen(EVENTUAL) is None


async def test_near_replicas_take_turns_and_distant_ones_are_spared(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100, round_trip=0.001)
    world.replica_is_at(world.far, 100, round_trip=0.002)
    assert {await world.chosen(EVENTUAL) for _ in range(4)} == {"near", "far"}

    world.far.round_trip = 0.08

    assert {await world.chosen(EVENTUAL) for _ in range(4)} == {"near"}


async def test_a_failed_read_leaves_a_replica_out_for_a_moment(world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    world.near.mark_suspect()
    assert await world.chosen(EVENTUAL) is None
    world.clock.now += 1.1
    assert await world.chosen(EVENTUAL) == "near"


async def test_the_lag_of_a_replica(world, monkeypatch):
    monkeypatch.setattr(replicas, "time", lambda: 2_000_000_000.0)
    world.primary_is_at(100, ago=3)
    world.primary_is_at(200)
    world.replica_is_at(world.near, 150)
    world.replica_is_at(world.far, 200)
    near, far = world.replicas.states()
    assert (near.name, near.state, near.lag_seconds, near.lag_bytes) == ("near", ReplicaState.IN_USE, 3.0, 50)
    assert (far.state, far.lag_seconds, far.lag_bytes) == (ReplicaState.IN_USE, 0.0, 0)
    assert 2.9 < far.synchronized_at - near.synchronized_at < 3.1

    world.near.exclude(ReplicaProblem.NO_ANSWER)

    near, _ = world.replicas.states()
    assert (near.state, near.lag_seconds, near.lag_bytes) == (ReplicaState.UNREACHABLE, 3.0, None)
    assert near.synchronized_at is not None


def test_old_samples_are_thinned_out():
    log = _Log()
    for number in range(5000):
        log.note(float(number), on_primary(number * 10))
    assert log.fresh_at(49_985) == 4998
    assert log.fresh_at(30_005) <= 3000
    assert log.fresh_at(-1) is None


def test_without_replicas_there_are_none():
    assert django_settings.READ_SOURCES == ()
    assert states() == []
