"""Processes are killed and connections cut while clients work: no law is broken, and all goes on without help.

`python3 -m tests.tools.checker` does it hundreds of times.
"""

from dataclasses import replace
from random import Random

import pytest

from tests.seeds import seeded
from tests.tools.checker.operations import kill_during_bulk_edit, kill_during_import
from tests.tools.checker.run import Plan, run
from tests.tools.checker.site import (
    KILLS,
    Site,
    cut_connections,
    delay_connections,
    kill_a_replica,
    kill_everything,
    kill_the_postmaster,
)

pytestmark = pytest.mark.slow

PAUSE = 60.0  # seconds without an acknowledged write, on a busy machine
PLAN = Plan(clients=12, answers=15)


def with_data(folder):
    folder.mkdir(mode=0o711)
    seeded(folder / "first")
    return folder


@pytest.fixture(scope="module")
def site(scratch):
    with Site(with_data(scratch / "site")).running() as site:
        yield site


@pytest.fixture(scope="module")
def whole_site(scratch):
    with Site(with_data(scratch / "whole"), has_archive=True, has_replica=True).running() as site:
        yield site


@pytest.fixture(scope="module")
def token(site):
    return site.api_token()


def test_clients_of_three_processes_see_one_order(site, token):
    figures = run(site, token, replace(PLAN, answers=400), [])

    assert figures.violations == []
    assert figures.operations["refused writes"] > 100
    # a server gives up what takes five seconds, as everything may where the machine stands still
    assert figures.operations["writes with an unknown outcome"] == 0 or max(figures.pauses) > 4


def test_rehearsed_failures_leave_the_outcomes_of_writes_unknown_but_explained(site, token):
    figures = run(site, token, replace(PLAN, answers=250, rehearsal="ambiguous"), [])

    assert figures.violations == []
    struck, committed = (
        figures.operations[it] for it in ("rehearsed failures of writes", "of them committed")
    )
    assert 0 < committed < struck
    assert figures.operations["writes with an unknown outcome"] >= struck


def test_nothing_acknowledged_is_lost_whatever_is_killed(site, token):
    faults = Random(1).sample((*KILLS, cut_connections, delay_connections), len(KILLS) + 2)
    figures = run(site, token, PLAN, faults)

    assert figures.violations == []
    assert figures.faults.total() == len(faults)
    assert max(figures.pauses) < PAUSE


@pytest.mark.long
@pytest.mark.parametrize("fault", [kill_during_import, kill_during_bulk_edit, kill_a_replica])
def test_long_operations_that_are_killed_are_whole(whole_site, fault):
    token = whole_site.token or whole_site.api_token()
    figures = run(whole_site, token, replace(PLAN, clients=6), [fault])

    assert figures.violations == []
    assert [it.fault for it in figures.recoveries] == [fault.__name__]
    assert figures.operations["of them at weaker levels"]
    # the statistics of a replica end with it
    assert fault is kill_a_replica or whole_site.replica.reads()


def test_relaxed_durability_delivers_nothing_that_is_lost(scratch):
    folder = with_data(scratch / "relaxed")
    with Site(folder, "--durability", "relaxed", servers=1).running() as site:
        faults = [kill_the_postmaster, kill_everything]
        figures = run(site, site.api_token(), replace(PLAN, is_durable=False), faults)

    assert figures.violations == []
    assert figures.faults.total() == len(faults)
