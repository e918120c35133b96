"""The throughput of a table: admitted while units are left, charged afterwards, over all processes."""

import asyncio
import itertools
import time
from contextlib import asynccontextmanager

import pytest
from django.conf import settings

from storage.domain.errors import TooManyRequests
from storage.runtime.threads import in_thread
from storage.runtime.throughput import Throughput
from storage.sql import throughput as sql
from storage.sql.django import execute, fetch
from storage.sql.lanes import Lanes

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = itertools.count(1_000_000)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def table():
    return next(TABLES)


@asynccontextmanager
async def processes(clock, number=1):
    """Open the throughput state of several processes, each with its own connections."""
    lanes = [Lanes(settings.LANES_CONNINFO) for _ in range(number)]
    for each in lanes:
        await each.open()
    yield [Throughput(each, clock) for each in lanes]
    for each in lanes:
        each.close()


async def pass_time(table, seconds):
    """Units come back by the clock of the database."""
    text = "UPDATE storage_throughput SET taken_at = taken_at - make_interval(secs => %s) WHERE table_id = %s"
    await in_thread(execute, text, seconds, table)


async def use(units, table, limit, cost):
    await units.admit(table, limit)
    units.charge(table, limit, cost)


async def use_up(units, table, limit, cost):
    while True:
        await use(units, table, limit, cost)


async def test_a_second_of_units_is_there_at_once_and_comes_back(clock, table):
    async with processes(clock) as [units]:
        await use(units, table, 10, 10)
        with pytest.raises(TooManyRequests) as refused:
            await use_up(units, table, 10, 5)
        assert 1 <= int(refused.value.details["x-ms-retry-after-ms"]) <= 600
        await units.admit(next(TABLES), 10)  # another table
        with pytest.raises(TooManyRequests):  # without asking again
            await units.admit(table, 10)
        clock.now += 100
        await pass_time(table, 100)
        await use(units, table, 10, 11)
        with pytest.raises(TooManyRequests):  # no more than a second's units are saved up
            await use_up(units, table, 10, 1)


async def test_a_request_may_cost_more_than_there_is(clock, table):
    async with processes(clock) as [units]:
        await use(units, table, 10, 500)
        with pytest.raises(TooManyRequests) as refused:
            await units.admit(table, 10)
        assert 48_000 <= int(refused.value.details["x-ms-retry-after-ms"]) <= 49_000


@pytest.mark.parametrize("number", [1, 3])
async def test_all_processes_together_have_the_limit(clock, table, number):
    limit, cost, used = 1000, 5, 0

    async def use_all(units):
        nonlocal used
        try:
            while True:
                await use(units, table, limit, cost)
                used += cost
        except TooManyRequests:
            pass

    began = time.monotonic()
    async with processes(clock, number) as several:
        await asyncio.gather(*map(use_all, several))
    most = limit * (1 + time.monotonic() - began) + number * limit * 0.1
    assert limit - cost <= used <= most


async def test_requests_at_the_same_time_take_one_portion(clock, table):
    async with processes(clock) as [units]:
        await asyncio.gather(*(units.admit(table, 1000) for _ in range(50)))
    [(left,)] = await in_thread(fetch, "SELECT units FROM storage_throughput WHERE table_id = %s", table)
    assert left == 900


async def test_a_portion_that_was_not_used_is_not_saved_up(clock, table):
    async with processes(clock) as [units]:
        await units.admit(table, 1000)
        clock.now += 2
        await units.admit(table, 1000)
        units.charge(table, 1000, 100)
        assert not units._has_units(units._share(table, 1000))


async def test_rows_of_full_buckets_are_deleted(clock, table):
    async with processes(clock) as [units]:
        await units.admit(table, 10)
    await in_thread(sql.tidy)
    assert await in_thread(fetch, "SELECT FROM storage_throughput WHERE table_id = %s", table)
    await pass_time(table, 2 * 86_400)
    await in_thread(sql.tidy)
    assert not await in_thread(fetch, "SELECT FROM storage_throughput WHERE table_id = %s", table)
