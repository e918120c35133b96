"""The throughput of a table: admitted while units are left, charged afterwards."""

import pytest

from storage.domain.errors import TooManyRequests
from storage.operations.throughput import Throughput


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_second_of_units_is_there_at_once_and_comes_back(clock):
    units = Throughput(clock=clock)
    for _ in range(20):
        units.admit(1, 100)
        units.charge(1, 100, 5)
    with pytest.raises(TooManyRequests) as refused:
        units.admit(1, 100)
    assert refused.value.details == {"x-ms-retry-after-ms": "10"}
    units.admit(2, 100)  # another table
    clock.now += 0.01
    units.admit(1, 100)
    clock.now += 100
    units.admit(1, 100)
    units.charge(1, 100, 101)
    with pytest.raises(TooManyRequests):  # no more than a second's units are saved up
        units.admit(1, 100)


def test_a_request_may_cost_more_than_there_is(clock):
    units = Throughput(clock=clock)
    units.admit(1, 10)
    units.charge(1, 10, 500)
    with pytest.raises(TooManyRequests) as refused:
        units.admit(1, 10)
    assert refused.value.details == {"x-ms-retry-after-ms": "49100"}


def test_processes_share_a_limit(clock):
    units = Throughput(1 / 4, clock)
    units.admit(1, 100)
    units.charge(1, 100, 25)
    with pytest.raises(TooManyRequests):
        units.admit(1, 100)
